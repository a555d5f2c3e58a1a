"""Tap rows as messages: one JSON object for many rows, which are packed by kind, as columns (columns.py).

Rows are encoded when they are shipped, many at once: an object for each would cost as much as routing does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import orjson

from mercast.content.event import EventId
from mercast.protocol.columns import COLUMNS, CONTROL_ROWS, EVENT_ROWS, KIND_OF, VERSION
from mercast.protocol.rows import Run

MOST_BYTES = 900_000
"""Of one message: Kafka's brokers take a million unless told otherwise, header and key included."""

_BLOCK = 12
"""Bits of a sequence: events of one block lie in one partition, so that what is shipped at once makes few messages."""

_MIX, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1  # odd, its bits look random: neighbours land far apart
_MICRO = 1_000
"""Nanoseconds, which events have, in a microsecond, which rows have."""


class Head(NamedTuple):
    """What all messages of a broker begin with."""

    broker: int
    incarnation: int
    cluster: str
    strategy: str


class Held(NamedTuple):
    """What the taps may hold: all of it (None), or what is listed."""

    attributes: frozenset[str] | None = None
    """Names of attributes of events."""
    filters: frozenset[str] | None = None
    """Types whose advertisements and subscriptions are told with their filters."""
    clients: frozenset[str] | None = None
    """Ids of clients."""


ALL = Held()


Columns: TypeAlias = tuple[Sequence[Any], ...]
"""Of rows of one kind, in the order of columns.py."""


def gather(written: Iterable[tuple[int, Run]]) -> dict[str, Columns]:
    """Runs, each with the time when it happened, by kind."""
    runs: dict[type[Any], list[tuple[int, Run]]] = {}
    for one in written:
        runs.setdefault(one[1].row, []).append(one)
    gathered: dict[str, Columns] = {}
    for row, some in runs.items():
        parts = zip(*(run.columns for _, run in some), strict=True)
        columns = [list(chain.from_iterable(of_runs)) for of_runs in parts]
        if row in _ABOUT_EVENTS:
            ids, times, *others = columns
            columns = [*(list(map(part, ids)) for part in _OF_ID), [time // _MICRO for time in times], *others]
        gathered[KIND_OF[row]] = (*columns, list(chain.from_iterable(repeat(at, len(run)) for at, run in some)))
    return gathered


_ABOUT_EVENTS = frozenset(EVENT_ROWS.values())
_OF_ID = tuple(map(itemgetter, range(3)))


class TapMessage(NamedTuple):
    first: int
    rows: int
    """How many, numbered from the first on."""
    value: bytes
    """Empty if a single row was too large to be told; its number is used up."""


def partition_of(event: EventId, partitions: int) -> int:
    """All rows of an event lie in one partition, whichever broker they are from."""
    broker, incarnation, sequence = event
    return _partition(broker, incarnation, sequence >> _BLOCK, partitions)


@lru_cache(maxsize=4096)
def _partition(broker: int, incarnation: int, block: int, partitions: int) -> int:
    mixed = (block + (incarnation << 16) + broker) * _MIX & _MASK
    mixed = (mixed ^ mixed >> 32) * _MIX & _MASK
    return (mixed >> 32) % partitions


def by_partition(rows: Columns, partitions: int) -> dict[int, Columns]:
    """Rows about events, with those of each partition in order."""
    brokers, incarnations, sequences = rows[:3]
    blocks = zip(brokers, incarnations, [sequence >> _BLOCK for sequence in sequences], strict=True)
    parts: dict[int, list[slice]] = {}
    end = 0
    for block, run in groupby(blocks):
        begin, end = end, end + len(list(run))
        parts.setdefault(_partition(*block, partitions), []).append(slice(begin, end))
    if len(parts) == 1:
        return dict.fromkeys(parts, rows)
    return {place: tuple(_cut(column, parts[place]) for column in rows) for place in sorted(parts)}


def _cut(column: Sequence[Any], parts: list[slice]) -> Sequence[Any]:
    return column[parts[0]] if len(parts) == 1 else list(chain.from_iterable(column[part] for part in parts))


def encode(
    head: Head, first: int, rows: Mapping[str, Columns], held: Held = ALL, most: int = MOST_BYTES
) -> Iterator[TapMessage]:
    """Messages that hold these rows, by kind; numbered from `first` on."""
    rows = {kind: some for kind, some in rows.items() if some[0]}
    count = _count(rows)
    if not count:
        return
    columns = {kind: _columns(kind, some, held) for kind, some in rows.items()}
    value = orjson.dumps(_header(head, first, count) | columns)
    if len(value) <= most:
        yield TapMessage(first, count, value)
    elif count == 1:
        little = held._replace(attributes=_NONE, filters=_NONE)
        yield TapMessage(first, count, b"") if held == little else _one(encode(head, first, rows, little, most))
    else:
        for half in _halves(rows):
            yield from encode(head, first, half, held, most)
            first += _count(half)


def nothing(head: Head, first: int) -> TapMessage:
    """A message without rows: those before this number have been told or lost."""
    return TapMessage(first, 0, orjson.dumps(_header(head, first, 0)))


def _header(head: Head, first: int, count: int) -> dict[str, Any]:
    return {"version": VERSION} | head._asdict() | {"first": first, "count": count}


_NONE = frozenset[str]()


def _count(rows: Mapping[str, Columns]) -> int:
    return sum(len(some[0]) for some in rows.values())


def _one(messages: Iterable[TapMessage]) -> TapMessage:
    (message,) = messages
    return message


def _halves(rows: Mapping[str, Columns]) -> tuple[dict[str, Columns], dict[str, Columns]]:
    if len(rows) > 1:
        kinds = list(rows)
        half = len(kinds) // 2
        return {kind: rows[kind] for kind in kinds[:half]}, {kind: rows[kind] for kind in kinds[half:]}
    ((kind, some),) = rows.items()
    half = len(some[0]) // 2
    return {kind: tuple(one[:half] for one in some)}, {kind: tuple(one[half:] for one in some)}


def _columns(kind: str, rows: Columns, held: Held) -> dict[str, Sequence[Any]]:
    named = dict(zip((column.name for column in COLUMNS[kind]), rows, strict=True))
    for name, change in _CHANGES.items():
        if name in named:
            named[name] = change(kind, named, held)
    return named


# -- columns that are not written as they are --------------------------------------------------------------------------


def _attributes(kind: str, columns: Mapping[str, Sequence[Any]], held: Held) -> Sequence[dict[str, Any] | None]:
    given, listed = columns["attributes"], held.attributes
    if kind in CONTROL_ROWS or listed is None:
        return given
    if not listed:
        return [None] * len(given)
    return [one and {name: value for name, value in one.items() if name in listed} for one in given]


def _filters(_: str, columns: Mapping[str, Sequence[Any]], held: Held) -> Sequence[str | None]:
    given, listed = columns["filter"], held.filters
    if listed is None:
        return given
    return [one if type_ in listed else None for one, type_ in zip(given, columns["type"], strict=True)]


def _client(name: str) -> "_Change":
    def clients(_: str, columns: Mapping[str, Sequence[Any]], held: Held) -> Sequence[str | None]:
        listed = held.clients
        return columns[name] if listed is None else [one if one in listed else None for one in columns[name]]

    return clients


_Change = Callable[[str, Mapping[str, Sequence[Any]], Held], Sequence[Any]]

_CHANGES: dict[str, _Change] = {
    "attributes": _attributes,
    "filter": _filters,
    "client": _client("client"),
    "publisher": _client("publisher"),
}
