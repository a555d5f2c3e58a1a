"""Bitmaps: which slots an attribute's value excludes.

Each attribute that enough filters ask about is a column. For each of its coarse cells there is a row of bits, one per
slot: 1 if no value in the cell can satisfy the slot. OR the rows of an event's cells, and the zeros that are left are
the few slots worth a closer look.
"""

from itertools import groupby, pairwise

import numpy as np

from mercast.matching.cells import Cells, Column
from mercast.matching.codes import KINDS
from mercast.matching.fine import Fine, Ranges, ranges
from mercast.matching.slots import Array, Check

WORD = 64
_FULL = ~np.uint64(0)


class Bitmaps:
    """The bits, with room for more slots at the end."""

    def __init__(self, cells: Cells, slots: int) -> None:
        words = -(-slots // WORD)
        self.cells = cells
        self.excluded = np.zeros((cells.rows, words), np.uint64)
        self.gone = np.full(words, _FULL)
        """Slots that are free or whose filter was removed."""
        self.words = 0
        """How many words are in use."""
        self.fine = Fine(len(cells.attributes), self.capacity)

    @property
    def capacity(self) -> int:
        return len(self.gone) * WORD

    @property
    def nbytes(self) -> int:
        return self.excluded.nbytes + self.gone.nbytes + self.fine.nbytes

    def release(self, slot: int) -> None:
        self.gone[slot // WORD] |= _bit(slot)

    def put(self, slot: int, checks: list[Check]) -> None:
        """Lay one slot."""
        word, bit = slot // WORD, _bit(slot)
        for attribute, mine in groupby(checks, key=lambda check: check[0] // KINDS):
            place = self.cells.place_of.get(attribute)
            if place is None:
                continue
            start, stop = self.cells.spans[place]
            self.excluded[start:stop, word] |= bit
            for key, _, low, high in mine:
                first, last = self.cells.row(place, key % KINDS, low), self.cells.row(place, key % KINDS, high)
                self.excluded[first : last + 1, word] &= ~bit
        self.fine.put(slot)
        self.words = max(self.words, word + 1)
        self.gone[word] &= ~bit

    def fill(self, columns: list[Column], owners: Array, checks: Array, slots: int) -> None:
        """Lay all slots at once, a column at a time: sweep its cells upwards, letting slots in and out."""
        self.gone[:] = _packed(np.arange(self.capacity) >= slots)
        self.words = -(-slots // WORD)
        asked: dict[int, Ranges] = {}
        for place, column in enumerate(columns):
            mine = checks[column.checks]
            owner, kinds = owners[column.checks], mine["key"] % KINDS
            asked[place] = ranges(self.cells, place, owner, mine)
            enter = self.cells.row_of[self.cells.find(place, kinds, mine["low"])]
            leave = self.cells.row_of[self.cells.find(place, kinds, mine["high"])] + 1
            start, stop = self.cells.spans[place]
            # Two checks of a slot may meet in one cell: it then enters with the first and leaves with the second.
            meet = (owner[1:] == owner[:-1]) & (enter[1:] < leave[:-1])
            entering = _by_row(enter, owner, np.append(True, ~meet), start, stop)
            leaving = _by_row(leave, owner, np.append(~meet, True), start, stop)
            excluded = np.zeros(self.capacity, np.bool_)
            excluded[owner] = True
            for row in range(start, stop):
                excluded[leaving[row - start]] = True
                excluded[entering[row - start]] = False
                self.excluded[row] = _packed(excluded)
        elsewhere = owners[~np.isin(checks["key"] // KINDS, self.cells.attributes)]
        self.fine.fill(slots, asked, elsewhere)


def _bit(place: int) -> np.uint64:
    return np.uint64(1 << place % WORD)


def _by_row(rows: Array, owner: Array, counts: Array, start: int, stop: int) -> list[Array]:
    """For each row from start to stop, the owners of the entries that count."""
    rows, owner = rows[counts], owner[counts]
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(start, stop + 1))
    return [owner[order[a:b]] for a, b in pairwise(ends)]


def _packed(bits: Array) -> Array:
    return np.packbits(bits, bitorder="little").view(np.uint64)
