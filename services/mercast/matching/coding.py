"""Events as codes: attributes are numbered, values become (kind, code)."""

from collections.abc import Sequence
from itertools import chain
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from mercast.content.values import Attributes, kind_of
from mercast.matching.codes import BOOL, EXACT, NUMBER, STRING, Strings, number_codes
from mercast.matching.slots import Array

_WIDE = 4
"""A batch is coded attribute by attribute, unless the index knows so many times more attributes than an event has."""


class Batch(NamedTuple):
    """A row per event, a column per attribute. `low` and `high` are one array unless an int lies between two floats."""

    kinds: Array
    low: Array
    high: Array


class Coding:
    def __init__(self, names: Sequence[str] = (), strings: Sequence[Strings] = ()) -> None:
        self.numbers = {name: number for number, name in enumerate(names)}
        self.strings = list(strings)
        self._values: itemgetter[Any] | None = None
        """Takes the values of all attributes out of an event."""

    def number(self, name: str) -> int:
        """The number of an attribute, a new one if need be."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.strings)
            self.strings.append(Strings())
            self._values = None
        return number

    def encode(self, events: Sequence[Attributes]) -> Batch:
        """ContentError if a value is none that an event can have."""
        shape = len(events), len(self.strings)
        kinds, low = np.zeros(shape, np.uint8), np.zeros(shape)
        between: list[tuple[int, int, float]] = []
        if len(events) > 1 and len(self.strings) <= _WIDE * len(events[0]):
            rows = self._rows(events)
            if rows is not None and _all_floats(rows, low):
                return Batch(np.full(shape, NUMBER, np.uint8), low, low)
            missing = ([event.get(name) for event in events] for name in self.numbers)
            for number, values in enumerate(missing if rows is None else zip(*rows, strict=True)):
                self._encode_column(values, number, kinds, low, between)
        else:
            for row, event in enumerate(events):
                self._encode_row(row, event, kinds, low, between)
        high = low.copy() if between else low
        for row, number, code in between:
            high[row, number] = code
        return Batch(kinds, low, high)

    def _rows(self, events: Sequence[Attributes]) -> list[tuple[Any, ...]] | None:
        """The values of each event, taken out without a loop; None if an event has not all attributes."""
        if len(self.numbers) < 2 or set(map(type, events)) != {dict}:  # noqa: PLR2004
            return None  # of one name, itemgetter takes the bare value; other mappings may make up what is missing
        self._values = self._values or itemgetter(*self.numbers)
        try:
            return list(map(self._values, events))
        except KeyError:
            return None

    def _encode_column(self, values: Sequence[Any], number: int, kinds: Array, low: Array, between: list[Any]) -> None:
        """Columns of one type at a time; what is left, value by value."""
        types = set(map(type, values))
        if types == {float} and isfinite(sum(values)):  # then all of them are
            kinds[:, number] = NUMBER
            low[:, number] = values
            return
        if types == {str}:
            kinds[:, number] = STRING
            low[:, number] = self.strings[number].code_all(values)
            return
        if types == {int} and min(values) >= -EXACT and max(values) <= EXACT:
            kinds[:, number] = NUMBER
            low[:, number] = values
            return
        for row, value in enumerate(values):
            if value is not None:
                kinds[row, number], low[row, number] = self._code(row, number, value, between)

    def _encode_row(self, row: int, event: Attributes, kinds: Array, low: Array, between: list[Any]) -> None:
        kinds_of_row, low_of_row, numbers = kinds[row], low[row], self.numbers
        for name, value in event.items():
            number = numbers.get(name)
            if number is None or value is None:
                continue
            if type(value) is float and value - value == 0.0:  # finite; the usual case without a call
                kinds_of_row[number], low_of_row[number] = NUMBER, value
            else:
                kinds_of_row[number], low_of_row[number] = self._code(row, number, value, between)

    def _code(self, row: int, number: int, value: Any, between: list[Any]) -> tuple[int, float]:
        kind = kind_of(value)
        if kind == STRING:
            return STRING, self.strings[number].code(value)
        if kind == BOOL or -EXACT <= value <= EXACT:
            return kind, float(value)
        low, high = number_codes(value)
        if low != high:
            between.append((row, number, high))
        return NUMBER, low


def _all_floats(rows: list[tuple[Any, ...]], low: Array) -> bool:
    """Whether the values are all finite floats, the usual case of a numerical workload; then `low` has them."""
    if set(map(type, rows[0])) != {float} or set(map(type, chain.from_iterable(rows))) != {float}:
        return False
    low[:] = rows
    return bool(np.isfinite(low).all())
