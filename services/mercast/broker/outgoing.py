"""What is on its way out on one connection: gathered during a turn of the loop, written once."""

import asyncio
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import cast

from mercast.protocol.messages import Message

PRESSED, TOO_FAST, EARLY = "pressed", "too fast", "early"
"""Why somebody is not read: links are full, it publishes more than it may, or this broker has just been started."""

_LAST_WORDS = 5.0
"""Seconds that somebody who is cut off has to read why."""


_IDLE, _BETWEEN, _TRIES = 30, 10, 3
"""Seconds of silence before the other machine is asked whether it is still there, and between tries; tries."""


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Whoever vanishes without a word is noticed though nothing is to be said to it."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _IDLE), ("TCP_KEEPINTVL", _BETWEEN), ("TCP_KEEPCNT", _TRIES)):
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Outgoing(asyncio.Protocol, ABC):
    """The writing half of a session or a link."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.out: list[bytes] = []
        """Frames that were not written yet."""
        self._held: set[str] = set()
        """Why nothing is read for now."""
        self.version = 0
        """Of the wire, on this connection; 0 until both sides have said which they speak."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    @property
    def name(self) -> str:
        """Who is at the other end."""
        return self.address

    @property
    def address(self) -> str:
        peer = self.transport.get_extra_info("peername") if self.transport else None
        return f"{peer[0]}:{peer[1]}" if peer else "?"

    @property
    def host_address(self) -> str:
        """The same without the port, which is another one each time that somebody calls."""
        return self.address.rpartition(":")[0]

    @property
    def untaken(self) -> int:
        """Bytes that were written, and that the other side has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport else 0

    @property
    def queued(self) -> int:
        """The same, with all that waits to be written."""
        return self.untaken

    @property
    @abstractmethod
    def most_queued(self) -> int:
        """Bytes; whoever takes so little of what was written that more is left is cut off."""

    def flush(self) -> int:
        """Write what there is; how many bytes."""
        if not self.out or self.transport is None or self.transport.is_closing():
            self.out.clear()
            return 0
        data = b"".join(self.out) if len(self.out) > 1 else self.out[0]
        self.out.clear()
        try:
            self.transport.write(data)
        except RuntimeError:  # uvloop: it ended while it was accepted, and nobody was told
            self.connection_lost(None)
            return 0
        if self.untaken > self.most_queued:
            self.cut_off()
        return len(data)

    def cut_off(self) -> None:
        """It does not read: nor would it read why it is cut off."""
        if self.transport is not None:
            self.transport.abort()

    def hold(self, why: str, on: bool) -> None:
        """Stop reading for a reason, or go on as soon as no other is left."""
        before = bool(self._held)
        (self._held.add if on else self._held.discard)(why)
        if bool(self._held) == before or self.transport is None or self.transport.is_closing():
            return
        if on:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def part(self, *last_words: bytes) -> None:
        """Say this, and close when it has been taken, or after a while."""
        self.out += last_words
        self.flush()
        if self.transport is not None:
            self.transport.close()
            asyncio.get_running_loop().call_later(_LAST_WORDS, self.transport.abort)


class OutgoingLink(Outgoing):
    received = 0
    """Events that came."""

    @abstractmethod
    def send(self, messages: Iterable[Message]) -> None: ...

    @property
    @abstractmethod
    def presses(self) -> bool:
        """So much waits that whoever publishes more for it has to wait."""


def unacknowledged(transport: asyncio.BaseTransport) -> int:
    """Bytes that this system has taken for a connection, and the other one has not; 0 where that cannot be known."""
    connection = transport.get_extra_info("socket")
    try:
        return int.from_bytes(ioctl(connection.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
    except (AttributeError, OSError):
        return 0
