"""Tap rows as messages: one JSON object for many rows, which are packed by kind, as columns (columns.py).

Rows are encoded when they are shipped, many at once: an object for each would cost as much as routing does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
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
"""Of rows of one kind: their fields in order, and when each happened, in microseconds."""


def gather(written: Iterable[tuple[int, Run]]) -> dict[str, Columns]:
    """Runs, each with the time when it happened, by kind."""
    runs: dict[type[Any], list[tuple[int, Run]]] = {}
    for one in written:
        runs.setdefault(one[1].row, []).append(one)
    gathered: dict[str, Columns] = {}
    for row, some in runs.items():
        fields = zip(*(run.columns for _, run in some), strict=True)
        times = [at for at, run in some for at in repeat(at, len(run))]
        gathered[KIND_OF[row]] = (*(list(chain.from_iterable(parts)) for parts in fields), times)
    return gathered


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
    brokers, incarnations, sequences = zip(*rows[0], strict=True)
    count, broker, incarnation, block = len(brokers), brokers[0], incarnations[0], sequences[0] >> _BLOCK
    alike = brokers.count(broker) == count == incarnations.count(incarnation)
    if alike and min(sequences) >> _BLOCK == max(sequences) >> _BLOCK:  # as nearly always
        return {_partition(broker, incarnation, block, partitions): rows}
    blocks = [(broker, incarnation, sequence >> _BLOCK) for broker, incarnation, sequence in rows[0]]
    places = {block: _partition(*block, partitions) for block in set(blocks)}
    at = [places[block] for block in blocks]
    return {
        place: tuple([value for value, here in zip(column, at, strict=True) if here == place] for column in rows)
        for place in sorted(set(at))
    }


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
    if kind in EVENT_ROWS:
        ids, times, *others = rows
        rows = (*zip(*ids, strict=True), [time // _MICRO for time in times], *others)
    named = dict(zip((column.name for column in COLUMNS[kind]), rows, strict=True))
    for name, change in _CHANGES.items():
        if name in named:
            named[name] = change(kind, named, held)
    return named


# -- columns that are not written as they are --------------------------------------------------------------------------


def _attributes(kind: str, columns: Mapping[str, Sequence[Any]], held: Held) -> list[str | None]:
    given, listed = columns["attributes"], held.attributes
    if kind in CONTROL_ROWS or listed is None:
        return [orjson.dumps(one).decode() if one is not None else None for one in given]
    if not listed:
        return [None] * len(given)
    return [
        orjson.dumps({name: value for name, value in one.items() if name in listed}).decode()
        if one is not None
        else None
        for one in given
    ]


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
