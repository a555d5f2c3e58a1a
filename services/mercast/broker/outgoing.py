"""What is on its way out on one connection: gathered during a turn of the loop, written once."""

import asyncio
from typing import cast

_LAST_WORDS = 5.0
"""Seconds that somebody who is cut off has to read why."""


class Outgoing(asyncio.Protocol):
    """The writing half of a session or a link."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.out: list[bytes] = []
        """Frames that were not written yet."""

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
    def queued(self) -> int:
        """Bytes that the other side has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport else 0

    def flush(self) -> int:
        """Write what there is; how many bytes."""
        if not self.out or self.transport is None or self.transport.is_closing():
            self.out.clear()
            return 0
        data = b"".join(self.out) if len(self.out) > 1 else self.out[0]
        self.out.clear()
        self.transport.write(data)
        return len(data)

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
