"""Sets of points on an ordered line (all numbers, or all strings), closed under and, or, not.

A line is whether it starts inside the set, and the ascending cuts at which it changes sides. A cut lies just before
a value (value, BEFORE) or just after it (value, AFTER). So {5} is (5, BEFORE), (5, AFTER), and `not` flips the start.
Values are never rounded: Python compares ints with floats exactly.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

Cut: TypeAlias = tuple[Any, int]
BEFORE, AFTER = 0, 1


@dataclass(frozen=True, slots=True)
class Line:
    starts_inside: bool
    cuts: tuple[Cut, ...] = ()

    def __contains__(self, value: object) -> bool:
        passed = bisect_right(self.cuts, (value, BEFORE))
        return self.starts_inside ^ (passed % 2 == 1)

    def __and__(self, other: "Line") -> "Line":
        if self is other:
            return self
        if not self.cuts:
            return other if self.starts_inside else self
        if not other.cuts:
            return other & self
        return _common(self, other)

    def __or__(self, other: "Line") -> "Line":
        return self if self is other else ~(~self & ~other)

    def __invert__(self) -> "Line":
        return Line(not self.starts_inside, self.cuts)

    def __le__(self, other: "Line") -> bool:
        """Whether every point of this set is in the other: each interval lies in one of the other's."""
        for low, high in self.intervals():
            passed = 0 if low is None else bisect_right(other.cuts, low)
            if other.starts_inside == (passed % 2 == 1):
                return False
            if passed < len(other.cuts) and (high is None or other.cuts[passed] < high):
                return False
        return True

    def meets(self, other: "Line") -> bool:
        """Whether they have a point in common."""
        if len(self.cuts) > len(other.cuts):
            return other.meets(self)
        for low, high in self.intervals():
            passed = 0 if low is None else bisect_right(other.cuts, low)
            if other.starts_inside != (passed % 2 == 1):
                return True
            if passed < len(other.cuts) and (high is None or other.cuts[passed] < high):
                return True
        return False

    def intervals(self) -> Iterator[tuple[Cut | None, Cut | None]]:
        """(lower cut, upper cut), ascending; None where the line has no end."""
        ends: list[Cut | None] = [None] if self.starts_inside else []
        ends.extend(self.cuts)
        if len(ends) % 2:
            ends.append(None)
        return zip(ends[::2], ends[1::2], strict=True)

    def points(self) -> list[Any] | None:
        """The values, if the set is just some single values; else None."""
        pairs = list(self.intervals())
        if any(low is None or high is None or low[0] != high[0] for low, high in pairs):
            return None
        return [low[0] for low, _ in pairs if low is not None]


EMPTY, FULL = Line(False), Line(True)


def point(value: Any) -> Line:
    return Line(False, ((value, BEFORE), (value, AFTER)))


def points(values: Any) -> Line:
    ordered = sorted(set(values))
    return Line(False, tuple(cut for value in ordered for cut in ((value, BEFORE), (value, AFTER))))


def below(cut: Cut) -> Line:
    return Line(True, (cut,))


def above(cut: Cut) -> Line:
    return Line(False, (cut,))


def between(low: Any, high: Any) -> Line:
    """From low to high, both included."""
    return Line(False, ((low, BEFORE), (high, AFTER))) if low <= high else EMPTY


def _common(a: Line, b: Line) -> Line:
    """One sweep over both lines' cuts; a cut stays where being inside of both begins or ends."""
    sides = [a.starts_inside, b.starts_inside]
    start = now = all(sides)
    cuts: list[Cut] = []
    turns = merge(((cut, 0) for cut in a.cuts), ((cut, 1) for cut in b.cuts))
    for cut, same in groupby(turns, key=itemgetter(0)):
        for _, line in same:
            sides[line] = not sides[line]
        if all(sides) != now:
            now = not now
            cuts.append(cut)
    return Line(start, tuple(cuts))
