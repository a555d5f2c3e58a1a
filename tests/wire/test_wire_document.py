"""docs/wire.md tells the truth: its example runs, its bytes are ours, its tables are the code's."""

import os
import re
import socket
import subprocess
import sys
from struct import Struct
from textwrap import wrap

import wire_document

from mercast.content import Event, EventId
from mercast.limits import DEFAULTS
from mercast.protocol.stimuli import REQUESTS
from mercast.wire import events, peers, replies, requests
from mercast.wire.door import RECORDS
from mercast.wire.events import encode_content
from mercast.wire.frames import FRAME_BYTES, HELLO_BYTES, Framing, Kind, frame
from mercast.wire.hello import hello
from mercast.wire.requests import CONTENT_BYTES

TEXT = wire_document.DOCUMENT.read_text()
ATTRIBUTES = {"symbol": "ACME", "price": 99.5}
CONTENT = encode_content("stock.quote", ATTRIBUTES, b"hello")
EVENT = Event(EventId(3, 1, 42), "stock.quote", ATTRIBUTES, 1_700_000_000_000_000_000, "example.1", payload=b"hello")
GREETED = {"broker": 3, "incarnation": 1, "client": "example.1", "brokers": ["10.0.0.2:7470"], "version": "0.1.0"}

SESSION = [
    (">", "HELLO", hello(mercast=[1, 1], role="client", name="example", token="")),
    ("<", "HELLO: version 1, the client is example.1", hello(mercast=1, **GREETED)),
    (">", "SUBSCRIBE, request 1", requests.subscribe(1, "stock.quote", "price < 100", True)),
    ("<", "ANSWER: done", replies.answer(1)),
    ("<", "SETTLED: nobody is missing", replies.settled(1, [])),
    (">", "PUBLISH, request 2", requests.publish(2, CONTENT)),
    ("<", "PING", frame(Kind.PING, b"\0\1")),
    ("<", "EVENT for subscription 1", replies.event(EVENT, (1,))),
    ("<", "RECEIPTS: request 2 found 0 brokers", replies.receipts(2, [0])),
    (">", "PONG", frame(Kind.PONG, b"\0\1")),
    (">", "LEAVE", requests.leave()),
]


def described():
    for who, what, data in SESSION:
        yield f"{who} {what}"
        yield from (f"    {line}" for line in wrap(data.hex(" "), 3 * 32))


def test_the_session_in_hex_is_what_we_would_say():
    """REWRITE=1 writes it anew."""
    lines = list(described())
    if "REWRITE" in os.environ:
        before = "\n".join(wire_document.session())
        wire_document.DOCUMENT.write_text(TEXT.replace(f"```\n{before}\n```", "\n".join(["```", *lines, "```"])))
    assert wire_document.session() == lines


class Broker:
    """Plays the broker's part of the session, and takes down what the client says."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(30)
        self.heard = []

    def play(self):
        connection, _ = self.server.accept()
        connection.settimeout(30)
        with connection:
            expected = [said for said in SESSION if said[1] != "LEAVE"]
            for who, _, data in expected:
                if who == "<":
                    connection.sendall(data)
                else:
                    self.heard.append(self._read(connection, len(data)))

    def _read(self, connection, count):
        data = b""
        while len(data) < count and (more := connection.recv(count - len(data))):
            data += more
        return data


def test_the_example_client_says_what_we_would_say(tmp_path):
    script = tmp_path / "client.py"
    script.write_text(wire_document.example_client())
    broker = Broker()
    with broker.server:
        address = [str(part) for part in broker.server.getsockname()]
        client = subprocess.Popen([sys.executable, "-I", script, *address], stdout=subprocess.PIPE, text=True)
        try:
            broker.play()
            said, _ = client.communicate(timeout=30)
        finally:
            client.kill()
    assert broker.heard == [data for who, what, data in SESSION if who == ">" and what != "LEAVE"]
    assert said.splitlines() == [
        "connected as example.1",
        "without []",
        "request 2 found 0 destinations stock.quote {'symbol': 'ACME', 'price': 99.5} b'hello'",
    ]
    assert client.returncode == 0


def test_the_example_client_is_short_and_stands_alone():
    source = wire_document.example_client()
    assert len([line for line in source.splitlines() if line.strip()]) <= 42
    assert re.findall(r"^(?:import|from) (.*)", source, re.MULTILINE) == ["json, socket, struct, sys"]


def test_the_session_is_read_as_it_is_described():
    for who, what, data in SESSION:
        ((kind, _),) = Framing().feed(data)
        assert what.startswith(Kind(kind).name), (who, what)


def test_every_kind_is_in_the_table():
    told = dict(re.findall(r"^\| (\d+) \| ([A-Z]+) \|", TEXT, re.MULTILINE))
    assert told == {str(kind.value): kind.name for kind in Kind}


def table(heading):
    """(offset, bytes) of the fields at fixed offsets in the table under a heading."""
    part = TEXT[TEXT.index(f"### {heading}\n") :]
    part = part[: part.index("\n#", 4)]
    return [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| (\d+) \|", part, re.MULTILINE)]


def fields(struct):
    sizes = [Struct(f">{code}").size for code in struct.format.removeprefix(">")]
    return [(sum(sizes[:k]), size) for k, size in enumerate(sizes)]


def test_the_headers_are_laid_out_as_told():
    assert table("PUBLISH") == fields(requests._PUBLISH)
    assert table("Content") == fields(events._CONTENT)
    assert table("Stamped event") == fields(events._STAMP)
    assert table("FORWARD") == fields(peers._FORWARD)
    for heading, struct in (
        ("Content", events._CONTENT),
        ("Stamped event", events._STAMP),
        ("FORWARD", peers._FORWARD),
    ):
        assert f"h: bytes of this header, {struct.size};" in TEXT[TEXT.index(f"### {heading}\n") :]


def test_the_limits_told_are_the_limits_kept():
    for limit in (HELLO_BYTES, FRAME_BYTES, CONTENT_BYTES, DEFAULTS.payload_bytes, REQUESTS[-1], RECORDS):
        assert re.search(rf"(?<![\d,]){limit:,}(?!,?\d)", TEXT), limit
    assert f"{peers.TOGETHER_BYTES // 1024} KiB" in TEXT
