"""Rows from a broker's turns, encoded some hundred at a time, and shipped twice a second.

Each topic and partition numbers its rows; a number is used up when a row is put into a message, whether that is shipped
or lost.
"""

import asyncio
from collections.abc import Iterable

from mercast.protocol.columns import CONTROL_ROWS, EVENT_ROWS
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Head, Stream, TapMessage, by_partition, gather
from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Parcel, Shipper

_EVERY = 0.5
"""Seconds between two flushes: each makes a message or more, and Kafka's client takes its time for each."""
_ROWS = 64
"""Rows that wait to be encoded at most. Few at a time cost more each; but while they wait, parts of the events that
they tell of stay in memory, in the way of those of later turns."""


class Taps:
    def __init__(self, head: Head, settings: TapSettings, shipper: Shipper) -> None:
        self.head, self.settings, self.shipper = head, settings, shipper
        self._taken: list[tuple[int, Run]] = []
        self._rows = 0
        self._streams: dict[tuple[str, int], Stream] = {}
        """By topic and partition."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, at: int, runs: Iterable[Run]) -> None:
        """Rows of what happened at this time, in microseconds."""
        for run in runs:
            self._taken.append((at, run))
            self._rows += len(run)
        if self._rows >= _ROWS:
            self._encode()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self.flush)

    def begin_anew(self, head: Head) -> None:
        """Another incarnation, which numbers its own rows."""
        self.flush()
        self.head = head
        self._streams.clear()

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._encode()
        for (topic, partition), stream in self._streams.items():
            self._put(topic, partition, stream.end())
        if self.shipper.gaps and self.shipper.there:
            for topic, partition in list(self.shipper.gaps):
                self._put(topic, partition, [self._stream(topic, partition).nothing()])

    def _encode(self) -> None:
        taken, self._taken, self._rows = self._taken, [], 0
        settings, own = self.settings, self.head.broker % self.settings.partitions
        for kind, rows in gather(taken).items():
            if kind in EVENT_ROWS:
                parts = by_partition(rows, settings.partitions)
            else:
                parts = {0 if kind in CONTROL_ROWS else own: rows}
            topic = settings.control if kind in CONTROL_ROWS else settings.taps
            for partition, some in parts.items():
                self._put(topic, partition, self._stream(topic, partition).add(kind, some))

    def _stream(self, topic: str, partition: int) -> Stream:
        stream = self._streams.get((topic, partition))
        if stream is None:
            stream = self._streams[topic, partition] = Stream(self.head, self.settings.held)
        return stream

    def _put(self, topic: str, partition: int, messages: Iterable[TapMessage]) -> None:
        key = str(self.head.broker).encode() if topic == self.settings.control else None
        for message in messages:
            self.shipper.put(Parcel(topic, partition, key, message.value, message.rows))
