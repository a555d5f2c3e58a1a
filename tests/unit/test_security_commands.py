"""mercast token and mercast cert, and the variables by which clients use what they make."""

import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from mercast.cli.cert import cert
from mercast.cli.token import token
from mercast.client.errors import MercastError
from mercast.client.options import options
from mercast.security.certificates import identities_in
from mercast.security.identity import Identity
from mercast.security.tokens import hash_of, read_tokens


def test_a_token_is_told_once_and_kept_as_a_hash(tmp_path, capsys):
    file = tmp_path / "tokens.yaml"
    token("feed", publish=["a", "b.*"], file=file)
    token("desk", subscribe=["*"], deny_subscribe=["b"], publish_events_per_second=5, file=file)
    feed, desk = capsys.readouterr().out.split()
    assert feed not in file.read_text()
    tokens = read_tokens(file.read_text())
    assert tokens.find(hash_of(feed)).publish.allow == ("a", "b.*")
    assert tokens.find(hash_of(desk)).subscribe == (("*",), ("b",))
    assert tokens.find(hash_of(feed))[-2:] == (0, 0)
    assert tokens.find(hash_of(desk))[-2:] == (5, 0)
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "rules", "told"),
    [
        ("feed", {}, "token 'feed' is given twice"),
        ("other", {"publish": ["*x"]}, "is not a pattern"),
        ("other", {"publish_bytes_per_second": -1}, "is -1, expected a whole number"),
        ("", {}, "is not a name"),
    ],
)
def test_a_mistake_leaves_the_file_as_it_was(tmp_path, name, rules, told):
    file = tmp_path / "tokens.yaml"
    token("feed", file=file)
    before = file.read_text()
    with pytest.raises(SystemExit, match=told):
        token(name, **rules, file=file)
    assert file.read_text() == before


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SystemExit, match="No such file"):
        token("feed", file=tmp_path / "no" / "tokens.yaml")


def test_certificates(tmp_path, capsys):
    cert("one", cluster="blue", role="edge", folder=tmp_path)
    assert capsys.readouterr().out.endswith("mercast://cluster/blue/edge\n")
    before = (tmp_path / "one.pem").read_bytes()
    assert identities_in(before) == [Identity("blue", "edge")]
    with pytest.raises(SystemExit, match="is there already"):
        cert("one", folder=tmp_path)
    cert("one", folder=tmp_path, renew=True)
    assert (tmp_path / "one.pem").read_bytes() != before


@pytest.mark.parametrize("name", ["ca", "a/b", "", ".hidden"])
def test_names_of_files(tmp_path, name):
    with pytest.raises(SystemExit, match="is no name for files"):
        cert(name, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_about_certificates(tmp_path):
    with pytest.raises(SystemExit, match="--days is at least 1"):
        cert("one", days=0, folder=tmp_path)
    with pytest.raises(SystemExit, match="is no host"):
        cert("one", host=["hüst"], folder=tmp_path)


def test_clients_take_their_certificates_from_variables(tmp_path, monkeypatch):
    cert("me", role="client", folder=tmp_path)
    monkeypatch.setenv("MERCAST_CA", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("MERCAST_CERT", str(tmp_path / "me.pem"))
    monkeypatch.setenv("MERCAST_KEY", str(tmp_path / "me.key"))
    how = options("mercasts://a", None, None, None, 1.0)
    context = how.tls_for(how.addresses[0])
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert [one["subject"] for one in context.get_ca_certs()] == [((("commonName", "mercast CA"),),)]
    monkeypatch.setenv("MERCAST_CA", "/no/such")
    with pytest.raises(MercastError, match=r"certificates cannot be read \(/no/such, .*No such file"):
        options("a", None, True, None, 1.0)


def test_no_token_is_lost_if_many_are_made_at_once(tmp_path, capsys):
    file, names = tmp_path / "tokens.yaml", [f"t{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(partial(token, file=file), names))
    made = capsys.readouterr().out.split()
    tokens = read_tokens(file.read_text())
    assert {tokens.find(hash_of(one)).name for one in made} == set(names)
