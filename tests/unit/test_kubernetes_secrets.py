"""`mercast secrets` against a scripted Kubernetes API: what is made, what is kept, and what is said of mistakes."""

import base64
from datetime import UTC, datetime

import pytest
from scripted_kubernetes import ScriptedKubernetes

from mercast.cli.secrets import secrets
from mercast.security import kubernetes_secrets
from mercast.security.certificates import identities_in, is_signed_by, names_in
from mercast.security.identity import Identity
from mercast.security.tokens import hash_of, read_tokens

PLAN = """
ca: {namespace: a, name: m-ca}
certificates:
  - {namespace: a, name: m-broker-tls, role: broker, cluster: a, hosts: [m, "*.m-peers.a.svc"], days: 365}
  - {namespace: b, name: m-edge-tls, role: edge, cluster: b, joins: [backbone], hosts: [m], days: 365}
tokens: {name: m-tokens, namespaces: [a, b]}
labels: {app.kubernetes.io/managed-by: Helm}
"""
ALL = ["a/m-ca", "a/m-broker-tls", "b/m-edge-tls", "a/m-tokens", "b/m-tokens"]


@pytest.fixture
def api(tmp_path, monkeypatch):
    with ScriptedKubernetes(tmp_path) as scripted:
        monkeypatch.setenv("KUBECONFIG", str(scripted.kubeconfig))
        yield scripted


@pytest.fixture
def make(tmp_path, capsys):
    """What the command says, by Secret; or, if it fails, why."""

    def run(plan=PLAN):
        file = tmp_path / "plan.yaml"
        file.write_text(plan)
        try:
            secrets(plan=file)
        except SystemExit as stopped:
            return str(stopped)
        lines = (line.removeprefix("Secret ").partition(": ") for line in capsys.readouterr().out.splitlines())
        return {name: done for name, _, done in lines}

    return run


def data(api, name):
    secret = api.secrets[tuple(name.split("/"))]
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


def test_all_is_made_once_and_kept(api, make):
    assert make() == dict.fromkeys(ALL, "made")
    assert {"/".join(key): one["type"] for key, one in api.secrets.items()} == {
        "a/m-ca": "kubernetes.io/tls",
        "a/m-broker-tls": "kubernetes.io/tls",
        "b/m-edge-tls": "kubernetes.io/tls",
        "a/m-tokens": "Opaque",
        "b/m-tokens": "Opaque",
    }
    assert all(one["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"} for one in api.secrets.values())
    before = {name: data(api, name) for name in ALL}
    assert make() == dict.fromkeys(ALL, "kept")
    assert {name: data(api, name) for name in ALL} == before


def test_what_is_in_them(api, make):
    make()
    ca, broker, edge, tokens, others = (data(api, name) for name in ALL)
    assert set(ca) == {"tls.crt", "tls.key"}
    for one in (broker, edge):
        assert set(one) == {"tls.crt", "tls.key", "ca.crt"}
        assert one["ca.crt"] == ca["tls.crt"]
        assert is_signed_by(one["tls.crt"], ca["tls.crt"])
    assert names_in(broker["tls.crt"]) == {"m", "*.m-peers.a.svc", "mercast://cluster/a/broker"}
    assert identities_in(edge["tls.crt"]) == [Identity("b", "edge"), Identity("backbone", "edge")]
    assert tokens == others
    token = read_tokens(tokens["tokens.yaml"].decode()).find(hash_of(tokens["token"].decode()))
    assert token.publish.allow == token.subscribe.allow == ("*",)
    assert tokens["admin-token"] not in (b"", tokens["token"])


def test_other_names_make_a_certificate_anew(api, make):
    make()
    ca, edge = data(api, "a/m-ca"), data(api, "b/m-edge-tls")
    done = make(PLAN.replace('"*.m-peers.a.svc"', "m.a"))
    assert done == dict.fromkeys(ALL, "kept") | {"a/m-broker-tls": "made anew: its names were others"}
    assert (data(api, "a/m-ca"), data(api, "b/m-edge-tls")) == (ca, edge)
    assert names_in(data(api, "a/m-broker-tls")["tls.crt"]) == {"m", "m.a", "mercast://cluster/a/broker"}


