"""Frames: four bytes of length, one of kind, the body. The length counts the kind and the body, big-endian.

Kinds are one table for clients and brokers. A reader skips kinds that it does not know; so a newer peer may say more.
"""

from enum import IntEnum
from struct import Struct

from mercast.limits import DEFAULTS

HEADER = Struct(">IB")

FRAME_BYTES, HELLO_BYTES = DEFAULTS.frame_bytes, DEFAULTS.hello_bytes


PING_BYTES = 64
"""Of the body of a PING, which comes back: nobody has much said to them for little."""


class ProtocolError(Exception):
    """The other side said something that cannot be: the connection is at its end, with this reason."""

    def __init__(self, reason: str, code: str = "protocol") -> None:
        super().__init__(reason)
        self.code = code
        """For programs, as docs/wire.md lists them."""


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
    ORGANISE = 51


def pong(ping: bytes) -> bytes:
    """The answer to a PING."""
    if len(ping) > PING_BYTES:
        raise ProtocolError(f"a PING of {len(ping)} bytes; it may have {PING_BYTES}")
    return frame(Kind.PONG, ping)


def frame(kind: int, body: bytes) -> bytes:
    return HEADER.pack(len(body) + 1, kind) + body


class Framing:
    """Cuts a stream into frames; what is not whole yet waits. A length is checked before anything is kept for it."""

    def __init__(self, limit: int = HELLO_BYTES) -> None:
        self.limit = limit
        """May be raised once the other side is known; `feed(b"")` then gives what waited for that."""
        self._rest = bytearray()
        self._need = 0
        """Bytes that make it worth looking at the rest again."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that are whole now, each as (kind, body). An error is the end: frames before it are not given."""
        if self._rest:
            if len(self._rest) + len(data) < self._need:
                self._rest += data  # not a list of pieces: small ones would take many times their size
                return []
            data = b"".join((self._rest, data))
            self._rest = bytearray()
        frames: list[tuple[int, bytes]] = []
        at, end = 0, len(data)
        while at + 5 <= end:
            length, kind = HEADER.unpack_from(data, at)
            if not 0 < length <= self.limit:
                if not frames or not 0 < length <= FRAME_BYTES:
                    raise ProtocolError(f"a frame of {length} bytes; it may have 1 to {self.limit}")
                self._need = 0  # the frame before it may be the HELLO that raises the limit
                break
            after = at + 4 + length
            if after > end:
                self._need = 4 + length
                break
            frames.append((kind, data[at + 5 : after]))
            at = after
        else:
            self._need = HEADER.size
        if at < end:
            self._rest += data[at:]
        return frames
