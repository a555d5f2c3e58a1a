"""The matching index: which filters an event satisfies, exactly and fast.

event -> codes -> bitmaps exclude most slots -> checks decide the rest -> (loose filters are evaluated) -> ids
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercast.content.filter import Filter
from mercast.content.values import Attributes
from mercast.limits import DEFAULTS, Limits
from mercast.matching.loops import Found, NumpyLoop, events_of, joined, kept
from mercast.matching.table import Table

if TYPE_CHECKING:
    from mercast.matching.compiled import CompiledLoop

_BYTES_PER_CODE = 17
"""Of an event's attribute in a batch: kind, low, high."""


class Index:
    """Ids are of any hashable type that sorts. A destination is who wants a filter's events (say, a broker): many
    filters may share one, and `destinations` answers each at most once."""

    def __init__(self, limits: Limits = DEFAULTS, *, compiled: bool | None = None) -> None:
        """`compiled`: the inner loop by numba (True), by numpy (False), by numba if it is installed (None)."""
        self._limits = limits
        self._loop = _loop(compiled)
        self._table = Table(limits)

    def add(self, id: Hashable, filter: Filter, destination: Hashable = None) -> None:
        if id in self:
            raise ValueError(f"the index holds a filter with the id {id!r} already: remove it first")
        self._table.add(id, filter, destination)

    def remove(self, id: Hashable) -> None:
        self._table.remove(id)

    def move(self, id: Hashable, destination: Hashable) -> None:
        """Give a filter another destination; far cheaper than to add it anew."""
        self._table.move(id, destination)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._table

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, by far the largest part."""
        return self._table.nbytes

    def match(self, attributes: Attributes) -> list[Any]:
        """The ids of the filters that match, ascending."""
        return self.match_many((attributes,))[0]

    def match_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        """For each event, the ids of the filters that match, ascending."""
        return [ids for found in self._found(events, once=False) for ids in self._table.ids_of(found, self._loop.sort)]

    def numbers_many(self, events: Sequence[Attributes]) -> Found:
        """As `match_many`, of ids that are all ints: event after event in one array, and where each event's end."""
        return joined([self._table.numbers_of(found, self._loop.sort) for found in self._found(events, once=False)])

    def destinations(self, attributes: Attributes) -> list[Any]:
        """The destinations with at least one filter that matches, ascending."""
        return self.destinations_many((attributes,))[0]

    def destinations_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        """For each event, the destinations with at least one filter that matches, ascending."""
        return [some for found in self._found(events, once=True) for some in self._table.destinations_of(found)]

    def _found(self, events: Sequence[Attributes], once: bool) -> Iterator[Found]:
        """The slots that match, for one part of the events after the other."""
        table = self._table
        table.lay()
        part = max(1, self._limits.batch_bytes // (_BYTES_PER_CODE * (1 + len(table.coding.strings))))
        for start in range(0, len(events), part):
            some = events[start : start + part]
            destinations = table.destinations if once else 0
            batch = table.coding.encode(some)
            found = self._loop.find(table.bitmaps, table.slots, table.checks, batch, destinations)
            yield self._without_misses(found, some, once) if table.loose else found

    def _without_misses(self, found: Found, events: Sequence[Attributes], once: bool) -> Found:
        """Loose slots pass only if their filters match. With `once`, one of each destination will do."""
        table = self._table
        slots, event_of = table.slots[found[0]], events_of(found)
        passed = ~slots["loose"]
        reached = set(zip(event_of[passed].tolist(), slots["destination"][passed].tolist(), strict=True))
        for at in np.flatnonzero(slots["loose"]).tolist():
            pair = int(event_of[at]), int(slots["destination"][at])
            if not (once and pair in reached) and table.loose[int(found[0][at])].matches(events[pair[0]]):
                passed[at] = True
                reached.add(pair)
        return kept(found, passed)


def _loop(compiled: bool | None) -> "NumpyLoop | CompiledLoop":
    if compiled is not False:
        try:
            from mercast.matching.compiled import CompiledLoop

            return CompiledLoop()
        except ImportError:
            if compiled:
                raise
    return NumpyLoop()


def prepare() -> None:
    """Have the loop compiled, or read from disk, now: the first event would wait for it, and all else beside it."""
    index = Index()
    index.add(0, Filter())
    index.match({})