@pytest.mark.parametrize(("days", "anew"), [(240, False), (250, True), (400, True)])
def test_an_old_certificate_is_made_anew(api, make, monkeypatch, days, anew):
    """When less than a third of its 365 days is left."""
    make()
    later = datetime.now(UTC).timestamp() + days * 86_400
    monkeypatch.setattr(kubernetes_secrets, "time", lambda: later)
    said = "made anew: less than a third of its life was left" if anew else "kept"
    assert make() == dict.fromkeys(ALL, "kept") | dict.fromkeys(ALL[1:3], said)


def test_a_new_ca_signs_all_anew(api, make):
    make()
    del api.secrets["a", "m-ca"]
    said = dict.fromkeys(ALL[1:3], "made anew: it was signed by another CA")
    assert make() == dict.fromkeys(ALL, "kept") | {"a/m-ca": "made"} | said


def test_a_namespace_that_comes_later_gets_the_same_tokens(api, make):
    make()
    before = data(api, "a/m-tokens")
    del api.secrets["a", "m-tokens"]
    assert make() == dict.fromkeys(ALL, "kept") | {"a/m-tokens": "made"}
    assert data(api, "a/m-tokens") == before
    api.secrets["b", "m-tokens"]["data"]["token"] = base64.b64encode(b"mine").decode()
    assert make()["b/m-tokens"] == "kept, though its tokens are others than in namespace a"


def test_two_at_once(api, make):
    """Whoever comes second takes what the first has made: nothing is of one and signed by the other."""
    other = {}

    def faster(namespace, secret):
        key = namespace, secret["metadata"]["name"]
        if key in other:
            api.keep(namespace, other.pop(key))

    make()
    other, api.secrets = dict(api.secrets), {}
    first = {"/".join(key): dict(one["data"]) for key, one in other.items()}
    api.on_create = faster
    assert make() == dict.fromkeys(ALL, "kept")
    assert {"/".join(key): one["data"] for key, one in api.secrets.items()} == first


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("ca: [", "is not YAML"),
        ("", "is no plan:\n  Input should be a valid dictionary or instance of Plan"),
        ("ca: {namespace: a}", "is no plan:\n  ca.name: Field required"),
        (PLAN.replace("role: broker", "role: boss"), "certificates.0.role: Input should be 'broker' or 'edge'"),
        (PLAN.replace("role: edge", "role: broker"), "certificates.1: Value error, only an edge joins other clusters"),
        (PLAN.replace("ca: {", "cb: {"), "cb: Extra inputs are not permitted"),
        (PLAN.replace("hosts: [m]", "hosts: ['ä ö']"), "Secret b/m-edge-tls: 'ä ö' is no host"),
    ],
)
def test_a_plan_that_is_none(api, make, plan, reason):
    said = make(plan)
    assert said.startswith("mercast secrets: ")
    assert reason in said


def test_what_is_forbidden_says_what_is_needed(api, make):
    api.forbidden.add("secrets")
    assert make() == (
        "mercast secrets: the Kubernetes API refuses (403): secrets is forbidden: "
        'User "x" cannot get resource "secrets"'
        ": a Role in namespace a must allow to get, create and update secrets"
    )


def test_no_api(api, make, monkeypatch):
    api.go()
    assert make().startswith("mercast secrets: the Kubernetes API does not answer: ")
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert make() == (
        "mercast secrets: the Kubernetes API cannot be asked: this is no pod of Kubernetes: "
        "neither KUBERNETES_SERVICE_HOST nor KUBECONFIG is set"
    )


def test_a_secret_that_lacks_something(api, make):
    api.keep("a", {"metadata": {"name": "m-ca"}, "data": {"tls.crt": ""}})
    assert make() == "mercast secrets: Secret a/m-ca has no tls.crt: delete it, or put that in"
    del api.secrets["a", "m-ca"]
    api.keep("b", {"metadata": {"name": "m-tokens"}, "data": {"token": base64.b64encode(b"x").decode()}})
    assert make() == "mercast secrets: Secret b/m-tokens has no tokens.yaml: delete it, or put that in"
