"""The window of seen events: no event is taken twice.

Per source broker and incarnation, the highest sequence seen and a bitmap of the ones before it. A repeat is dropped; an
event older than the window cannot be told from a repeat and is dropped as stale.

What was seen of a source is not forgotten when the source is: a broker that stood still may bring its events long
after. The sources that nothing came from for the longest time are, once there are too many.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import groupby
from operator import itemgetter, lt
from typing import TypeAlias

from mercast.content.event import EventId
from mercast.limits import DEFAULTS
from mercast.protocol.repeated import alike, in_row

Way: TypeAlias = tuple[int, ...]
"""The clusters that an event has left."""


class Seen(Enum):
    NEW = "new"
    REPEAT = "repeat"
    STALE = "stale"


_origin = itemgetter(0, 1)


class SeenWindow:
    def __init__(
        self, size: int = 4096, own: tuple[int, int] | None = None, sources: int = DEFAULTS.seen_sources
    ) -> None:
        """`own` are this broker and its incarnation: whatever it has published was here before."""
        self._own = own
        self._size, self._all, self._sources = size, (1 << size) - 1, sources
        self._windows: dict[tuple[int, int, Way], tuple[int, int]] = {}
        """Per source, incarnation and way: highest sequence, bits (bit k stands for the k-th before the highest). The
        one that was used last is the last."""

    def see(self, event: EventId) -> Seen:
        """Whether the event is new; from now on it no longer is."""
        return self.see_all((event,))[0]

    def see_all(self, events: Sequence[EventId], way: Way = ()) -> list[Seen]:
        """Whether each of these is new, one after the other; by this way, if it matters by which they come."""
        if not events:
            return []
        sources, incarnations, sequences = zip(*events, strict=True)
        if alike(sources) and alike(incarnations):
            return self._see((sources[0], incarnations[0], way), in_row(sequences))
        answers: list[Seen] = []
        for (source, incarnation), run in groupby(events, _origin):
            answers += self._see((source, incarnation, way), in_row(tuple(sequence for _, _, sequence in run)))
        return answers

    def follow(self, origin: tuple[int, int, Way], row: range) -> bool:
        """Whether these, each one more than that before it, come after the highest: then all are new, and no longer
        are. Else nothing is done."""
        window = self._windows.get(origin)
        if window is None or row[0] <= window[0]:
            return False
        (highest, bits), last = window, row[-1]
        del self._windows[origin]  # it becomes the last
        self._windows[origin] = last, (bits << min(last - highest, self._size) | (1 << len(row)) - 1) & self._all
        return True

    def _see(self, origin: tuple[int, int, Way], sequences: Sequence[int]) -> list[Seen]:
        """The same of events of one source and incarnation, that came by one way."""
        count = len(sequences)
        if origin[:2] == self._own:
            return [Seen.REPEAT] * count
        if isinstance(sequences, range) and self.follow(origin, sequences):  # the usual case, in one step
            return [Seen.NEW] * count
        window = self._windows.pop(origin, None)
        if window is None and len(self._windows) >= self._sources:
            del self._windows[next(iter(self._windows))]
        highest, bits = window or (-1, 0)
        if highest < sequences[0] and all(map(lt, sequences, sequences[1:])):  # with gaps, as samples have
            last, ones = sequences[-1], 0
            for sequence in sequences:
                if last - sequence < self._size:
                    ones |= 1 << last - sequence
            bits = (bits << min(last - highest, self._size) | ones) & self._all
            self._windows[origin] = last, bits
            return [Seen.NEW] * count
        answers: list[Seen] = []
        for sequence in sequences:
            age = highest - sequence
            if age < 0:
                bits = (bits << min(-age, self._size) | 1) & self._all
                highest = sequence
                answers.append(Seen.NEW)
            elif age >= self._size:
                answers.append(Seen.STALE)
            elif bits >> age & 1:
                answers.append(Seen.REPEAT)
            else:
                bits |= 1 << age
                answers.append(Seen.NEW)
        self._windows[origin] = highest, bits
        return answers

    def __len__(self) -> int:
        return len(self._windows)
