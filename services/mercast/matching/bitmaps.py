"""Bitmaps: which slots an attribute's value excludes.

Each attribute that enough filters ask about is a column. Its states are cut into cells: missing, false, true, intervals
of numbers, intervals of strings. A cell is a row of bits, one per slot: 1 if no value in the cell can satisfy the
slot. OR the rows of an event's cells, and the zeros that are left are the few slots worth checking exactly. A second
row, 64 times shorter, tells which words of the first are all ones, so most words are never looked at.
"""

from bisect import bisect
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from mercast.matching.codes import BOOL, KINDS
from mercast.matching.slots import Array, Check
from mercast.matching.sure import NEVER, Rows, Sure

CELLS = np.dtype([("base", np.int32), ("first", np.int32), ("last", np.int32)], align=True)
"""A column's cells of one kind: the row of the first cell, and the cuts between the cells."""

WORD = 64
_FULL = ~np.uint64(0)


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


class Cells:
    """Where the cells of all columns meet, and which row each has."""

    def __init__(self, columns: list[Column]) -> None:
        self.attributes = np.array([column.attribute for column in columns], np.int32)
        self.cells = np.zeros((len(columns), KINDS), CELLS)
        self.cuts = np.concatenate([np.empty(0), *(column.cuts[kind] for column in columns for kind in range(KINDS))])
        self.rows = cut = 0
        for place, column in enumerate(columns):
            for kind in range(KINDS):
                count = len(column.cuts[kind])
                self.cells[place, kind] = (self.rows, cut, cut + count)
                self.rows, cut = self.rows + count + 1, cut + count
        self.place_of = {column.attribute: place for place, column in enumerate(columns)}

    def span(self, place: int) -> tuple[int, int]:
        """The first row of a column and the one after its last."""
        base, first, last = self.cells[place, KINDS - 1]
        return int(self.cells[place, 0]["base"]), int(base + last - first + 1)

    def rows_of(self, place: int, kinds: Array, codes: Array) -> Array:
        """The row of each (kind, code) in one column."""
        rows = np.empty(len(codes), np.intp)
        for kind in range(KINDS):
            chosen = kinds == kind
            if chosen.any():
                base, first, last = self.cells[place, kind]
                rows[chosen] = base + np.searchsorted(self.cuts[first:last], codes[chosen], side="right")
        return rows

    def row(self, place: int, kind: int, code: float) -> int:
        """As `rows_of`, of one."""
        base, first, last = self.cells[place, kind].tolist()
        return int(base - first + bisect(self.cuts, code, first, last))

    def sure_rows(self, place: int, slots: Array, checks: Array) -> Rows:
        """The rows of a column, counted from its first, whose cells lie wholly inside the slots' checks."""
        start, _ = self.span(place)
        kinds, low, high = checks["key"] % KINDS, checks["low"], checks["high"]
        first, last = self.rows_of(place, kinds, low), self.rows_of(place, kinds, high)
        # Missing, false and true are cells of one value; the others begin at a cut and end before the next.
        cells = self.cells[place][kinds]
        ends = np.append(np.append(-np.inf, self.cuts), np.inf)
        with np.errstate(over="ignore"):
            after = np.nextafter(high, np.inf)
        begins = np.where(first > cells["base"], ends[cells["first"] + first - cells["base"]], -np.inf)
        stops = np.where(
            last < cells["base"] + cells["last"] - cells["first"],
            ends[cells["first"] + last - cells["base"] + 1],
            np.inf,
        )
        of_many = kinds > BOOL
        first, last = first + (of_many & (low > begins)), last - (of_many & (after < stops))
        several = (np.append(False, slots[1:] == slots[:-1])) | np.append(slots[1:] == slots[:-1], False)
        return Rows(slots, np.where(several, NEVER, first - start), np.where(several, 0, np.maximum(last - start, 0)))


class Bitmaps:
    """The bits, with room for more slots at the end."""

    def __init__(self, columns: list[Column], slots: int, room: int) -> None:
        words = -(-(slots + room) // WORD)
        self.cells = Cells(columns)
        self.excluded = np.zeros((self.cells.rows, words), np.uint64)
        self.full = np.zeros((self.cells.rows, -(-words // WORD)), np.uint64)
        """Per row, the words that are all ones."""
        self.gone = np.full(words, _FULL)
        """Slots that are free or whose filter was removed."""
        self.gone_full = np.full(-(-words // WORD), _FULL)
        self.sure = Sure(len(columns), self.capacity)

    @property
    def capacity(self) -> int:
        return len(self.gone) * WORD

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.excluded, self.full, self.gone, self.gone_full, self.sure.words))

    def release(self, slot: int) -> None:
        word = slot // WORD
        self.gone[word] |= _bit(slot)
        if self.gone[word] == _FULL:
            self.gone_full[word // WORD] |= _bit(word)

    def put(self, slot: int, checks: list[Check]) -> None:
        """Lay one slot. Until all are laid anew it is checked whenever it is a candidate."""
        word, bit = slot // WORD, _bit(slot)
        for attribute, mine in groupby(checks, key=lambda check: check[0] // KINDS):
            place = self.cells.place_of.get(attribute)
            if place is None:
                continue
            start, stop = self.cells.span(place)
            column = self.excluded[start:stop, word]
            column |= bit
            for key, low, high in mine:
                first, last = self.cells.row(place, key % KINDS, low), self.cells.row(place, key % KINDS, high)
                self.excluded[first : last + 1, word] &= ~bit
            self.full[start:stop, word // WORD] |= (column == _FULL) * _bit(word)
        self.sure.never(slot)
        self.gone[word] &= ~bit
        self.gone_full[word // WORD] &= ~_bit(word)

    def fill(self, columns: list[Column], owners: Array, checks: Array, slots: int) -> None:
        """Lay all slots at once, a column at a time: sweep its cells upwards, letting slots in and out."""
        self.gone[:] = _packed(np.arange(self.capacity) >= slots)
        self.gone_full[:] = _full(self.gone[np.newaxis])[0]
        asked: dict[int, Rows] = {}
        for place, column in enumerate(columns):
            mine = checks[column.checks]
            owner, kinds = owners[column.checks], mine["key"] % KINDS
            asked[place] = self.cells.sure_rows(place, owner, mine)
            enter = self.cells.rows_of(place, kinds, mine["low"])
            leave = self.cells.rows_of(place, kinds, mine["high"]) + 1
            start, stop = self.cells.span(place)
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
            self.full[start:stop] = _full(self.excluded[start:stop])
        elsewhere = owners[~np.isin(checks["key"] // KINDS, self.cells.attributes)]
        self.sure.fill(slots, asked, elsewhere)


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


def _full(words: Array) -> Array:
    """Per row, one bit for each word that is all ones; the words beyond the last count as full."""
    full = np.ones((len(words), -(-words.shape[1] // WORD) * WORD), np.bool_)
    full[:, : words.shape[1]] = words == _FULL
    return np.packbits(full, axis=1, bitorder="little").view(np.uint64)
