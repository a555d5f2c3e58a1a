"""Many clients that publish, in one process. A helper process of `bench crowd`."""

import asyncio
import time
from pathlib import Path
from typing import Any

from mercast.wire import requests
from mercast.wire.frames import Kind
from mercast_loadtest.bench.crowding import Member, connected, obeying
from mercast_loadtest.bench.dialects import RECEIPT
from mercast_loadtest.bench.frames import Frames
from mercast_loadtest.bench.quotes import TYPE
from mercast_loadtest.bench.source import FIRST, PATIENCE, TICK

_LOOK = 0.02


class Publisher(Member):
    def __init__(self, crowd: "Source") -> None:
        super().__init__()
        self._crowd = crowd
        self.open = 0
        """Events without receipt."""
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def advertise(self) -> None:
        self.transport.write(requests.advertise(1, TYPE, ""))

    def heard(self, kind: int, body: bytes) -> None:
        if kind == Kind.SETTLED:
            self.settled.set_result(None)
        elif kind == Kind.RECEIPTS:
            self.open -= len(body) // RECEIPT.size - 1
            self._crowd.acknowledged(self)

    def publish(self, frames: bytes, count: int) -> None:
        self.open += count
        self.transport.write(frames)


class Source:
    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        self._frames = Frames.load(Path(told["frames"]))
        self._members: list[Publisher] = []
        self._sent = 0
        self._each = 0
        """Events that each may have without receipt while all flood; nought at other times."""

    async def connect(self) -> dict[str, Any]:
        self._members = [Publisher(self) for _ in range(self._told["publishers"])]
        said = await connected(self._told["address"], self._members)
        for member in self._members:
            member.advertise()
        await asyncio.gather(*(member.settled for member in self._members))
        return said

    async def flood(self, seconds: float, window: int) -> dict[str, Any]:
        """All together at most `window` events without receipt, each its share: at least one."""
        before, began = self._sent, time.monotonic()
        self._each = max(1, window // len(self._members))
        for member in self._members:
            self.acknowledged(member)
        await asyncio.sleep(seconds)
        self._each = 0
        return await self._done(before, began)

    async def steady(self, seconds: float, rate: float) -> dict[str, Any]:
        """Each in turn. What is late is late: times are those at which events were due."""
        before, began = self._sent, time.monotonic()
        for tick in range(round(seconds / TICK)):
            due = began + tick * TICK
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            for _ in range(int((tick + 1) * rate * TICK) - int(tick * rate * TICK)):
                self._publish(self._members[self._sent % len(self._members)], 1, int(1e9 * due))
        return await self._done(before, began)

    def acknowledged(self, member: Publisher) -> None:
        if self._each and member.open < self._each:
            self._publish(member, self._each - member.open, time.monotonic_ns())

    def _publish(self, member: Publisher, count: int, due: int) -> None:
        member.publish(self._frames.run(FIRST + self._sent, count, due), count)
        self._sent += count

    async def _done(self, before: int, began: float) -> dict[str, Any]:
        sending = time.monotonic() - began
        given_up = time.monotonic() + PATIENCE
        while any(member.open for member in self._members) and time.monotonic() < given_up:
            await asyncio.sleep(_LOOK)
        return {"first": FIRST + before, "published": self._sent - before, "began": began, "sending": sending}


if __name__ == "__main__":
    obeying(Source)
