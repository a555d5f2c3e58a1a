"""Many clients that each subscribe to a share of the events, in one process. A helper process of `bench crowd`."""

import asyncio
import time
from typing import Any, cast

import numpy as np

from mercast.wire import requests
from mercast.wire.frames import Kind
from mercast_loadtest.bench.crowding import Member, connected, obeying
from mercast_loadtest.bench.dialects import Mercast
from mercast_loadtest.bench.quotes import TYPE
from mercast_loadtest.bench.sink import QUANTILES


class Subscriber(Member):
    def __init__(self, crowd: "Sink", filter: str) -> None:
        super().__init__()
        self._crowd, self._filter = crowd, filter
        self._rest = b""
        self._dialect = Mercast()
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def subscribe(self) -> None:
        self.transport.write(requests.subscribe(1, TYPE, self._filter, True))

    def heard(self, kind: int, body: bytes) -> None:  # noqa: ARG002
        if kind == Kind.SETTLED:
            self.settled.set_result(None)

    def data_received(self, data: bytes) -> None:
        if not self.joined.done() or not self.settled.done():
            super().data_received(data)
            return
        data = self._rest + data
        # What is no event is answered by way of the transport, which can do as much of a socket as that needs.
        events, done = self._dialect.count(cast("Any", self), data, self._crowd.take())
        self._rest = data[done:]
        self._crowd.arrived += events

    def sendall(self, data: bytes) -> None:
        self.transport.write(data)


class Sink:
    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        self._members: list[Subscriber] = []
        self.arrived, self._last = 0, 0.0
        self._timing, self._late = False, list[int]()

    async def connect(self) -> dict[str, Any]:
        self._members = [Subscriber(self, filter) for filter in self._told["filters"]]
        return await connected(self._told["address"], self._members)

    async def subscribe(self) -> str:
        for member in self._members:
            member.subscribe()
        await asyncio.gather(*(member.settled for member in self._members))
        return "subscribed"

    async def reset(self, timing: bool) -> str:
        self.arrived, self._last = 0, 0.0
        self._timing, self._late = timing, []
        return "reset"

    async def report(self) -> dict[str, Any]:
        late = np.percentile(self._late, QUANTILES) / 1e6 if self._late else [0.0] * len(QUANTILES)
        quantiles = {f"p{quantile}_ms": float(value) for quantile, value in zip(QUANTILES, late, strict=True)}
        return {"arrived": self.arrived, "last": self._last} | quantiles

    def take(self) -> Any:
        """What to do with the time at which an event was due; also, that something arrives now."""
        now = time.monotonic_ns()
        self._last = now / 1e9
        late = self._late
        return (lambda due: late.append(now - int.from_bytes(due, "big"))) if self._timing else None


if __name__ == "__main__":
    obeying(Sink)
