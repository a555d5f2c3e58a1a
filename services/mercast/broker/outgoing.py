"""What is on its way out on one connection: gathered during a turn of the loop, written once."""

import asyncio
import socket
from abc import ABC, abstractmethod
from typing import cast

from mercast.protocol.messages import Forward

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
        self.publishes = False
        """Whether events have come from here that others had to be asked about: it may have to wait."""

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
        """Bytes; whoever takes so little of what is written that more waits is cut off."""

    def forward(self, message: Forward, encoded: bytes) -> None:  # noqa: ARG002
        """Events; `encoded` is what they are on the wire."""
        self.out.append(encoded)

    def flush(self) -> int:
        """Write what there is; how many bytes."""
        if not self.out or self.transport is None or self.transport.is_closing():
            self.out.clear()
            return 0
        data = b"".join(self.out) if len(self.out) > 1 else self.out[0]
        self.out.clear()
        self.transport.write(data)
        if self.queued > self.most_queued:
            self.cut_off()
        return len(data)

    def cut_off(self) -> None:
        """It does not read: nor would it read why it is cut off."""
        if self.transport is not None:
            self.transport.abort()

    def hold(self, on: bool) -> None:
        """Stop reading, or go on."""
        if self.transport is None or self.transport.is_closing():
            return
        if on:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def part(self, last_words: bytes) -> None:
        """Say this, and close when it has been taken."""
        self.out.append(last_words)
        self.flush()
        if self.transport is not None:
            self.transport.close()
            asyncio.get_running_loop().call_later(_LAST_WORDS, self.transport.abort)
