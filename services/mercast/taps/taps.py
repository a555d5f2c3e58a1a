"""Rows from a broker's turns, made ready at once, and shipped once a second.

Each topic and partition numbers its rows; a number is used up when a row is put into a message, whether that is shipped
or lost.
"""

import asyncio
from collections.abc import Iterable

from mercast.protocol.columns import CONTROL_ROWS, EVENT_ROWS, KIND_OF
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Head, Stream, TapMessage, by_partition
from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Parcel, Shipper

_EVERY = 1.0
"""Seconds between two flushes: each makes a message or more, and Kafka and its client take their time for each."""


class Taps:
    def __init__(self, head: Head, settings: TapSettings, shipper: Shipper) -> None:
        self.head, self.settings, self.shipper = head, settings, shipper
        self._streams: dict[tuple[str, int], Stream] = {}
        """By topic and partition."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, at: int, runs: Iterable[Run]) -> None:
        """Rows of what happened at this time, in microseconds."""
        settings = self.settings
        for run in runs:
            kind = KIND_OF[run.row]
            if kind in EVENT_ROWS:
                for partition, part in by_partition(run, settings.partitions):
                    self._add(settings.taps, partition, part, at)
            elif kind in CONTROL_ROWS:
                self._add(settings.control, 0, run, at)
            else:
                self._add(settings.taps, self.head.broker % settings.partitions, run, at)
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
        for (topic, partition), stream in self._streams.items():
            self._put(topic, partition, stream.end())
        if self.shipper.gaps and self.shipper.there:
            for topic, partition in list(self.shipper.gaps):
                self._put(topic, partition, [self._stream(topic, partition).nothing()])

    def _add(self, topic: str, partition: int, run: Run, at: int) -> None:
        full = self._stream(topic, partition).add(run, at)
        if full:
            self._put(topic, partition, full)

    def _stream(self, topic: str, partition: int) -> Stream:
        stream = self._streams.get((topic, partition))
        if stream is None:
            stream = self._streams[topic, partition] = Stream(self.head, self.settings.held)
        return stream

    def _put(self, topic: str, partition: int, messages: Iterable[TapMessage]) -> None:
        key = str(self.head.broker).encode() if topic == self.settings.control else None
        for message in messages:
            self.shipper.put(Parcel(topic, partition, key, message.value, message.rows))
