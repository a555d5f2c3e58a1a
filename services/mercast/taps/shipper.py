"""What Kafka and files have in common: a bounded buffer before them, and two words of log, when they go and come back.

Nothing here waits for the other side: what does not fit is lost. Its numbers are used up by then, so readers see a gap.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

import structlog

log = structlog.get_logger()


class Parcel(NamedTuple):
    topic: str
    partition: int
    key: bytes | None
    value: bytes
    rows: int


class Shipper(ABC):
    def __init__(self, where: str, most_bytes: int) -> None:
        self.where, self.most_bytes = where, most_bytes
        self.bytes = 0
        """Of messages that wait, or are on their way."""
        self.shipped = self.lost = 0
        """Rows."""
        self.gaps: set[tuple[str, int]] = set()
        """Topics and partitions in which the last rows were lost: nobody sees that before others follow."""
        self.there: bool | None = None
        """Whether what was shipped last arrived; None before the first time."""
        self._waiting: deque[Parcel] = deque()
        self._some = asyncio.Event()

    def put(self, parcel: Parcel) -> None:
        if not parcel.value or self.bytes + len(parcel.value) > self.most_bytes:
            self._lose(parcel)
            return
        self.bytes += len(parcel.value)
        self.gaps.discard((parcel.topic, parcel.partition))
        self._waiting.append(parcel)
        self._some.set()

    async def next(self) -> Parcel:
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def arrived(self, *parcels: Parcel) -> None:
        for parcel in parcels:
            self.bytes -= len(parcel.value)
            self.shipped += parcel.rows
        self.tell(True)

    def failed(self, reason: str, *parcels: Parcel) -> None:
        for parcel in parcels:
            self.bytes -= len(parcel.value)
            self._lose(parcel)
        self.tell(False, reason)

    def _lose(self, parcel: Parcel) -> None:
        self.lost += parcel.rows
        self.gaps.add((parcel.topic, parcel.partition))

    def tell(self, there: bool, reason: str = "") -> None:
        if there is self.there:
            return
        self.there = there
        if there:
            log.info("taps are shipped", to=self.where, lost=self.lost)
        else:
            log.warning("taps cannot be shipped; routing goes on", to=self.where, reason=reason[:_TOLD])

    @abstractmethod
    async def run(self) -> None:
        """Ship, for ever."""

    async def finish(self, within: float) -> None:
        """Until all that waits has arrived, if that is soon."""
        try:
            async with asyncio.timeout(within):
                while self.bytes and self.there:
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            pass


_TOLD = 300
_POLL = 0.02
