"""Columns of which many values that follow each other are equal, or rise by one: kept, written and read as runs.

Of the events of a turn most columns of tap rows are all alike, and their numbers follow each other. As a run, such a
column costs the same for a thousand rows as for one, from the core to the message; readers lay it out again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any, Self, overload

RUNS = "runs"
"""Under this name a kind of rows has its columns that are written as runs."""
OF, FROM, ROWS = "of", "from", "rows"
"""Of such a column: the values, or those that others rise from; and for how many rows each stands."""

MOST_ROWS = 100_000
"""Of one message: readers lay out no more, whatever a message says."""
MOST_LAID_OUT = 256 * 1024 * 1024
"""Bytes of a column, likewise, where values are copied: a long text may stand for many rows."""

SHORTER = 4
"""Times that there must be fewer runs than values."""


class Repeated(Sequence[Any]):
    """Some values, each so many times."""

    __slots__ = ("counts", "values")

    def __init__(self, values: Sequence[Any], counts: Sequence[int]) -> None:
        self.values, self.counts = values, counts

    @property
    def is_shorter(self) -> bool:
        """Than all of its values, by far."""
        return len(self.values) * SHORTER <= len(self)

    def joined(self) -> Self:
        """The same, with what follows itself in one."""
        values, counts, expected = list[Any](), list[int](), object()
        if type(self) is Repeated and alike(self.values):  # as mostly
            return type(self)((self.values[0],), (sum(self.counts),))
        for value, count in zip(self.values, self.counts, strict=True):
            if value == expected:
                counts[-1] += count
            else:
                values.append(value)
                counts.append(count)
            expected = self.later(value, count)
        return type(self)(values, counts)

    def __len__(self) -> int:
        return sum(self.counts)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(map(repeat, self.values, self.counts))

    def later(self, value: Any, rows: int) -> Any:  # noqa: ARG002
        """What stands so many rows behind this value."""
        return value

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> "Sequence[Any]": ...
    def __getitem__(self, at: int | slice) -> Any:
        if not isinstance(at, slice):
            return self.values[0] if at == 0 else list(self)[at]
        begin, end, _ = at.indices(len(self))  # runs are cut, never gone through in steps
        values, counts, before = list[Any](), list[int](), 0
        for value, count in zip(self.values, self.counts, strict=True):
            skipped = max(begin - before, 0)
            inside = min(end - before, count) - skipped
            before += count
            if inside > 0:
                values.append(self.later(value, skipped))
                counts.append(inside)
        return type(self)(values, counts)

    def __repr__(self) -> str:
        return repr(list(self))


class Rising(Repeated):
    """Some numbers, each with those that follow it, so many in all."""

    __slots__ = ()

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(
            range(value, value + count) for value, count in zip(self.values, self.counts, strict=True)
        )

    def later(self, value: int, rows: int) -> int:
        return value + rows


def alike(column: Sequence[Any]) -> bool:
    """Whether all values are the same one."""
    return bool(column and column[0] == column[-1] and column.count(column[0]) == len(column))


def in_one(column: Sequence[Any]) -> Any:
    """The one value that all are, or else a list of them."""
    return column[0] if alike(column) else list(column)


def in_runs(column: Sequence[Any]) -> Sequence[Any]:
    """The same column, as runs if these are far fewer than its values."""
    count = len(column)
    if alike(column):
        return Repeated((column[0],), (count,))
    if count < SHORTER or (column[0] != column[1] and column[1] != column[2]):  # the last where all differ
        return column
    found = Repeated(*zip(*((value, len(list(run))) for value, run in groupby(column)), strict=True))
    return found if found.is_shorter else column


def in_row(numbers: Sequence[int]) -> Sequence[int]:
    """The same numbers, as a range if each is one more than that before it."""
    first, count = numbers[0], len(numbers)
    if numbers[-1] - first != count - 1:
        return numbers
    row = range(first, first + count)
    return row if tuple(row) == tuple(numbers) else numbers


def in_words(runs: Repeated) -> dict[str, Any]:
    """As a message says them."""
    return {FROM if isinstance(runs, Rising) else OF: runs.values, ROWS: runs.counts}


def columns_of(said: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of one kind as a message has them, laid out. ValueError, KeyError or TypeError if it is no such."""
    names = (*(name for name in said if name != RUNS), *said.get(RUNS, ()))
    return {name: column_of(said, name) for name in names}


def column_of(said: Mapping[str, Any], name: str) -> list[Any]:
    """One of them; empty if it is not there."""
    runs = said.get(RUNS, {}).get(name)
    if runs is None:
        return said.get(name) or []
    if sum(runs[ROWS]) > MOST_ROWS or min(runs[ROWS], default=0) < 0:
        raise ValueError(f"the column {name} says that it has rows in runs of {runs[ROWS]!r:.100}: that cannot be")
    return list(Rising(runs[FROM], runs[ROWS]) if FROM in runs else Repeated(runs[OF], runs[ROWS]))
