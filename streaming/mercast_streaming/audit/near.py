"""Filters that ask for similar values of one attribute, put together behind a condition that all of them imply.

Most events are not what most filters ask for: where that condition is not true, none of its filters is, and they need
not be looked at. It is a filter itself, and translated as they are.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from mercast_streaming.audit.where import And, Compare, In, Value, Where

_TOGETHER = 16
"""Filters behind one condition: of a thousand, some tens are then looked at for each event."""


class Bounds(NamedTuple):
    """What an attribute must lie between for a filter to be true."""

    name: str
    text: bool
    """Whether its value must be a string; else, a number."""
    low: Value
    high: Value

    @property
    def of(self) -> tuple[str, bool]:
        return self.name, self.text


def together(filters: Mapping[int, Where]) -> Iterator[tuple[Where | None, list[int]]]:
    """Numbers of filters, each group with what they imply; None: nothing is known of these."""
    bounded = {number: bounds for number, where in filters.items() if (bounds := bounds_of(where)) is not None}
    others = [number for number in filters if number not in bounded]
    if others:
        yield None, others
    in_order = sorted(bounded, key=lambda number: bounded[number])
    for _, some in groupby(in_order, key=lambda number: bounded[number].of):
        numbers = list(some)
        for at in range(0, len(numbers), _TOGETHER):
            group = numbers[at : at + _TOGETHER]
            low, high = min(bounded[one].low for one in group), max(bounded[one].high for one in group)
            name = bounded[group[0]].name
            yield And((Compare(name, ">=", low), Compare(name, "<=", high))), group


def bounds_of(where: Where) -> Bounds | None:
    """Of the first attribute that is bounded on both sides by what must hold in any case."""
    ranges: dict[tuple[str, bool], tuple[list[Value], list[Value]]] = {}
    for term in _all_of(where):
        for name, low, high in _ranges(term):
            for place, value in enumerate((low, high)):
                if value is not None and not isinstance(value, bool):
                    ranges.setdefault((name, isinstance(value, str)), ([], []))[place].append(value)
    for (name, text), (lows, highs) in ranges.items():
        if lows and highs:
            return Bounds(name, text, max(lows), min(highs))
    return None


def _all_of(where: Where) -> Iterator[Where]:
    if isinstance(where, And):
        for term in where.terms:
            yield from _all_of(term)
    else:
        yield where


def _ranges(term: Where) -> Iterator[tuple[str, Value | None, Value | None]]:
    """The lower and the upper bound of an attribute; None: there is none."""
    match term:
        case Compare(name, "=", value):
            yield name, value, value
        case Compare(name, ">" | ">=", value):
            yield name, value, None
        case Compare(name, "<" | "<=", value):
            yield name, None, value
        case In(name, values) if all(isinstance(value, str) for value in values) or all(map(_is_number, values)):
            yield name, min(values), max(values)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
