"""Values as floats that keep their order, so that compiled loops can compare any kind exactly.

A missing attribute is 0; bools are 0 and 1; a number is itself; a string is its place in an ordered dictionary of all
the strings that filters compare with. A check is `low <= code <= high`: an open bound becomes the next float inwards.

Only ints beyond 2**53 can fall between two floats. For those an event carries two codes, the floats around it; a bound
that this leaves undecided is taken too wide and the filter is marked as loose, to be evaluated itself.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import cast

from mercast.content.line import BEFORE, Cut
from mercast.content.values import Kind

MISSING, BOOL, NUMBER, STRING = 0, int(Kind.BOOL), int(Kind.NUMBER), int(Kind.STRING)
KINDS = 4

EXACT = 2**53
"""Every int up to here is a float; beyond, some are not."""

_SPACE = 2.0**20
"""Distance between the codes of neighbouring strings when they are spaced anew."""

_ROOM = 2.0**-6
"""The least distance between them: many floats wide, even in a dictionary of millions."""

_STEP = 16.0
"""Distance of a new string to a neighbour that it is like: names that count up do not halve their gap each time."""


def number_codes(value: int | float) -> tuple[float, float]:
    """The number, or the two neighbouring floats that it lies between."""
    code = float(value)
    if code == value:
        return code, code
    return (code, math.nextafter(code, math.inf)) if code < value else (math.nextafter(code, -math.inf), code)


def number_low(cut: Cut | None) -> tuple[float, bool]:
    """The least float above a cut, and whether that bound is loose."""
    if cut is None:
        return -math.inf, False
    value, side = cut
    if side == BEFORE or abs(value) < EXACT:
        below, above = number_codes(value)
        if below == above:
            return (below if side == BEFORE else math.nextafter(below, math.inf)), False
    return math.nextafter(number_codes(value)[0], -math.inf), True


def number_high(cut: Cut | None) -> tuple[float, bool]:
    """The greatest float below a cut, and whether that bound is loose."""
    if cut is None:
        return math.inf, False
    value, side = cut
    if side != BEFORE or abs(value) < EXACT:
        below, above = number_codes(value)
        if below == above:
            return (below if side != BEFORE else math.nextafter(below, -math.inf)), False
    return math.nextafter(number_codes(value)[1], math.inf), True


class Strings:
    """The ordered dictionary of one attribute's strings."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.ordered = sorted(set(texts))
        self._codes = {text: place * _SPACE for place, text in enumerate(self.ordered)}

    def extend(self, texts: Iterable[str]) -> bool:
        """Give new strings codes between their neighbours'; False, with nothing changed, if a gap has no room left."""
        new = sorted({text for text in texts if text not in self._codes})
        codes: dict[str, float] = {}
        for place, group in groupby(new, key=lambda text: bisect_left(self.ordered, text)):
            together = list(group)
            low, high = self._gap(place, together)
            step = (high - low) / (len(together) + 1)
            if step < _ROOM:
                return False
            codes.update((text, low + step * count) for count, text in enumerate(together, 1))
        self._codes |= codes
        for text in new:
            insort(self.ordered, text)
        return True

    def _gap(self, place: int, together: list[str]) -> tuple[float, float]:
        """Where to put these strings before the one at this place: close to the neighbour that they are more like."""
        low, high = self._around(place)
        near = _STEP * (len(together) + 1)
        if high - low > near:
            before = _alike(self.ordered[place - 1], together[0]) if place else 0
            after = _alike(self.ordered[place], together[-1]) if place < len(self.ordered) else 0
            if before > after:
                return low, low + near
            if after > before:
                return high - near, high
        return low, high

    def _around(self, place: int) -> tuple[float, float]:
        """The codes before and at this place."""
        if not self.ordered:
            return -_SPACE, _SPACE
        low = self._codes[self.ordered[place - 1]] if place else self._codes[self.ordered[0]] - _SPACE
        high = self._codes[self.ordered[place]] if place < len(self.ordered) else low + _SPACE
        return low, high

    def code(self, text: str) -> float:
        """The code of any string; one that is not in the dictionary lies between its neighbours."""
        code = self._codes.get(text)
        if code is None:
            low, high = self._around(bisect_left(self.ordered, text))
            code = (low + high) / 2
        return code

    def code_all(self, texts: Sequence[str]) -> list[float]:
        codes = list(map(self._codes.get, texts))
        return list(map(self.code, texts)) if None in codes else cast("list[float]", codes)

    def low(self, cut: Cut | None) -> float:
        if cut is None:
            return -math.inf
        code = self._codes[cut[0]]
        return code if cut[1] == BEFORE else math.nextafter(code, math.inf)

    def high(self, cut: Cut | None) -> float:
        if cut is None:
            return math.inf
        code = self._codes[cut[0]]
        return math.nextafter(code, -math.inf) if cut[1] == BEFORE else code

    def codes(self) -> list[float]:
        return [self._codes[text] for text in self.ordered]


def _alike(one: str, other: str) -> int:
    """How many characters two strings begin with in common."""
    unlike = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))
