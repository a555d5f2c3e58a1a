"""The yardstick for matching: a plain numpy bitmap AND.

Per attribute the values are cut into cells, per cell there is a packed bitmap of the filters that it may satisfy; a
match ANDs one bitmap per attribute and lists the bits that are left. It shares no code with the index, and does less:
the cells of an event are looked up beforehand, and the candidates are not checked exactly.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mercast.content import Filter, Value
from mercast.content.expression import And, Between, Compare

CELLS = 256

Array = npt.NDArray[Any]


class Yardstick:
    """For conjunctions of equalities and ranges, one per attribute, as the workloads make them."""

    def __init__(self, filters: Iterable[Filter], size: int) -> None:
        ranges, values = _constraints(filters)
        self._cells: dict[str, Any] = {}
        self._bitmaps: dict[str, Array] = {}
        for name, rows in ranges.items():
            owners, lows, highs = (np.array(column) for column in zip(*rows, strict=True))
            bounds = np.concatenate([lows, highs])
            cuts = np.unique(np.quantile(bounds[np.isfinite(bounds)], np.linspace(0, 1, CELLS + 1)[1:-1]))
            first, last = np.searchsorted(cuts, lows, "right"), np.searchsorted(cuts, highs, "right")
            excluded = ((owners[(cell < first) | (cell > last)]) for cell in range(len(cuts) + 1))
            self._cells[name], self._bitmaps[name] = cuts, _bitmaps(excluded, len(cuts) + 1, size)
        for name, owners_of in values.items():
            owners = np.concatenate([np.array(some) for some in owners_of.values()])
            excluded = (np.setdiff1d(owners, mine) for mine in [[], *owners_of.values()])
            self._cells[name] = {value: cell for cell, value in enumerate(owners_of, 1)}
            self._bitmaps[name] = _bitmaps(excluded, len(owners_of) + 1, size)

    def cells(self, event: dict[str, Value]) -> list[tuple[Array, int]]:
        """Where to look for this event: a table of bitmaps and a row in it, per attribute."""
        return [(self._bitmaps[name], self._cell(cells, event[name])) for name, cells in self._cells.items()]

    @staticmethod
    def _cell(cells: Any, value: Value) -> int:
        return cells.get(value, 0) if isinstance(cells, dict) else int(np.searchsorted(cells, value, "right"))

    @staticmethod
    def match(cells: list[tuple[Array, int]]) -> Array:
        """The numbers of the filters that may match."""
        bitmaps, row = cells[0]
        left = bitmaps[row].copy()
        for bitmaps, row in cells[1:]:
            np.bitwise_and(left, bitmaps[row], out=left)
        return np.flatnonzero(np.unpackbits(left.view(np.uint8), bitorder="little").view(np.bool_))


def _constraints(filters: Iterable[Filter]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Per attribute: (filter, low, high) of ranges, and the filters of each value of equalities."""
    ranges: dict[str, Any] = defaultdict(list)
    values: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    for number, filter in enumerate(filters):
        assert isinstance(filter.expression, And)
        for term in filter.expression.terms:
            match term:
                case Between(name, low, high):
                    ranges[name].append((number, low, high))
                case Compare(name, ">=", low):
                    ranges[name].append((number, low, np.inf))
                case Compare(name, "=", value):
                    values[name][value].append(number)
                case _:
                    raise ValueError(f"the yardstick does not know {term}")
    return ranges, values


def _bitmaps(excluded: Iterable[Array], rows: int, size: int) -> Array:
    bitmaps = np.empty((rows, -(-size // 64)), np.uint64)
    for row, owners in enumerate(excluded):
        bits = np.zeros(bitmaps.shape[1] * 64, np.bool_)
        bits[:size] = True
        bits[owners] = False
        bitmaps[row] = np.packbits(bits, bitorder="little").view(np.uint64)
    return bitmaps
