"""Garbage on every port: the culprit is cut off with a reason, and harms nobody else."""

import random
import socket
import threading
from contextlib import ExitStack, contextmanager

import pytest
from live import PATIENCE, Mesh, agree, ask, metrics, rss, until

from mercast import blocking
from mercast.content import Event, EventId
from mercast.protocol.messages import Forward, Packet
from mercast.wire import requests
from mercast.wire.frames import FRAME_BYTES, HELLO_BYTES, PING_BYTES, Framing, Kind, frame
from mercast.wire.hello import VERSIONS, hello, read_json
from mercast.wire.peers import encode_message

HANDSHAKE = 1.0
MIB = 1024 * 1024
MOST_GROWTH = 64 * MIB
HALF_OPEN = 100
FLOOD = 256 * MIB
NOT_READ = 32 * MIB

HTTP = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"
CLIENT_HELLO = hello(mercast=VERSIONS, role="client", name="mallory")
PEER_HELLO = hello(
    mercast=VERSIONS, role="broker", broker=99, incarnation=1, cluster="default", strategy="ddbr", peer="127.0.0.1:1",
    clients="127.0.0.1:1", members=[],
)  # fmt: skip
TOO_LARGE = (FRAME_BYTES + 1).to_bytes(4, "big")


def length(number):
    return number.to_bytes(4, "big")


FIRST_WORDS = {
    "random bytes": (random.Random(5).randbytes(5000), "it may have 1 to"),
    "http": (HTTP, "it may have 1 to"),
    "oversized": (length(HELLO_BYTES + 1) + b"\x01", f"a frame of {HELLO_BYTES + 1} bytes"),
    "four gigabytes": (b"\xff" * 4 + b"\x01", "a frame of 4294967295 bytes"),
    "empty frame": (length(0) + b"\x01", "a frame of 0 bytes"),
    "not a HELLO": (requests.subscribe(1, None, "", True), "the first frame is a HELLO"),
    "HELLO of no JSON": (frame(Kind.HELLO, b"{"), "not JSON"),
    "HELLO of a list": (frame(Kind.HELLO, b"[]"), "not a JSON object"),
    "half a HELLO": (CLIENT_HELLO[:20], f"no HELLO within {HANDSHAKE} s"),
    "half a length": (b"\x00\x00", f"no HELLO within {HANDSHAKE} s"),
    "not a word": (b"", f"no HELLO within {HANDSHAKE} s"),
}
"""On both ports that speak frames."""

TO_CLIENT_PORT = {
    "a broker": (PEER_HELLO, "brokers use the peer port"),
    "another version": (hello(mercast=[7, 9], role="client"), "no common version"),
    "a name that is none": (hello(mercast=VERSIONS, role="client", name=5), "the field 'name' is int, not str"),
    "oversized later": (CLIENT_HELLO + TOO_LARGE + b"\x10", f"a frame of {FRAME_BYTES + 1} bytes"),
    "half a PUBLISH": (CLIENT_HELLO + frame(Kind.PUBLISH, b"\x00"), "a PUBLISH frame ends in its header"),
    "a PUBLISH of noise": (CLIENT_HELLO + frame(Kind.PUBLISH, bytes(5) + b"\xff" * 90), "event"),
    "a PING too long": (CLIENT_HELLO + frame(Kind.PING, bytes(PING_BYTES + 1)), "a PING of 65 bytes; it may have 64"),
    "a SUBSCRIBE of noise": (CLIENT_HELLO + frame(Kind.SUBSCRIBE, b"\x00\xff"), "not JSON"),
    "a SUBSCRIBE without number": (CLIENT_HELLO + frame(Kind.SUBSCRIBE, b"{}"), "the field 'request' is missing"),
}

