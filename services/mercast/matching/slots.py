"""Filters as slots: one slot per box of a filter, each a run of checks in one flat array.

A check is (attribute, kind, low, high). A slot passes if for each of its attributes one of the checks passes. A slot is
loose if its checks let more through than the filter does (LIKE inside a word, widened boxes): then the filter itself
has the last word.
"""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mercast.content.boxes import States
from mercast.matching.codes import BOOL, KINDS, MISSING, NUMBER, STRING, Strings, number_high, number_low

Array: TypeAlias = npt.NDArray[Any]
Check: TypeAlias = tuple[int, int, float, float]

CHECK = np.dtype([("key", np.int32), ("run", np.int32), ("low", np.float64), ("high", np.float64)], align=True)
"""`key` is attribute * KINDS + kind. A slot's checks of one attribute lie together, by kind and ascending; `run` is
their number."""

SLOT = np.dtype([("first", np.int32), ("last", np.int32), ("destination", np.int32), ("loose", np.bool_)], align=True)
"""`first` and `last` are its run of checks, `destination` is a number."""


class Growing:
    """An array that grows at its end; `rows` is the part in use."""

    def __init__(self, rows: Array) -> None:
        self._array = self.rows = rows

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    def extend(self, rows: Any) -> None:
        used = len(self.rows)
        if used + len(rows) > len(self._array):
            self._array = np.zeros(2 * (used + len(rows)), self._array.dtype)
            self._array[:used] = self.rows
        self._array[used : used + len(rows)] = rows
        self.rows = self._array[: used + len(rows)]


def owners_of(slots: Array) -> Array:
    """The slot of each check, for slots whose checks lie one after the other from the start."""
    return np.repeat(np.arange(len(slots)), slots["last"] - slots["first"])


def chosen(slots: Array, checks: Array, order: Array) -> tuple[Array, Array]:
    """These slots in this order, and their checks one after the other."""
    slots = slots[order]
    lengths = slots["last"] - slots["first"]
    ends = np.cumsum(lengths)
    starts = ends - lengths
    checks = checks[np.arange(lengths.sum()) + np.repeat(slots["first"] - starts, lengths)]
    slots["first"], slots["last"] = starts, ends
    return slots, checks


def texts_of(states: States) -> list[str]:
    """The strings that must be in the dictionary before the checks are made."""
    return [text for text, _ in states.strings.cuts]


def checks_of(attribute: int, states: States, strings: Strings) -> tuple[list[Check], bool]:
    """The checks of one attribute, and whether they are loose."""
    key = attribute * KINDS
    rows: list[tuple[int, float, float]] = []
    loose = bool(states.patterns)
    if states.missing:
        rows.append((key + MISSING, 0.0, 0.0))
    rows.extend((key + BOOL, float(value), float(value)) for value in sorted(states.bools))
    for low_cut, high_cut in states.numbers.intervals():
        low, low_is_loose = number_low(low_cut)
        high, high_is_loose = number_high(high_cut)
        loose = loose or low_is_loose or high_is_loose
        rows.append((key + NUMBER, low, high))
    for low_cut, high_cut in states.strings.intervals():
        rows.append((key + STRING, strings.low(low_cut), strings.high(high_cut)))
    return [(key, len(rows), low, high) for key, low, high in rows], loose


def strings_used(bounds: Array, strings: Strings) -> Array:
    """The places in the dictionary that finite bounds refer to: a bound is a string's code or the float beside it."""
    codes = np.array(strings.codes())
    if len(codes) <= 1:
        return np.zeros(len(bounds), np.intp)
    right = np.clip(np.searchsorted(codes, bounds), 1, len(codes) - 1)
    return np.where(bounds - codes[right - 1] <= codes[right] - bounds, right - 1, right)


def recoded(bounds: Array, old: Strings, new: Strings) -> Array:
    """Bounds on strings moved to another dictionary; those without end stay so."""
    moved, finite = bounds.copy(), np.isfinite(bounds)
    places, inverse = np.unique(strings_used(bounds[finite], old), return_inverse=True)
    before = np.array([old.code(old.ordered[place]) for place in places])[inverse]
    after = np.array([new.code(old.ordered[place]) for place in places])[inverse]
    moved[finite] = np.nextafter(after, np.where(bounds[finite] > before, math.inf, after))
    moved[finite] = np.nextafter(moved[finite], np.where(bounds[finite] < before, -math.inf, moved[finite]))
    return moved
