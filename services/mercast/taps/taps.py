"""Rows from a broker's turns, to be encoded a few times a second and shipped.

A turn only hands its runs over. Each topic and partition numbers its rows; a number is used up when a row is encoded,
whether it is shipped or lost.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from mercast.protocol.columns import CONTROL_ROWS, EVENT_ROWS
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Columns, Head, by_partition, encode, gather, nothing
from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Parcel, Shipper

_EVERY = 0.2
"""Seconds between two flushes."""
_ROWS = 4_096
"""Rows that are encoded at once at most: some milliseconds, for which nothing else is done."""

_CONTROL = frozenset(CONTROL_ROWS.values())


class Taps:
    def __init__(self, head: Head, settings: TapSettings, shipper: Shipper) -> None:
        self.head, self.settings, self.shipper = head, settings, shipper
        self._taken: list[tuple[int, Run]] = []
        self._rows = 0
        self._next: defaultdict[tuple[str, int], int] = defaultdict(int)
        """The number of the next row, by topic and partition."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, at: int, runs: Iterable[Run]) -> None:
        """Rows of what happened at this time, in microseconds."""
        for run in runs:
            self._taken.append((at, run))
            self._rows += len(run)
        if self._rows >= _ROWS:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self.flush)

    def begin_anew(self, head: Head) -> None:
        """Another incarnation, which numbers its own rows."""
        self.flush()
        self.head = head
        self._next.clear()

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._taken, self._rows = self._taken, [], 0
        control = [one for one in taken if one[1].row in _CONTROL]
        if control:
            taken = [one for one in taken if one[1].row not in _CONTROL]
            self._put(self.settings.control, 0, gather(control), str(self.head.broker).encode())
        parts: defaultdict[int, dict[str, Columns]] = defaultdict(dict)
        for kind, rows in gather(taken).items():
            if kind in EVENT_ROWS:
                for partition, some in by_partition(rows, self.settings.partitions).items():
                    parts[partition][kind] = some
            else:
                parts[self.head.broker % self.settings.partitions][kind] = rows
        for partition, kinds in parts.items():
            self._put(self.settings.taps, partition, kinds)

        if self.shipper.gaps and self.shipper.there:
            for topic, partition in list(self.shipper.gaps):
                message = nothing(self.head, self._next[topic, partition])
                self.shipper.put(Parcel(topic, partition, None, message.value, 0))

    def _put(self, topic: str, partition: int, rows: dict[str, Columns], key: bytes | None = None) -> None:
        first = self._next[topic, partition]
        for message in encode(self.head, first, rows, self.settings.held):
            self.shipper.put(Parcel(topic, partition, key, message.value, message.rows))
            self._next[topic, partition] = message.first + message.rows
