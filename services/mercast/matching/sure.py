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
        first = np.zeros((slots, LANES * self._words), np.uint16)
        last = np.full_like(first, NEVER)
        for column, rows in asked.items():
            if column < self._columns:
                first[rows.slots, column], last[rows.slots, column] = rows.first, rows.last
            else:
                never = np.append(never, rows.slots)
        first[never, 0] = NEVER
        self.words[:slots, 0], self.words[:slots, 1] = _packed(first), _packed(last)

    def never(self, slot: int) -> None:
        self.words[slot, 0] = NEVER
        self.words[slot, 1] = 0


def _packed(lanes: Array) -> Array:
    """Four numbers of 16 bits to a word, the first lowest, whatever the machine's order of bytes."""
    wide = lanes.astype(np.uint64).reshape(len(lanes), lanes.shape[1] // LANES, LANES)
    words: Array = np.bitwise_or.reduce(wide << np.arange(0, 64, 16, dtype=np.uint64), axis=2)
    return words
