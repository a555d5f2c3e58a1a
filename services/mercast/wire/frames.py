"""Frames: four bytes of length, one of kind, the body. The length counts the kind and the body, big-endian.

Kinds are one table for clients and brokers. A reader skips kinds that it does not know; so a newer peer may say more.
"""

from enum import IntEnum
from struct import Struct

HEADER = Struct(">IB")
_LENGTH = Struct(">I")

FRAME_BYTES = 4 * 1024 * 1024
"""Of one frame: the largest event, with room for its attributes."""

HELLO_BYTES = 64 * 1024
"""Of a frame before the other side has said who it is."""


class ProtocolError(Exception):
    """The other side said something that cannot be: the connection is at its end, with this reason."""


class Kind(IntEnum):
    # -- both ways, on every port
    HELLO = 1
    ERROR = 2
    PING = 3
    PONG = 4
    # -- client to broker
    PUBLISH = 16
    SUBSCRIBE = 17
    UNSUBSCRIBE = 18
    ADVERTISE = 19
    UNADVERTISE = 20
    DECLARE = 21
    LEAVE = 22
    # -- broker to client
    EVENT = 32
    RECEIPTS = 33
    ANSWER = 34
    SETTLED = 35
    REPORTED = 36
    DRAIN = 37
    # -- broker to broker
    FORWARD = 48
    MESSAGE = 49
    MEMBERS = 50


def frame(kind: int, body: bytes) -> bytes:
    return HEADER.pack(len(body) + 1, kind) + body


class Framing:
    """Cuts a stream into frames; what is not whole yet waits. A length is checked before anything is kept for it."""

    def __init__(self, limit: int = HELLO_BYTES) -> None:
        self.limit = limit
        """May be raised once the other side is known."""
        self._parts: list[bytes] = []
        self._have, self._need = 0, 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that are whole now, each as (kind, body)."""
        if self._parts:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = b"".join(self._parts)
            self._parts = []
        frames, at, end = [], 0, len(data)
        while at + 5 <= end:
            length, kind = HEADER.unpack_from(data, at)
            self._check(length)
            after = at + 4 + length
            if after > end:
                break
            frames.append((kind, data[at + 5 : after]))
            at = after
        if at < end:
            self._wait(data[at:])
        return frames

    def _wait(self, rest: bytes) -> None:
        self._parts, self._have, self._need = [rest], len(rest), HEADER.size
        if len(rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(rest)
            self._check(length)
            self._need = _LENGTH.size + length

    def _check(self, length: int) -> None:
        if not 0 < length <= self.limit:
            raise ProtocolError(f"a frame of {length} bytes; it may have 1 to {self.limit}")
