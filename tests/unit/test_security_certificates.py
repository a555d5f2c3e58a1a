"""Certificates that are made here, what they prove, and what is read of them."""

import asyncio
import os
import ssl
from contextlib import suppress
from time import time

import pytest

from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.main import _behind_tls
from mercast.security import tls
from mercast.security.certificates import expiry, identities_in, make_ca, make_certificate
from mercast.security.errors import SecurityError
from mercast.security.identity import Identity, against_peer, from_uris, identities
from mercast.security.state import Files, Security, read_security
from mercast.security.tls import Door, for_clients, for_peers, reason
from mercast.security.tokens import hash_of

DAY = 86_400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    make_ca(made)
    make_certificate(made, "one", Identity("a/b c", "broker"), ["localhost", "127.0.0.1", "::1"], days=3)
    make_certificate(made, "client", Identity("a/b c", "client"), [])
    return made


def files(folder, name="one"):
    return {"cert": folder / f"{name}.pem", "key": folder / f"{name}.key"}


def test_an_identity_survives_its_certificate(folder):
    assert identities_in((folder / "one.pem").read_bytes()) == [Identity("a/b c", "broker")]
    assert identities_in((folder / "ca.pem").read_bytes()) == []
    assert str(Identity("a/b c", "edge")) == "mercast://cluster/a%2Fb%20c/edge"


def test_keys_are_for_their_owner_only(folder):
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.glob("*.key"))


def test_a_ca_is_made_once(folder):
    before = (folder / "ca.pem").read_bytes()
    make_ca(folder)
    assert (folder / "ca.pem").read_bytes() == before


def test_expiry_is_that_of_the_first_to_end(folder):
    one, ca = (folder / "one.pem").read_bytes(), (folder / "ca.pem").read_bytes()
    assert expiry(one) - time() == pytest.approx(3 * DAY, abs=60)
    assert expiry(ca + one) == expiry(one) < expiry(ca)


@pytest.mark.parametrize(
    ("uris", "right"),
    [
        (["mercast://cluster/here/broker"], True),
        (["spiffe://x", "mercast://cluster/here/edge"], True),
        (["mercast://cluster/here/client"], False),
        (["mercast://cluster/there/broker"], False),
        (["mercast://cluster/here/broker/more"], False),
        (["mercast://cluster/here/king"], False),
        (["https://cluster/here/broker"], False),
        ([], False),
    ],
)
def test_who_is_taken_for_a_broker(uris, right):
    why = against_peer(from_uris(uris), "here")
    assert (why == "") is right
    assert right or why.endswith("expected mercast://cluster/here/broker or mercast://cluster/here/edge among its URIs")


def test_a_certificate_without_names_proves_nothing():
    assert identities(None) == identities({}) == []


@pytest.mark.parametrize(("name", "host"), [("", "localhost"), ("x" * 65, "localhost"), ("x", "hüst")])
def test_names_that_no_certificate_has(folder, name, host):
    with pytest.raises(SecurityError, match=r"is no (name|host)"):
        make_certificate(folder, name, Identity("a", "broker"), [host])


def test_a_folder_without_a_ca(tmp_path):
    with pytest.raises(SecurityError, match=r"the CA in .* cannot be read"):
        make_certificate(tmp_path, "x", Identity("a", "broker"), [])


# -- all files together ------------------------------------------------------------------------------------------------


def test_nothing_given_is_nothing_asked_for():
    assert read_security(Files(), ["a"]) == Security()


def test_all_is_read(folder, tmp_path):
    tokens, admin = tmp_path / "tokens", tmp_path / "admin"
    tokens.write_text("tokens:\n")
    admin.write_text("secret\n")
    one, key, ca = folder / "one.pem", folder / "one.key", folder / "ca.pem"
    read = read_security(Files(one, key, ca, one, key, ca, tokens=tokens, admin_token=admin), ["a/b c"])
    assert read.clients.verify_mode is read.called.verify_mode is ssl.CERT_REQUIRED
    assert (len(read.tokens), read.admin) == (0, hash_of("secret"))
    assert read.expiry.keys() == {"tls_cert", "tls_client_ca", "peer_cert", "peer_ca"}
    assert read_security(Files(), ["a"], "given").admin == hash_of("given")


