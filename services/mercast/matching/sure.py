"""Which candidates need no check: those whose every row lies wholly inside what their slot asks for.

Per slot and column, the first and last such row, as numbers of 15 bits, four to a word. The top bit of each lane is
free, so four columns are compared by two subtractions: it stays set where the left number is not the smaller one.
"""

from typing import NamedTuple

import numpy as np

from mercast.matching.slots import Array

LANES = 4
MOST_COLUMNS = 32
"""The first columns are compared; a slot that asks about others is never sure."""

NEVER = 0x7FFF
"""No row: above all of them."""


_ANY = np.uint64(0x7FFF_7FFF_7FFF_7FFF)
"""Four times NEVER, as the last row: a column that the slot does not ask about."""


class Rows(NamedTuple):
    """The first and last rows of one column that are sure, slot by slot; none where first > last."""

    slots: Array
    first: Array
    last: Array


class Sure:
    def __init__(self, columns: int, slots: int) -> None:
        self._columns = min(columns, MOST_COLUMNS)
        self._words = max(1, -(-self._columns // LANES))
        self.words = np.zeros((slots, 2, self._words), np.uint64)

    def fill(self, slots: int, asked: dict[int, Rows], never: Array) -> None:
        """Lay all slots: what they ask of each column, and those that are never sure."""
        first, last = self.words[:slots, 0], self.words[:slots, 1]
        first[:], last[:] = 0, _ANY
        for column, rows in asked.items():
            if column >= self._columns:
                never = np.append(never, rows.slots)
                continue
            word, shift = column // LANES, np.uint64(16 * (column % LANES))
            first[rows.slots, word] |= rows.first.astype(np.uint64) << shift
            last[rows.slots, word] &= ~(np.uint64(NEVER) << shift)
            last[rows.slots, word] |= rows.last.astype(np.uint64) << shift
        first[never, 0] |= np.uint64(NEVER)

    def never(self, slot: int) -> None:
        self.words[slot, 0] = NEVER
        self.words[slot, 1] = 0
