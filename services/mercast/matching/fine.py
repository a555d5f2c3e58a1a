"""Which candidates pass and which do not, by the fine cells alone: most need no further check.

A number of 15 bits stands for a place on a column's scale: odd ones for the fine cells, even ones for where they meet.
Per slot and column there are two: the range that it asks for begins and ends at an even one where it takes in a whole
cell, at the odd one of a cell that it takes in partly. An event whose odd number lies outside is out, one strictly
inside is in, and one on the edge shares a cell with a bound: its checks decide.

Four numbers lie in a word. The top bit of each lane is free, so four columns are compared by one subtraction: the bit
stays set where the left number is not the smaller one.
"""

from typing import NamedTuple

import numpy as np

from mercast.matching.cells import Cells
from mercast.matching.codes import KINDS
from mercast.matching.slots import Array

LANES = 4
MOST_COLUMNS = 32
"""The first columns are compared; slots that ask about others are checked."""

FINEST = 1024
"""Fine cells per column and kind: both kinds fit into a lane, twice."""

_ANY = np.uint64(0x7FFF_7FFF_7FFF_7FFF)
"""As the end: all of four columns."""

_LANE = np.uint64(0x7FFF)


class Ranges(NamedTuple):
    """What slots ask of one column."""

    slots: Array
    first: Array
    last: Array
    whole: Array
    """Whether the range is all that the slot asks, and not the hull of several."""


def ranges(cells: Cells, place: int, owners: Array, checks: Array) -> Ranges:
    """Of the checks of a column: a slot's lie together, ascending."""
    kinds, low, high = checks["key"] % KINDS, checks["low"], checks["high"]
    base = cells.cells[place, 0]["base"]
    first, last = cells.find(place, kinds, low), cells.find(place, kinds, high)
    with np.errstate(over="ignore"):
        after = np.nextafter(high, np.inf)
    first_is_partial = low > cells.ends(place, kinds, first)[0]
    last_is_partial = after < cells.ends(place, kinds, last)[1]
    first, last = 2 * (first - base) + first_is_partial, 2 * (last - base) + 2 - last_is_partial
    begins = np.append(True, owners[1:] != owners[:-1])
    ends = np.append(begins[1:], True)
    return Ranges(owners[begins], first[begins], last[ends], ends[begins])


class Fine:
    def __init__(self, columns: int, slots: int) -> None:
        self._columns = min(columns, MOST_COLUMNS)
        words = max(1, -(-self._columns // LANES))
        self.words = np.zeros((slots, 2, words), np.uint64)
        self.decides = np.zeros(slots, np.bool_)
        """Whether a slot that is strictly inside in all columns needs no check."""

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.decides.nbytes

    def fill(self, slots: int, asked: dict[int, Ranges], elsewhere: Array) -> None:
        """Lay all slots: what they ask of each column, and those that ask about attributes without one."""
        first, last = self.words[:slots, 0], self.words[:slots, 1]
        first[:], last[:], self.decides[:slots] = 0, _ANY, True
        self.decides[elsewhere] = False
        for column, mine in asked.items():
            self.decides[mine.slots] &= mine.whole & (column < self._columns)
            if column < self._columns:
                word, shift = column // LANES, np.uint64(16 * (column % LANES))
                first[mine.slots, word] |= mine.first.astype(np.uint64) << shift
                last[mine.slots, word] ^= (mine.last.astype(np.uint64) ^ _LANE) << shift

    def put(self, slot: int) -> None:
        """Lay one slot: until all are laid anew its checks decide."""
        self.words[slot, 0], self.words[slot, 1], self.decides[slot] = 0, _ANY, False
