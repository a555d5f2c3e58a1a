"""What helper processes with thousands of clients share: their connections, and how they are told what to do."""

import asyncio
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, cast

from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame
from mercast.wire.hello import VERSIONS, hello, read_json
from mercast_loadtest.bench.bare import run
from mercast_loadtest.bench.idle import raised
from mercast_loadtest.bench.processes import begun, commands, say

_AT_ONCE = 200
"""Connections that are being made at a time."""


class Member(asyncio.Protocol):
    """One client of a crowd."""

    transport: asyncio.WriteTransport

    def __init__(self) -> None:
        self._framing = Framing(FRAME_BYTES)
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def heard(self, kind: int, body: bytes) -> None:
        """A frame after the HELLO."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.transport.write(hello(mercast=list(VERSIONS), role="client", name="crowd", token=""))

    def data_received(self, data: bytes) -> None:
        for kind, body in self._framing.feed(data):
            if kind == Kind.HELLO:
                self.joined.set_result(None)
            elif kind == Kind.PING:
                self.transport.write(frame(Kind.PONG, body))
            elif kind in (Kind.ERROR, Kind.DRAIN) or (kind == Kind.ANSWER and read_json(body).get("refused")):
                _give_up(f"the broker says {Kind(kind).name} {body.decode()}")
            else:
                self.heard(kind, body)

    def connection_lost(self, error: Exception | None) -> None:
        _give_up(f"a connection was lost: {error or 'the broker has closed it'}")


async def connected(address: str, members: Sequence[Member]) -> dict[str, Any]:
    """All of them, some at a time; how long that took."""
    host, _, port = address.rpartition(":")
    loop, room, began = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE), monotonic()

    async def join(member: Member) -> None:
        async with room:
            await loop.create_connection(lambda: member, host, int(port))
            await member.joined

    await asyncio.gather(*map(join, members))
    return {"connected": len(members), "seconds": monotonic() - began}


def obeying(make: Callable[[dict[str, Any]], Any]) -> None:
    """A helper whose commands are the methods of what is made."""
    raised()
    told = begun()
    run(_obey(make(told)))


async def _obey(crowd: Any) -> None:
    loop, told = asyncio.get_running_loop(), commands()
    say("ready")
    while command := await loop.run_in_executor(None, next, told, None):
        say(await getattr(crowd, command.pop("command"))(**command))
    os._exit(0)  # nobody waits for the connections to be closed one by one


def _give_up(reason: str) -> None:
    sys.stderr.write(f"mercast bench: {reason}\n")
    sys.stderr.flush()
    os._exit(1)
