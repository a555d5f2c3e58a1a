"""`mercast doctor` at running brokers: one is dead, and none gives its secrets away."""

import json
import ssl
import tarfile

import pytest
from live import PATIENCE, Lone, Mesh, mercast, reachable, until

from mercast import blocking
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity
from mercast.security.tokens import hash_of, new_token, with_token


def unpacked(file):
    with tarfile.open(file) as tar:
        return {one.name.removeprefix("mercast-doctor/"): tar.extractfile(one).read() for one in tar}


@pytest.mark.slow
def test_a_mesh_with_a_dead_broker(tmp_path):
    with Mesh(3, each=lambda id: ["--keep-stimuli", 5] if id == 3 else []) as mesh:
        with blocking.connect(mesh[1].client) as publisher, blocking.connect(mesh[3].client) as subscriber:
            events = subscriber.subscribe("quote", "price < 50")
            for price in range(100):
                publisher.publish("quote", {"price": price})
            assert [events.get(PATIENCE).attributes["price"] for _ in range(50)] == list(range(50))
        mesh.kill(2)
        until(lambda: reachable(mesh[1]) == reachable(mesh[3]) == {1, 3}, "broker 2 is missed")
        admins = [broker.admin for broker in mesh.brokers.values()]
        done = mercast("doctor", *admins, "--output", tmp_path / "all.tar.gz")
        assert (done.returncode, done.stderr) == (1, "")
        said = done.stdout.splitlines()
        assert [line.split(" of ")[0] for line in said[:2]] == ["broker 1", "broker 3"]
        for problem in (
            "  broker 1: out of reach: broker 2",
            "  broker 3: out of reach: broker 2",
            f"  {mesh[2].admin}: no broker answers at {mesh[2].admin}; is its admin port open? (mercast broker "
            "--admin-listen …)",
        ):
            assert problem in said
        mesh.start(2)
        mesh.wait_ready(2)
        mesh.wait_whole()
        well = mercast("doctor", *admins, "--output", tmp_path / "well.tar.gz", "--json")
        assert [one for one in json.loads(well.stdout)["findings"] if one["level"] == "problem"] == []
        assert well.returncode == 0

    files = unpacked(tmp_path / "all.tar.gz")
    manifest = json.loads(files["manifest.json"])
    first, second, third = manifest["brokers"]
    assert (second["folder"], list(second["missing"])) == (None, ["overlay.json"])
    assert (first["missing"], first["stimuli_before"], third["missing"]) == ({}, 0, {})
    assert third["stimuli_before"] > 0
    for name in ("config.json", "overlay.json", "tables.json", "metrics.txt", "versions.json", "stimuli.jsonl"):
        assert f"{first['folder']}/{name}" in files
    for broker, status, end in ((first, 0, "which they were was not kept\n"), (third, 3, "")):
        file = tmp_path / "stimuli.jsonl"
        file.write_bytes(files[f"{broker['folder']}/stimuli.jsonl"])
        done = mercast("lab", "replay", file)
        assert done.returncode == status, done.stderr
        assert done.stdout.endswith(end)


@pytest.mark.slow
def test_no_secret_is_in_a_bundle(tmp_path):
    """In every place where there is one: as text, as what brokers keep of it, and as hexadecimal digits."""
    certs = tmp_path / "certs"
    make_ca(certs)
    make_certificate(certs, "broker", Identity("default", "broker"), ["localhost", "127.0.0.1"])
    token, admin, admin_in_file = new_token(), new_token(), new_token()
    (tmp_path / "tokens.yaml").write_text(with_token("", "feed", token, {"publish": ["*"], "subscribe": ["*"]}))
    (tmp_path / "admin").write_text(admin_in_file)
    flags = [
        "--tls-cert",
        certs / "broker.pem",
        "--tls-key",
        certs / "broker.key",
        "--tokens",
        tmp_path / "tokens.yaml",
    ]
    flags += ["--peer-cert", certs / "broker.pem", "--peer-key", certs / "broker.key", "--peer-ca", certs / "ca.pem"]
    bundles = []
    with (
        Lone(tmp_path / "1.log", 1, *flags, "--admin-token", admin) as first,
        Lone(tmp_path / "2.log", 2, *flags, "--admin-token", tmp_path / "admin") as second,
    ):
        how = {"tls": ssl.create_default_context(cafile=certs / "ca.pem"), "token": token}
        for broker, given in ((first, admin), (second, tmp_path / "admin")):
            with blocking.connect(f"mercasts://{broker.client}", **how) as client:
                events = client.subscribe("quote")
                client.publish("quote", {"name": "an attribute"}, b"a secret payload")
                assert events.get(PATIENCE).payload == b"a secret payload"
                refused = mercast("doctor", broker.admin, "--output", tmp_path / f"refused-{broker.id}.tar.gz")
                assert (refused.returncode, "asks for a token" in refused.stdout) == (1, True)
                bundles.append(tmp_path / f"{broker.id}.tar.gz")
                done = mercast("doctor", broker.admin, "--output", bundles[-1], "--admin-token", given)
                assert (done.returncode, done.stderr) == (0, "")
    keys = [line for file in certs.glob("*.key") for line in file.read_text().splitlines() if "-" not in line]
    assert len(keys) >= 4
    texts = [token, admin, admin_in_file, *keys, "a secret payload"]
    secrets = [text.encode() for text in texts]
    secrets += [text.encode().hex().encode() for text in texts]
    secrets += [hash_of(text).hex().encode() for text in (token, admin, admin_in_file)]
    secrets += [hash_of(text) for text in (token, admin, admin_in_file)]
    for bundle in bundles:
        files = unpacked(bundle)
        assert any(b"an attribute" in data for name, data in files.items() if name.endswith("stimuli.jsonl"))
        assert any(b"broker.key" in data for name, data in files.items() if name.endswith("config.json"))
        for name, data in files.items():
            assert not [secret for secret in secrets if secret in data], name