TO_PEER_PORT = {
    "another version": (PEER_HELLO.replace(b"[1,1]", b"[7,9]"), "no common version"),
    "a client": (CLIENT_HELLO, "clients use the client port"),
    "an impossible number": (PEER_HELLO.replace(b":99,", b":-9,"), "brokers have numbers"),
    "members that are none": (PEER_HELLO.replace(b"[]", b"{}"), "members are a list"),
    "oversized later": (PEER_HELLO + TOO_LARGE + b"\x30", f"a frame of {FRAME_BYTES + 1} bytes"),
    "half a FORWARD": (PEER_HELLO + frame(Kind.FORWARD, b"\x0a\x00"), "FORWARD"),
    "a MESSAGE of noise": (PEER_HELLO + frame(Kind.MESSAGE, b"\xff"), "a message cannot be read"),
    "a MESSAGE of another kind": (PEER_HELLO + frame(Kind.MESSAGE, b'{"is": "Event"}'), ""),
    "a PING too long": (PEER_HELLO + frame(Kind.PING, bytes(PING_BYTES + 1)), "a PING of 65 bytes; it may have 64"),
    "a member nowhere": (
        PEER_HELLO + frame(Kind.MEMBERS, b'{"members": [[5, "nowhere", "", 0]]}'),
        "'nowhere' is not an address",
    ),
    "a member that is none": (PEER_HELLO + frame(Kind.MEMBERS, b'{"members": [[-1, "", "", 0]]}'), "a member is"),
}


@pytest.fixture(scope="module")
def mesh():
    patient = ["--misses", "30"]  # a busy machine is no attack
    options = ["--handshake-seconds", str(HANDSHAKE), "--link-queue-bytes", str(FRAME_BYTES), *patient]
    with Mesh(2, [(1, 2)], options=options) as brokers:
        yield brokers


@pytest.fixture
def others(mesh):
    """Traffic of others, from one broker to the other, all through the test: none of it may be lost or doubled."""
    with blocking.connect(mesh[1].client) as publisher, blocking.connect(mesh[2].client) as subscriber:
        events = subscriber.subscribe("tick")
        over = threading.Event()
        sent = []

        def publish():
            while not over.is_set():
                assert publisher.publish("tick", {"n": len(sent)}).destinations == 1
                sent.append(len(sent))

        def more():
            so_far = len(sent)
            until(lambda: len(sent) > so_far, "traffic of others")

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            more()
            yield
            more()
        finally:
            over.set()
            thread.join(PATIENCE)
        assert [events.get(PATIENCE).attributes["n"] for _ in sent] == sent
    agree(mesh.brokers.values())


