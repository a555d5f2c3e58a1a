"""The window of seen events: no event is taken twice.

Per source broker and incarnation, the highest sequence seen and a bitmap of the ones before it. A repeat is dropped; an
event older than the window cannot be told from a repeat and is dropped as stale.
"""

from enum import Enum

from mercast.content.event import EventId


class Seen(Enum):
    NEW = "new"
    REPEAT = "repeat"
    STALE = "stale"


class SeenWindow:
    def __init__(self, size: int = 4096) -> None:
        self._size, self._all = size, (1 << size) - 1
        self._windows: dict[int, tuple[int, int, int]] = {}
        """Per source: incarnation, highest sequence, bits (bit k stands for the k-th before the highest)."""

    def see(self, event: EventId) -> Seen:
        """Whether the event is new; from now on it no longer is."""
        source, incarnation, sequence = event
        current, highest, bits = self._windows.get(source, (incarnation, -1, 0))
        if incarnation < current:
            return Seen.STALE
        if incarnation > current:
            highest, bits = -1, 0
        if sequence > highest:
            shift = min(sequence - highest, self._size)
            bits = (bits << shift | 1) & self._all
            self._windows[source] = incarnation, sequence, bits
            return Seen.NEW
        age = highest - sequence
        if age >= self._size:
            return Seen.STALE
        if bits >> age & 1:
            return Seen.REPEAT
        self._windows[source] = incarnation, highest, bits | 1 << age
        return Seen.NEW

    def forget(self, source: int) -> None:
        self._windows.pop(source, None)

    def __len__(self) -> int:
        return len(self._windows)
