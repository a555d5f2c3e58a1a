"""Filters that ask for similar values of one attribute, put together behind a condition that all of them imply.

Most events are not what most filters ask for: where that condition is not true, none of its filters is, and they need
not be looked at. It is a filter itself, and translated as they are. Groups of many are made of smaller groups: so of
very many filters few are looked at for each event.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from mercast_streaming.audit.where import And, Compare, In, Value, Where

_TOGETHER = 4
"""Filters, or groups of them, behind one condition."""


class Group(NamedTuple):
    implied: Where | None
    """None: nothing is known of these."""
    of: "list[int | Group]"
    """Filters by their numbers, and groups."""


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


def together(filters: Mapping[int, Where]) -> Iterator[Group]:
    """Each filter is in one group."""
    bounded = {number: bounds for number, where in filters.items() if (bounds := bounds_of(where)) is not None}
    others = [number for number in filters if number not in bounded]
    if others:
        yield Group(None, [*others])
    in_order = sorted(bounded, key=lambda number: bounded[number])
    for _, some in groupby(in_order, key=lambda number: bounded[number].of):
        yield _group(list(some), bounded)


def _group(numbers: list[int], bounded: Mapping[int, Bounds]) -> Group:
    low, high = min(bounded[one].low for one in numbers), max(bounded[one].high for one in numbers)
    name = bounded[numbers[0]].name
    implied = And((Compare(name, ">=", low), Compare(name, "<=", high)))
    if len(numbers) <= _TOGETHER:
        return Group(implied, [*numbers])
    size = _TOGETHER
    while size * _TOGETHER < len(numbers):
        size *= _TOGETHER
    parts = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    return Group(implied, [_group(part, bounded) if len(part) > 1 else part[0] for part in parts])


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
