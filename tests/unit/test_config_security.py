"""What a broker must have before it listens beyond its own machine, and what goes together."""

import pytest

from mercast.broker.addresses import parse_address
from mercast.broker.config import ConfigError, load
from mercast.broker.config_security import half_protected
from mercast.cli.admin_port import read_token
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity
from mercast.security.state import Files
from mercast.security.tokens import hash_of

OPEN = {"advertise": "10.0.0.1:1", "peer_advertise": "10.0.0.1:2"}


@pytest.fixture
def given(tmp_path):
    make_ca(tmp_path)
    make_certificate(tmp_path, "one", Identity("default", "broker"), [])
    (tmp_path / "tokens.yaml").write_text("tokens:\n")
    cert, key, ca = (tmp_path / name for name in ("one.pem", "one.key", "ca.pem"))
    return {
        "tokens": {"tokens": tmp_path / "tokens.yaml"},
        "tls": {"tls_cert": cert, "tls_key": key},
        "client_ca": {"tls_client_ca": ca},
        "peers": {"peer_cert": cert, "peer_key": key, "peer_ca": ca},
    }


def mistakes(**flags):
    try:
        load(None, {"id": 1} | OPEN | flags)
    except ConfigError as error:
        return str(error).splitlines()[1:]
    return []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_loopback_needs_nothing(host):
    assert parse_address(f"{host}:1").is_loopback
    assert mistakes(listen=f"{host}:1", peer_listen=f"{host}:2", admin_listen=f"{host}:3") == []


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "broker.example.org"])
def test_other_addresses_need_protection(host, given):
    everywhere = dict.fromkeys(("listen", "peer_listen", "admin_listen"), f"{host}:1")
    listen, peers, admin = mistakes(**everywhere)
    assert listen == (
        f"  listen (--listen): {host}:1 can be reached by others, and clients need neither token nor TLS: give tokens "
        "(mercast token) or tls_cert (mercast cert); or listen at 127.0.0.1, or use --insecure"
    )
    assert "peer_listen" in peers
    assert "admin_listen" in admin
    assert mistakes(**everywhere, insecure=True) == []
    for some in (given["tls"], given["tokens"]):
        assert mistakes(**everywhere, **some, **given["peers"], admin_token="x") == []


def test_what_goes_together(given):
    assert mistakes(tls_cert=given["tls"]["tls_cert"]) == [
        "  tls_key (by default): it is not given, but goes together with tls_cert"
    ]
    assert mistakes(peer_ca=given["peers"]["peer_ca"], peer_key=given["peers"]["peer_key"]) == [
        "  peer_cert (by default): it is not given, but goes together with peer_key and peer_ca"
    ]
    assert "clients have no certificates without TLS" in mistakes(**given["client_ca"])[0]


def test_half_of_protection_is_told(given):
    def told(**flags):
        return [what for _, what in half_protected(load(None, {"id": 1, "listen": "10.0.0.1:1"} | flags))]

    assert "tokens travel without TLS" in told(**given["tokens"])[0]
    assert "TLS without tokens" in told(**given["tls"])[0]
    assert told(**given["tls"], **given["tokens"]) == told(**given["tls"], **given["client_ca"]) == []
    assert told(**given["tokens"], listen="127.0.0.1:1") == []
    admin = {"listen": "127.0.0.1:1", "admin_listen": "10.0.0.1:2", "admin_token": "secret"}
    assert "admin_token travels without TLS" in told(**admin)[0]
    assert told(**admin, admin_cert=given["tls"]["tls_cert"], admin_key=given["tls"]["tls_key"]) == []


def test_files_that_are_not_there():
    for key in Files._fields:
        given = "" if key == "admin_token" else " = '/no/such'"
        assert mistakes(**{key: "/no/such"})[0].startswith(f"  {key}{given} (--{key.replace('_', '-')}): there is")


def test_the_token_of_admins(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    assert load(None, {"id": 1, "admin_token": str(tmp_path / "token")}).security().admin == hash_of("secret")
    config = load(None, {"id": 1, "admin_token": "secret"})
    assert config.security().admin == hash_of("secret")
    assert "secret" not in repr(config)


def test_mistakes_in_files_are_those_of_the_configuration(given):
    given["tokens"]["tokens"].write_text("[")
    with pytest.raises(ConfigError, match=r"^tokens = '.*tokens.yaml': it is not YAML"):
        load(None, {"id": 1} | given["tokens"]).security()


def test_what_may_be_a_token_is_not_told():
    with pytest.raises(ConfigError) as raised:
        load(None, {"id": 1, "admin_token": "s3/cret"})
    assert "s3/cret" not in str(raised.value)
    assert "admin_token (--admin-token): there is no file of that name" in str(raised.value)
    with pytest.raises(ValueError, match="there is no file of that name") as told:
        read_token("s3/cret")
    assert "s3/cret" not in str(told.value)
