"""Bitmaps: which slots an attribute's value excludes.

Each attribute that enough filters ask about is a column. Its states are cut into cells: missing, false, true, intervals
of numbers, intervals of strings. A cell is a row of bits, one per slot: 1 if no value in the cell can satisfy the
slot. OR the rows of an event's cells, and the zeros that are left are the few slots worth checking exactly.
"""

from bisect import bisect
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from mercast.matching.codes import KINDS
from mercast.matching.slots import Array, Check

CELLS = np.dtype([("base", np.int32), ("first", np.int32), ("last", np.int32)], align=True)
"""A column's cells of one kind: the row of the first cell, and the cuts between the cells."""

WORD = 64


class Column(NamedTuple):
    """A column before its bits are laid."""

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
                start = base - first + bisect(self.cuts, low, first, last)
                stop = base - first + bisect(self.cuts, high, first, last) + 1
                self.excluded[start:stop, word] &= ~bit
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


def _by_row(rows: Array, owner: Array, counts: Array, start: int, stop: int) -> list[Array]:
    """For each row from start to stop, the owners of the entries that count."""
    rows, owner = rows[counts], owner[counts]
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(start, stop + 1))
    return [owner[order[a:b]] for a, b in pairwise(ends)]


def _packed(bits: Array) -> Array:
    return np.packbits(bits, bitorder="little").view(np.uint64)
