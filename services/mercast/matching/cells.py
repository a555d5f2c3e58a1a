"""An attribute's states cut into cells: missing, false, true, intervals of numbers, intervals of strings.

There are two grids. The fine cells meet at (nearly) every bound that a filter asks for. A coarse cell is a run of fine
ones: few enough that a row of bits per coarse cell fits the processor's cache.
"""

from bisect import bisect
from typing import NamedTuple

import numpy as np

from mercast.matching.codes import BOOL, KINDS
from mercast.matching.slots import Array

CELLS = np.dtype([("base", np.int32), ("first", np.int32), ("last", np.int32)], align=True)
"""A column's fine cells of one kind: the number of the first one, and the cuts between them."""


class Column(NamedTuple):
    """An attribute that is worth a column."""

    attribute: int
    checks: Array
    """Places of its checks."""
    cuts: dict[int, Array]
    """By kind, where its fine cells meet."""

    def rows(self, cells: int) -> int:
        """How many coarse cells it has, if each kind has at most so many."""
        return sum(int(_coarse(len(cuts) + 1, cells)[-1]) + 1 for cuts in self.cuts.values())


class Cells:
    """The cells of all columns. Fine cells are numbered throughout; a row is the number of a coarse one."""

    def __init__(self, columns: list[Column], most: int) -> None:
        """`most`: coarse cells per column and kind."""
        self.attributes = np.array([column.attribute for column in columns], np.int32)
        self.place_of = {column.attribute: place for place, column in enumerate(columns)}
        self.cells = np.zeros((len(columns), KINDS), CELLS)
        self.cuts = np.concatenate([np.empty(0), *(column.cuts[kind] for column in columns for kind in range(KINDS))])
        self.spans: list[tuple[int, int]] = []
        """Per column, its first row and the one after its last."""
        self.rows = fine = cut = 0
        runs = [np.empty(0, np.intp)]
        for place, column in enumerate(columns):
            start = self.rows
            for kind in range(KINDS):
                count = len(column.cuts[kind])
                self.cells[place, kind] = (fine, cut, cut + count)
                runs.append(self.rows + _coarse(count + 1, most))
                self.rows, fine, cut = int(runs[-1][-1]) + 1, fine + count + 1, cut + count
            self.spans.append((start, self.rows))
        self.row_of = np.concatenate(runs)
        """The row of each fine cell."""

    def find(self, place: int, kinds: Array, codes: Array) -> Array:
        """The fine cell of each (kind, code) in one column."""
        fine = np.empty(len(codes), np.intp)
        for kind in range(KINDS):
            chosen = kinds == kind
            if chosen.any():
                base, first, last = self.cells[place, kind]
                fine[chosen] = base + np.searchsorted(self.cuts[first:last], codes[chosen], side="right")
        return fine

    def row(self, place: int, kind: int, code: float) -> int:
        """The row of one (kind, code)."""
        base, first, last = self.cells[place, kind].tolist()
        return int(self.row_of[base - first + bisect(self.cuts, code, first, last)])

    def ends(self, place: int, kinds: Array, fine: Array) -> tuple[Array, Array]:
        """Where fine cells begin and where the next ones do. Missing, false and true have one value each: no bound can
        lie inside."""
        cells = self.cells[place][kinds]
        cut = cells["first"] + fine - cells["base"]
        cuts = np.append(np.append(-np.inf, self.cuts), np.inf)
        begin = np.where(cut > cells["first"], cuts[cut], -np.inf)
        end = np.where(cut < cells["last"], cuts[cut + 1], np.inf)
        one_value = kinds <= BOOL
        return np.where(one_value, np.inf, begin), np.where(one_value, -np.inf, end)


def _coarse(fine: int, most: int) -> Array:
    """Runs of fine cells, at most so many: the number of each cell's run."""
    return np.arange(fine) // -(-fine // most)
