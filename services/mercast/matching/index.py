"""The matching index: which filters an event satisfies, exactly and fast.

    add -> pending -> folded into the table at the next match -> bitmaps -> checks -> (loose filters: evaluated)

A few new filters are laid into the room at the end of the table. When that room is used up, or half the slots are
gone, the table is laid anew in one vectorised pass; so a change costs a small constant time on average.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mercast.content.filter import Filter
from mercast.content.values import Attributes
from mercast.limits import DEFAULTS, Limits
from mercast.matching.loops import NumpyLoop
from mercast.matching.slots import Array
from mercast.matching.table import Entry, Table

if TYPE_CHECKING:
    from mercast.matching.compiled import CompiledLoop

_PENDING = 1024
"""Filters that may wait for a match; then they are folded in all the same."""


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
        self._pending: dict[Hashable, Entry] = {}

    def add(self, id: Hashable, filter: Filter, destination: Hashable = None) -> None:
        if id in self:
            raise ValueError(f"the index holds a filter with the id {id!r} already: remove it first")
        self._pending[id] = Entry(id, filter, destination)
        if len(self._pending) >= max(_PENDING, len(self._table) // 2):
            self._fold()

    def remove(self, id: Hashable) -> None:
        if self._pending.pop(id, None) is None:
            self._table.remove(id)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._pending or id in self._table

    def __len__(self) -> int:
        return len(self._pending) + len(self._table)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, by far the largest part."""
        return self._table.nbytes

    def match(self, attributes: Attributes) -> list[Any]:
        """The ids of the filters that match, ascending."""
        return self.match_many((attributes,))[0]

    def match_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        """For each event, the ids of the filters that match, ascending."""
        self._fold()
        return [self._table.ids_of(slots) for slots in self._slots(events, once=False)]

    def destinations(self, attributes: Attributes) -> list[Any]:
        """The destinations with at least one filter that matches, ascending."""
        return self.destinations_many((attributes,))[0]

    def destinations_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        """For each event, the destinations with at least one filter that matches, ascending."""
        self._fold()
        return [self._table.destinations_of(slots) for slots in self._slots(events, once=True)]

    def _fold(self) -> None:
        if self._pending:
            self._table.fold(list(self._pending.values()))
            self._pending.clear()

    def _slots(self, events: Sequence[Attributes], once: bool) -> Iterator[Array]:
        """The slots that match, event by event."""
        table = self._table
        part = max(1, self._limits.batch_bytes // (_BYTES_PER_CODE * (1 + len(table.coding.strings))))
        for start in range(0, len(events), part):
            batch = events[start : start + part]
            codes = table.coding.encode(batch)
            slots, ends = self._loop.find(table.bitmaps, table.slots, table.checks, codes, once)
            for event, first, last in zip(batch, [0, *ends], ends, strict=False):
                yield self._without_misses(slots[first:last], event)

    def _without_misses(self, slots: Array, event: Attributes) -> Array:
        """Loose slots pass only if their filters match."""
        loose = self._table.loose
        if not loose:
            return slots
        return slots[[slot not in loose or loose[slot].matches(event) for slot in slots.tolist()]]


def _loop(compiled: bool | None) -> "NumpyLoop | CompiledLoop":
    if compiled is not False:
        try:
            from mercast.matching.compiled import CompiledLoop

            return CompiledLoop()
        except ImportError:
            if compiled:
                raise
    return NumpyLoop()