@contextmanager
def calling(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        yield connection


def provoke(address, said):
    """All that is answered, up to the end of the connection."""
    with calling(address) as connection:
        connection.sendall(said)
        return hear_out(connection)


def insist(connection, said, again):
    """Say more and more, and hear nothing."""
    connection.sendall(said)
    while True:
        connection.sendall(again)


def hear_out(connection):
    answer = b""
    while data := connection.recv(65536):
        answer += data
    return answer


def last_words(answer):
    kind, body = Framing(FRAME_BYTES).feed(answer)[-1]
    assert kind == Kind.ERROR
    return read_json(body)


def denied(broker):
    found = metrics(broker)
    return sum(found.get(("mercast_connections_denied_total", code), 0) for code in ("protocol", "version"))


@pytest.mark.parametrize(
    ("port", "what"),
    [(port, what) for port in ("client", "peer") for what in FIRST_WORDS]
    + [("client", what) for what in TO_CLIENT_PORT]
    + [("peer", what) for what in TO_PEER_PORT],
)
def test_the_culprit_is_told_why_and_counted(mesh, port, what):
    said, reason = (FIRST_WORDS | (TO_CLIENT_PORT if port == "client" else TO_PEER_PORT))[what]
    before = denied(mesh[1])
    told = last_words(provoke(getattr(mesh[1], port), said))
    assert told["code"] == ("version" if what == "another version" else "protocol")
    assert reason in told["reason"]
    assert denied(mesh[1]) == before + 1


def test_nobody_else_is_harmed(mesh, others):
    everything = [
        (getattr(broker, port), said)
        for broker in mesh.brokers.values()
        for port, some in (("client", FIRST_WORDS | TO_CLIENT_PORT), ("peer", FIRST_WORDS | TO_PEER_PORT))
        for said, _ in some.values()
    ]
    random.Random(3).shuffle(everything)
    threads = [threading.Thread(target=provoke, args=one) for one in everything]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sum(map(denied, mesh.brokers.values())) >= len(everything)


def test_half_frames_take_little_memory(mesh, others):
    """As much as may come before a HELLO, by many at once, who then say no more; and much more than may come."""
    before = [rss(broker.pid) for broker in mesh.brokers.values()]
    count = denied(mesh[1])
    half = length(HELLO_BYTES) + b"\x01" + bytes(HELLO_BYTES - 100)
    with ExitStack() as held:
        ports = [mesh[1].client, mesh[1].peer]
        waiting = [held.enter_context(calling(port)) for port in ports * (HALF_OPEN // 2)]
        for connection in waiting:
            connection.sendall(half)
        for connection in waiting:
            assert "no HELLO" in last_words(hear_out(connection))["reason"]
    for port in ports:
        with calling(port) as connection, pytest.raises(ConnectionError):
            connection.sendall(b"\xff" * FLOOD)
    until(lambda: denied(mesh[1]) == count + HALF_OPEN + len(ports), lambda: f"{denied(mesh[1])} after {count}")
    for broker, at_first in zip(mesh.brokers.values(), before, strict=True):
        assert rss(broker.pid) - at_first < MOST_GROWTH


def test_a_peer_that_does_not_read_is_cut_off_and_harms_nobody(mesh, others):
    memory = rss(mesh[1].pid)
    ping = frame(Kind.PING, bytes(PING_BYTES))
    with calling(mesh[1].peer) as connection, pytest.raises(ConnectionError):
        insist(connection, PEER_HELLO + ping * (NOT_READ // len(ping)), ping)
    assert rss(mesh[1].pid) - memory < MOST_GROWTH


def test_an_event_that_cannot_be_read_is_counted_and_the_link_stays(mesh):
    noise = encode_message(Forward((1).to_bytes(2, "little"), 1, (Packet(Event(EventId(7, 1, 1), "q", {}, 0, "p")),)))
    noise = noise[:-2] + b"[]"  # the attributes
    with calling(mesh[1].peer) as connection:
        connection.sendall(PEER_HELLO + noise + frame(Kind.PING, b"there?"))
        answer, framing = [], Framing(FRAME_BYTES)
        while (Kind.PONG, b"there?") not in answer:
            answer += framing.feed(connection.recv(65536))
        assert metrics(mesh[1])["mercast_events_dropped_total", "unreadable"] == 1


def test_frames_of_the_other_port_are_skipped(mesh):
    """Kinds that a port does not know: a newer version may say more."""
    ping = frame(Kind.PING, b"there?")
    for port, said in (
        (mesh[1].client, CLIENT_HELLO + frame(Kind.FORWARD, b"\xff") + frame(Kind.MESSAGE, b"\xff") + frame(200, b"")),
        (mesh[1].peer, PEER_HELLO + requests.subscribe(1, None, "", True) + frame(Kind.PUBLISH, b"\xff")),
    ):
        with calling(port) as connection:
            connection.sendall(said + ping)
            framing, kinds = Framing(FRAME_BYTES), []
            while Kind.PONG not in kinds:
                kinds += [kind for kind, _ in framing.feed(connection.recv(65536))]
            assert Kind.ERROR not in kinds


def test_a_peers_last_words_are_only_logged(mesh):
    odd = frame(Kind.ERROR, b'{"event": 1, "neighbour": [], "code": "protocol", "reason": "odd words"}')
    with calling(mesh[2].peer) as connection:
        connection.sendall(PEER_HELLO + odd)
        until(lambda: "odd words" in mesh[2].tail(), mesh[2].tail)


@pytest.mark.parametrize(
    "said",
    [
        random.Random(6).randbytes(2000) + b"\r\n\r\n",
        CLIENT_HELLO + b"\r\n\r\n",
        b"GET /" + b"a" * MIB + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["random bytes", "a client", "oversized"],
)
def test_the_admin_port_refuses_what_is_no_http(mesh, others, said):
    try:
        answer = provoke(mesh[1].admin, said)
    except ConnectionError:  # closed before it had taken all: nothing could be said
        answer = b"HTTP/1.1 400 "
    assert answer.split()[1] == b"400"
    assert ask(mesh[1], "readyz")["ready"]


def test_half_a_request_to_the_admin_port_holds_nothing_up(mesh, others):
    with calling(mesh[1].admin) as connection:
        connection.sendall(HTTP[:20])
        assert ask(mesh[1], "readyz")["ready"]
