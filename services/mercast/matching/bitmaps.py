"""Bitmaps: which slots an attribute's value excludes.

Each attribute that enough filters ask about is a column. Its states are cut into cells: missing, false, true, intervals
of numbers, intervals of strings. A cell is a row of bits, one per slot: 1 if no value in the cell can satisfy the
slot. OR the rows of an event's cells, and the zeros that are left are the few slots worth checking exactly.

Slots that ask for similar values lie side by side, and the most selective columns come first: so a whole word of 64
slots is usually excluded after two or three rows, and the loop over the columns ends early.
"""

from bisect import bisect
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from mercast.limits import Limits
from mercast.matching.codes import BOOL, KINDS, MISSING
from mercast.matching.slots import Array, Check, owners_of

CELLS = np.dtype([("base", np.int32), ("first", np.int32), ("last", np.int32)], align=True)
"""A column's cells of one kind: the row of the first cell, and the cuts between the cells."""

WORD = 64
MOST_CELLS = 256
"""Cells per column and kind. More would leave fewer slots to check, but no longer fit the processor's cache."""

_RARE = 256
"""An attribute gets a column if at least one slot in so many asks about it; for fewer a row would be mostly empty."""

_SORTED_BY = 8
"""Columns that decide which slots are neighbours; with 64 slots to a word, more make no difference."""

_GRAIN = 8
"""Slots are neighbours if their intervals differ by less than this part of their usual width."""


class Column(NamedTuple):
    """What building needs to know of one column."""

    attribute: int
    checks: Array
    """Places of its checks."""
    cuts: dict[int, Array]
    """Cuts by kind."""

    @property
    def rows(self) -> int:
        return KINDS + sum(len(cuts) for cuts in self.cuts.values())


