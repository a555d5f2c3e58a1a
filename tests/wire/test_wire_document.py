"""docs/wire.md tells the truth: its example runs, its bytes are ours, its tables are the code's."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from functools import cache
from itertools import count
from pathlib import Path
from struct import Struct
from textwrap import wrap
from unittest.mock import patch

import pytest
import wire_document

from mercast import broker, wire
from mercast.broker import sessions
from mercast.broker.addresses import parse_address
from mercast.broker.config import BrokerConfig
from mercast.broker.main import running
from mercast.limits import DEFAULTS
from mercast.processes import free_addresses
from mercast.protocol.stimuli import REQUESTS
from mercast.wire import events, peers, replies, requests
from mercast.wire.door import RECORDS
from mercast.wire.events import encode_content
from mercast.wire.frames import FRAME_BYTES, HELLO_BYTES, Framing, Kind, ProtocolError, frame
from mercast.wire.hello import common_version, hello, read_json
from mercast.wire.requests import CONTENT_BYTES

TEXT = wire_document.DOCUMENT.read_text()
ATTRIBUTES = {"symbol": "ACME", "price": 99.5}
CONTENT = encode_content("stock.quote", ATTRIBUTES, b"hello")
SECONDS = 1_700_000_000

CLIENT = [
    ("HELLO", hello(mercast=[1, 1], role="client", name="example", token=""), [Kind.HELLO]),
    ("SUBSCRIBE, request 1", requests.subscribe(1, "stock.quote", "price < 100", True), [Kind.ANSWER, Kind.SETTLED]),
    ("PUBLISH, request 2", requests.publish(2, CONTENT), [Kind.EVENT, Kind.RECEIPTS]),
    ("PING", frame(Kind.PING, b"\0\1"), [Kind.PONG]),
    ("LEAVE", requests.leave(), []),
]
"""What a client says, and the kinds of what it then hears."""

PINGED = [("<", "PING", frame(Kind.PING, b"\0\1")), (">", "PONG", frame(Kind.PONG, b"\0\1"))]


@cache
def session():
    """What a client and a broker say, in order: (who, what, bytes). No run differs from another."""
    with (
        patch("time.time", lambda: float(SECONDS)),
        patch("time.time_ns", lambda: SECONDS * 10**9),
        patch.object(sessions, "_numbers", count(1)),
        patch.object(sessions, "__version__", "0.1.0"),
    ):
        return asyncio.run(talk())


async def talk():
    said = []
    (address,) = free_addresses(1)
    where = {"listen": address, "peer_listen": "127.0.0.1:0", "admin_listen": ""}
    async with running(BrokerConfig(id=3, matcher="scan", **where)):
        reader, writer = await asyncio.open_connection(*parse_address(address))
        for what, data, kinds in CLIENT:
            said.append((">", what, data))
            writer.write(data)
            for kind in kinds:
                length = await asyncio.wait_for(reader.readexactly(4), 30)
                body = await asyncio.wait_for(reader.readexactly(int.from_bytes(length, "big")), 30)
                assert body[0] == kind
                said.append(("<", heard(kind, body[1:]), length + body))
        writer.close()
    return said


def heard(kind, body):
    match kind:
        case Kind.HELLO:
            return "HELLO: version {mercast}, the client is {client}".format(**read_json(body))
        case Kind.ANSWER:
            return f"ANSWER: {replies.read_answer(body)[1] or 'done'}"
        case Kind.SETTLED:
            return f"SETTLED: {replies.read_settled(body)[1] or 'nobody'} is missing"
        case Kind.EVENT:
            return "EVENT for subscription {}".format(*replies.read_event(body).subscriptions)
        case Kind.RECEIPTS:
            request, (found,) = replies.read_receipts(body)
            return f"RECEIPTS: request {request} found {found} destination{'' if found == 1 else 's'}"
    return kind.name


def described():
    for who, what, data in session():
        yield f"{who} {what}"
        yield from (f"    {line}" for line in wrap(data.hex(" "), 3 * 32))


def test_the_session_in_hex_is_what_we_would_say():
    """REWRITE=1 writes it anew."""
    lines = list(described())
    if "REWRITE" in os.environ:
        before = "\n".join(wire_document.session())
        wire_document.DOCUMENT.write_text(TEXT.replace(f"```\n{before}\n```", "\n".join(["```", *lines, "```"])))
    assert wire_document.session() == lines


def played():
    """The session as the example client has it: the broker pings instead, before the EVENT."""
    *before, event, receipts = [said for said in session() if said[1] not in ("PING", "PONG", "LEAVE")]
    ping, pong = PINGED
    return [*before, ping, event, receipts, pong]


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
            for who, _, data in played():
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
            said, _ = client.communicate(timeout=100)
        finally:
            client.kill()
    assert broker.heard == [data for who, _, data in played() if who == ">"]
    assert said.splitlines() == [
        "connected as example.1",
        "without []",
        "request 2 found 1 destinations stock.quote {'symbol': 'ACME', 'price': 99.5} b'hello'",
    ]
    assert client.returncode == 0


def test_the_example_client_is_short_and_stands_alone():
    source = wire_document.example_client()
    assert len([line for line in source.splitlines() if line.strip()]) <= 42
    assert re.findall(r"^(?:import|from) (.*)", source, re.MULTILINE) == ["json, socket, struct, sys"]


def test_the_session_is_read_as_it_is_described():
    for who, what, data in session():
        ((kind, _),) = Framing().feed(data)
        assert what.startswith(Kind(kind).name), (who, what)


def test_every_kind_is_in_the_table():
    told = dict(re.findall(r"^\| (\d+) \| ([A-Z]+) \|", TEXT, re.MULTILINE))
    assert told == {str(kind.value): kind.name for kind in Kind}


def test_the_codes_told_are_those_sent():
    """Codes are words in the source: said to `refuse`, `Refusal`, `ProtocolError`, or to be looked up by (a key)."""
    told = TEXT[TEXT.index("| code | meaning |") :].partition("\n\n")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE))
    source = "\n".join(
        file.read_text() for package in (broker, wire) for file in Path(package.__file__).parent.glob("*.py")
    )
    said = set(re.findall(r'(?:refuse[(,]|Refusal\(|\bcode(?:: str)? =|\bcode=)\s*"(\w+)"', source))
    assert said <= told
    assert told - said == {"draining", "cluster", "strategy"} - said
    for code in told:
        assert f'"{code}"' in source, code


def test_the_code_of_an_error():
    assert ProtocolError("noise").code == "protocol"
    with pytest.raises(ProtocolError, match="no common version") as raised:
        common_version([7, 9])
    assert raised.value.code == "version"


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