def test_mistakes_name_their_key(folder, tmp_path):
    one, key, ca = folder / "one.pem", folder / "one.key", folder / "ca.pem"
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("")
    binary.write_bytes(b"\xff")
    for wrong, told in (
        (Files(tls_cert=empty, tls_key=key), "tls_cert = '.*': there is no certificate in it, expected PEM"),
        (Files(tls_cert=tmp_path / "no", tls_key=key), "tls_cert = '.*no': No such file"),
        (Files(tls_cert=one, tls_key=folder / "client.key"), "tls_cert = .* with the key .*: key values mismatch"),
        (Files(peer_cert=one, peer_key=key, peer_ca=empty), "peer_ca = .*: there is no certificate"),
        (Files(peer_cert=folder / "client.pem", peer_key=key, peer_ca=ca), "peer_cert = .*: the certificate names"),
        (Files(tokens=empty), "tokens = .*: expected one key"),
        (Files(tokens=binary), "tokens = .*: it is not text"),
        (Files(admin_token=empty), "admin_token = .*: the file is empty"),
    ):
        with pytest.raises(SecurityError, match=told):
            read_security(wrong, ["a/b c"])


# -- the door ----------------------------------------------------------------------------------------------------------


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.peer = transport.get_extra_info("ssl_object").getpeercert()

    def data_received(self, data):
        self.transport.write(data + str(identities(self.peer)[0]).encode())


async def through_the_door(context, calling, say=b"x", seconds=5):
    """What is answered, and what the door has said of those who failed."""
    failures = []
    serve = lambda: Door(Echo, context, seconds, lambda *said: failures.append(said), set())  # noqa: E731
    server = await asyncio.get_running_loop().create_server(serve, "127.0.0.1", 0)
    answer = b""
    try:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=calling)
        writer.write(say)
        answer = await asyncio.wait_for(reader.read(1000), 30)
        writer.close()
    except OSError:
        pass
    async with asyncio.timeout(30):
        while not answer and not failures:
            await asyncio.sleep(0)
    server.close()
    return answer, failures


def test_through_the_door(folder):
    called, calling = for_peers(**files(folder), ca=folder / "ca.pem")
    assert asyncio.run(through_the_door(called, calling)) == (b"xmercast://cluster/a%2Fb%20c/broker", [])


def test_no_file_descriptor_is_left_for_the_door(folder, monkeypatch):
    called, calling = for_peers(**files(folder), ca=folder / "ca.pem")
    monkeypatch.setattr(os, "dup", lambda _: os.close(-1))
    answer, [(address, why)] = asyncio.run(through_the_door(called, calling))
    assert (answer, why) == (b"", "Bad file descriptor")
    assert address.startswith("127.0.0.1:")


def test_the_door_tells_of_those_who_fail(folder):
    called, _ = for_peers(**files(folder), ca=folder / "ca.pem")
    answer, [(address, why)] = asyncio.run(through_the_door(called, None, b"no TLS at all, only words"))
    assert answer == b""
    assert address.startswith("127.0.0.1:")
    assert "does not speak TLS" in why
    bare = ssl.create_default_context(cafile=folder / "ca.pem")
    answer, [(_, why)] = asyncio.run(through_the_door(called, bare))
    assert "peer did not return a certificate" in why


def test_the_door_does_not_wait_for_ever(folder):
    context = for_clients(**files(folder), client_ca=None)
    _, [(_, why)] = asyncio.run(through_the_door(context, None, b"", seconds=0.1))
    assert "longer than 0.1 seconds" in why


def test_more_than_can_be_served_are_turned_away(folder, monkeypatch):
    monkeypatch.setattr(tls, "MOST_OPENING", 0)
    called, calling = for_peers(**files(folder), ca=folder / "ca.pem")
    answer, [(address, why)] = asyncio.run(through_the_door(called, calling))
    assert (answer, why) == (b"", "too many others are at it: try again")
    assert address.startswith("127.0.0.1:")


def test_a_crowd_at_one_port_keeps_nobody_from_another(folder, monkeypatch):
    monkeypatch.setattr(tls, "MOST_OPENING", 1)
    called, calling = for_peers(**files(folder), ca=folder / "ca.pem")

    async def story():
        broker = Broker(BrokerConfig(id=1, matcher="scan", handshake_seconds=1000))
        loop = asyncio.get_running_loop()
        doors = [_behind_tls(broker, Echo, lambda _: called) for _ in range(2)]
        servers = [await loop.create_server(door, "127.0.0.1", 0) for door in doors]
        ports = [server.sockets[0].getsockname() for server in servers]
        hanging = await asyncio.open_connection(*ports[0])
        turned_away = await asyncio.open_connection(*ports[0])
        with suppress(ConnectionError):
            assert await turned_away[0].read() == b""
        reader, writer = await asyncio.open_connection(*ports[1], ssl=calling)
        writer.write(b"x")
        assert (await reader.read(1000)).startswith(b"xmercast:")
        for one in (hanging[1], turned_away[1], writer, *servers):
            one.close()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_reasons_are_never_empty():
    assert reason(ConnectionAbortedError()) == "ConnectionAbortedError"
    assert "broke it off" in reason(ConnectionResetError())