class Bitmaps:
    """The columns over `slots` and `checks`, with room for more slots at the end."""

    def __init__(self, columns: list[Column], slots: int, room: int) -> None:
        words = -(-(slots + room) // WORD)
        self.attributes = np.array([column.attribute for column in columns], np.int32)
        self.cells = np.zeros((len(columns), KINDS), CELLS)
        self.cuts = np.concatenate([np.empty(0), *(column.cuts[kind] for column in columns for kind in range(KINDS))])
        row = cut = 0
        for place, column in enumerate(columns):
            for kind in range(KINDS):
                count = len(column.cuts[kind])
                self.cells[place, kind] = (row, cut, cut + count)
                row, cut = row + count + 1, cut + count
        self.excluded = np.zeros((row, words), np.uint64)
        self.gone = np.full(words, ~np.uint64(0))
        """Slots that are free or whose filter was removed."""
        self._place_of = {column.attribute: place for place, column in enumerate(columns)}

    @property
    def capacity(self) -> int:
        return len(self.gone) * WORD

    @property
    def nbytes(self) -> int:
        return self.excluded.nbytes + self.gone.nbytes + self.cuts.nbytes

    def rows_of(self, place: int, kinds: Array, codes: Array) -> Array:
        """The row of each (kind, code) in one column."""
        rows = np.empty(len(codes), np.intp)
        for kind in range(KINDS):
            chosen = kinds == kind
            if chosen.any():
                base, first, last = self.cells[place, kind]
                rows[chosen] = base + np.searchsorted(self.cuts[first:last], codes[chosen], side="right")
        return rows

    def release(self, slot: int) -> None:
        self.gone[slot // WORD] |= np.uint64(1 << slot % WORD)

    def put(self, slot: int, checks: list[Check]) -> None:
        """Lay one slot."""
        word, bit = slot // WORD, np.uint64(1 << slot % WORD)
        for attribute, mine in groupby(checks, key=lambda check: check[0] // KINDS):
            place = self._place_of.get(attribute)
            if place is None:
                continue
            start, stop = self._span(place)
            self.excluded[start:stop, word] |= bit
            for key, low, high in mine:
                base, first, last = self.cells[place, key % KINDS].tolist()
                row = base - first
                first_row, last_row = (
                    row + bisect(self.cuts, low, first, last),
                    row + bisect(self.cuts, high, first, last),
                )
                self.excluded[first_row : last_row + 1, word] &= ~bit
        self.gone[word] &= ~bit

    def fill(self, columns: list[Column], owners: Array, checks: Array, slots: int) -> None:
        """Lay all slots at once, a column at a time: sweep its cells upwards, letting slots in and out."""
        self.gone[:] = _packed(np.arange(self.capacity) >= slots)
        for place, column in enumerate(columns):
            mine = checks[column.checks]
            owner, kinds = owners[column.checks], mine["key"] % KINDS
            enter, leave = self.rows_of(place, kinds, mine["low"]), self.rows_of(place, kinds, mine["high"]) + 1
            start, stop = self._span(place)
            # Two checks of a slot may meet in one cell: it then enters with the first and leaves with the second.
            meet = (owner[1:] == owner[:-1]) & (enter[1:] < leave[:-1])
            entering = _by_row(enter, owner, np.concatenate([[True], ~meet]), start, stop)
            leaving = _by_row(leave, owner, np.concatenate([~meet, [True]]), start, stop)
            excluded = np.zeros(self.capacity, np.bool_)
            excluded[owner] = True
            for row in range(start, stop):
                excluded[leaving[row - start]] = True
                excluded[entering[row - start]] = False
                self.excluded[row] = _packed(excluded)

    def _span(self, place: int) -> tuple[int, int]:
        """The first row of a column and the one after its last."""
        base, first, last = self.cells[place, KINDS - 1]
        return int(self.cells[place, 0]["base"]), int(base + last - first + 1)


def build(slots: Array, checks: Array, limits: Limits) -> tuple[Bitmaps, Array]:
    """Bitmaps for these slots, and the order in which the slots must be laid (new place -> old place)."""
    room = max(4 * WORD, len(slots) // 4)
    owners = owners_of(slots)
    rows = limits.bitmap_bytes * 8 // (len(slots) + room)
    columns = _columns(checks["key"] // KINDS, checks, len(slots), rows)
    bitmaps = Bitmaps(columns, len(slots), room)
    lay = [_layout(bitmaps, place, column, owners, checks, len(slots)) for place, column in enumerate(columns)]
    best = sorted(range(len(columns)), key=lambda place: (-lay[place][0], place))
    keys = [lay[place][1] for place in best[:_SORTED_BY]]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(slots))
    new_place = np.empty(len(slots), np.intp)
    new_place[order] = np.arange(len(slots))
    columns = [columns[place] for place in best]
    bitmaps = Bitmaps(columns, len(slots), room)
    bitmaps.fill(columns, new_place[owners], checks, len(slots))
    return bitmaps, order


def _columns(attributes: Array, checks: Array, slots: int, rows: int) -> list[Column]:
    """The attributes worth a column, with cells as fine as the memory for rows allows."""
    asked, counts = np.unique(attributes, return_counts=True)
    worth = asked[counts * _RARE >= slots]
    worth = worth[np.argsort(-counts[counts * _RARE >= slots], kind="stable")][: rows // (KINDS + 1)]
    by_attribute = np.argsort(attributes, kind="stable")
    first = np.searchsorted(attributes[by_attribute], worth)
    last = np.searchsorted(attributes[by_attribute], worth, side="right")
    places = [by_attribute[start:stop] for start, stop in zip(first, last, strict=True)]
    cells = MOST_CELLS
    while True:
        columns = [
            Column(attribute, mine, {kind: _cuts(kind, checks[mine], cells) for kind in range(KINDS)})
            for attribute, mine in zip(worth.tolist(), places, strict=True)
        ]
        if cells == 1 or sum(column.rows for column in columns) <= rows:
            return columns
        cells //= 2


def _cuts(kind: int, checks: Array, cells: int) -> Array:
    """Where the cells of one kind meet: at all the bounds, or at evenly many of them where there are too many."""
    if kind == MISSING:
        return np.empty(0)
    if kind == BOOL:
        return np.array([0.5])
    mine = checks[checks["key"] % KINDS == kind]
    with np.errstate(over="ignore"):  # beyond the largest float lies infinity, which is no cut
        bounds = np.concatenate([mine["low"], np.nextafter(mine["high"], np.inf)])
    bounds = np.sort(bounds[np.isfinite(bounds)])
    distinct = np.unique(bounds)
    if len(distinct) < cells:
        return distinct
    return np.unique(bounds[np.linspace(0, len(bounds), cells, endpoint=False).astype(np.intp)[1:]])


def _layout(
    bitmaps: Bitmaps, place: int, column: Column, owners: Array, checks: Array, slots: int
) -> tuple[float, Array]:
    """How much a column excludes, and a sorting key for its slots: similar intervals get equal keys, others zero."""
    mine = checks[column.checks]
    kinds = mine["key"] % KINDS
    low, high = bitmaps.rows_of(place, kinds, mine["low"]), bitmaps.rows_of(place, kinds, mine["high"])
    cells = bitmaps.cells[place]
    of_kind = (cells["last"] - cells["first"] + 1)[kinds]
    owner = owners[column.checks]
    allowed = np.zeros(slots)
    np.add.at(allowed, owner, (high - low + 1) / of_kind)
    asks = np.zeros(slots, np.bool_)
    asks[owner] = True
    excludes = float(np.sum(1 - np.minimum(allowed[asks], 1)))
    grain = max(1, int(np.mean(high - low + 1)) // _GRAIN)
    key = np.zeros(slots, np.intp)
    key[owner] = 1 + (low + high) // 2 // grain
    return excludes, key


def _by_row(rows: Array, owner: Array, counts: Array, start: int, stop: int) -> list[Array]:
    """For each row from start to stop, the owners of the entries that count."""
    rows, owner = rows[counts], owner[counts]
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(start, stop + 1))
    return [owner[order[a:b]] for a, b in pairwise(ends)]


def _packed(bits: Array) -> Array:
    return np.packbits(bits, bitorder="little").view(np.uint64)
