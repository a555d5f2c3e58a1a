"""What the load ends say and hear: to brokers of mercast, to bare forwarders, to nats-server. Blocking sockets."""

import json
import socket
from collections.abc import Callable
from struct import Struct
from typing import Any, ClassVar, Protocol

from mercast.wire import requests
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame
from mercast.wire.hello import VERSIONS, hello, read_json
from mercast_loadtest.bench.quotes import DUE_BYTES, TYPE

READ = 256 * 1024
"""Bytes asked for at a time."""

_LENGTH = Struct(">I")
RECEIPT = Struct(">I")

COUNT = Struct(">Q")
"""How a sink tells a source what has arrived."""

Late = Callable[[bytes], None]
"""Is given the eight bytes of the time at which an event was due."""


class Dialect(Protocol):
    receipts: bool
    """Whether the other side acknowledges what is published."""

    def publisher(self, connection: socket.socket, told: dict[str, Any]) -> None:
        """Say all that must be said before the first event."""

    def acknowledged(self, connection: socket.socket, data: bytes) -> int:
        """How many publishes these bytes acknowledge."""

    def subscriber(self, connection: socket.socket, told: dict[str, Any]) -> None:
        """Ask for events, and wait until they would come."""

    def count(self, connection: socket.socket, data: bytes, late: Late | None) -> tuple[int, int]:
        """How many events are whole in these bytes, and how many bytes are done with."""


class Mercast:
    receipts = True

    def __init__(self) -> None:
        self._framing = Framing(FRAME_BYTES)

    def publisher(self, connection: socket.socket, told: dict[str, Any]) -> None:
        self.greet(connection, told)
        connection.sendall(requests.advertise(1, TYPE, ""))
        self._settled(connection, 1)

    def subscriber(self, connection: socket.socket, told: dict[str, Any]) -> None:
        self.greet(connection, told)
        filters = told["filters"]
        for number, filter in enumerate(filters, 1):
            connection.sendall(requests.subscribe(number, TYPE, filter, True))
        self._settled(connection, len(filters))

    def greet(self, connection: socket.socket, told: dict[str, Any]) -> None:
        name = told.get("name", "bench")
        connection.sendall(hello(mercast=list(VERSIONS), role="client", name=name, token=""))
        while not any(kind == Kind.HELLO for kind, _ in self._read(connection)):
            pass

    def _settled(self, connection: socket.socket, count: int) -> None:
        """Wait until so many requests are settled."""
        while count:
            for kind, body in self._read(connection):
                said = read_json(body) if kind in (Kind.SETTLED, Kind.ANSWER) else {}
                if said.get("refused") or said.get("missing"):
                    raise RuntimeError(f"the broker says {said}")
                count -= kind == Kind.SETTLED

    def _read(self, connection: socket.socket) -> list[tuple[int, bytes]]:
        frames = self._framing.feed(received(connection))
        for kind, body in frames:
            self._answer(connection, kind, body)
        return frames

    def _answer(self, connection: socket.socket, kind: int, body: bytes) -> None:
        if kind == Kind.PING:
            connection.sendall(frame(Kind.PONG, body))
        elif kind in (Kind.ERROR, Kind.DRAIN):
            raise RuntimeError(f"the broker says {Kind(kind).name} {body.decode()}")

    def acknowledged(self, connection: socket.socket, data: bytes) -> int:
        done = 0
        for kind, body in self._framing.feed(data):
            if kind == Kind.RECEIPTS:
                done += len(body) // RECEIPT.size - 1
            elif kind == Kind.ANSWER:
                raise RuntimeError(f"the broker says {body.decode()}")
            else:
                self._answer(connection, kind, body)
        return done

    def count(self, connection: socket.socket, data: bytes, late: Late | None) -> tuple[int, int]:
        at, end, events, event = 0, len(data), 0, int(Kind.EVENT)
        length_at = _LENGTH.unpack_from
        while at + 5 <= end:
            after = at + 4 + length_at(data, at)[0]
            if after > end:
                break
            if data[at + 4] == event:
                events += 1
                if late is not None:
                    late(data[after - DUE_BYTES : after])
            else:
                self._answer(connection, data[at + 4], data[at + 5 : after])
            at = after
        return events, at


class Bare(Mercast):
    """Frames as brokers have them, with no word before them and none in return."""

    receipts = False
    HEAD: ClassVar[Struct] = Struct(">IBHH")
    """Length, kind, hops, bytes of the list, which follows."""

    def publisher(self, connection: socket.socket, told: dict[str, Any]) -> None:
        """Nothing to say."""

    def subscriber(self, connection: socket.socket, told: dict[str, Any]) -> None:
        """Nothing to say."""

    @classmethod
    def frame(cls, destinations: bytes, content: bytes) -> bytes:
        length = cls.HEAD.size - _LENGTH.size + len(destinations) + len(content)
        return cls.HEAD.pack(length, Kind.EVENT, 0, len(destinations)) + destinations + content


class Nats:
    receipts = False

    def publisher(self, connection: socket.socket, told: dict[str, Any]) -> None:  # noqa: ARG002
        self._greet(connection)

    def subscriber(self, connection: socket.socket, told: dict[str, Any]) -> None:  # noqa: ARG002
        connection.sendall(f"SUB {TYPE} 1\r\n".encode())
        self._greet(connection)

    def _greet(self, connection: socket.socket) -> None:
        options = {"verbose": False, "pedantic": False, "lang": "bench", "version": "1", "protocol": 0}
        connection.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        heard = b""
        while b"PONG\r\n" not in heard:
            heard += received(connection)

    def acknowledged(self, connection: socket.socket, data: bytes) -> int:
        _pong(connection, data)
        return 0

    def count(self, connection: socket.socket, data: bytes, late: Late | None) -> tuple[int, int]:
        at, end, events = 0, len(data), 0
        while at < end:
            line = data.find(b"\r\n", at)
            if line < 0:
                break
            after = line + 2
            if data.startswith(b"MSG ", at):
                content = after + int(data[data.rfind(b" ", at, line) + 1 : line])
                after = content + 2
                if after > end:
                    break
                events += 1
                if late is not None:
                    late(data[content - DUE_BYTES : content])
            else:
                _pong(connection, data[at:after])
            at = after
        return events, at

    @staticmethod
    def frame(content: bytes) -> bytes:
        return b"PUB %s %d\r\n%s\r\n" % (TYPE.encode(), len(content), content)


def _pong(connection: socket.socket, data: bytes) -> None:
    if data.startswith(b"-ERR"):
        raise RuntimeError(f"nats-server says {data.decode()}")
    if data.startswith(b"PING"):
        connection.sendall(b"PONG\r\n")


def received(connection: socket.socket) -> bytes:
    data = connection.recv(READ)
    if not data:
        raise RuntimeError("the other side has closed the connection")
    return data


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


DIALECTS: dict[str, Callable[[], Dialect]] = {"mercast": Mercast, "bare": Bare, "nats": Nats}


def publish_frames(contents: list[bytes]) -> tuple[list[bytes], int]:
    """PUBLISH frames, and where in them the request number is."""
    return [requests.publish(0, content) for content in contents], _LENGTH.size + 1
