"""Tap rows as messages: one JSON object for many rows, which are packed by kind, as columns (columns.py)."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple, TypeAlias

import orjson

from mercast.content.event import EventId
from mercast.protocol.columns import COLUMNS, EVENT_ROWS, KIND_OF, VERSION
from mercast.protocol.gathered import MOST_TURNS, Gathered, Said
from mercast.protocol.repeated import MOST_ROWS
from mercast.protocol.rows import Column as RunColumn
from mercast.protocol.rows import Run, is_varied

MOST_BYTES = 900_000
"""Of one message: Kafka's brokers take a million unless told otherwise, header and key included."""
_FULL_BYTES = 200_000
"""A message of several turns is told when it has so many. On their way to Kafka all are copied some times, which takes
half as long again if they do not fit the processor's cache."""

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


def _partition(broker: int, incarnation: int, block: int, partitions: int) -> int:
    """Not kept: what a cache keeps of every block would stay between the events of later turns (gathered.py)."""
    mixed = (block + (incarnation << 16) + broker) * _MIX & _MASK
    mixed = (mixed ^ mixed >> 32) * _MIX & _MASK
    return (mixed >> 32) % partitions


def by_partition(run: Run, partitions: int) -> Iterable[tuple[int, Run]]:
    """Rows about events, with the partition of each part; those of each partition stay in order."""
    brokers, incarnations, sequences = run.columns[:3]
    if type(brokers) is list or type(incarnations) is list:
        ids = zip(*(one if is_varied(one) else repeat(one) for one in run.columns[:3]), strict=False)
        blocks = [(broker, incarnation, sequence >> _BLOCK) for broker, incarnation, sequence in ids]
    elif type(sequences) is not list:
        first, last = (sequences[0], sequences[-1]) if type(sequences) is range else (sequences, sequences)
        if first >> _BLOCK == last >> _BLOCK:  # mostly
            return ((_partition(brokers, incarnations, first >> _BLOCK, partitions), run),)
        return _in_row(run, partitions)
    else:
        blocks = [(brokers, incarnations, sequence >> _BLOCK) for sequence in sequences]
    return _in_runs(run, blocks, partitions)


def _in_row(run: Run, partitions: int) -> Iterator[tuple[int, Run]]:
    """Of events of one source that follow each other."""
    broker, incarnation, row = run.columns[:3]
    for block in range(row[0] >> _BLOCK, (row[-1] >> _BLOCK) + 1):
        begin, end = ((one << _BLOCK) - row[0] for one in (block, block + 1))
        yield _partition(broker, incarnation, block, partitions), run.cut(max(0, begin), end)


def _in_runs(run: Run, blocks: list[tuple[int, int, int]], partitions: int) -> Iterator[tuple[int, Run]]:
    end = 0
    for block, part in groupby(blocks):
        begin, end = end, end + len(list(part))
        yield _partition(*block, partitions), run.cut(begin, end) if end - begin < run.count else run


# -- messages ----------------------------------------------------------------------------------------------------------


class Stream:
    """Rows of one topic and partition: gathered as they come, many to a message, numbered as they are told or lost."""

    def __init__(self, head: Head, held: Held = ALL, first: int = 0, most: int = MOST_BYTES) -> None:
        self._head, self._held, self._most = head, None if held == ALL else held, most
        self._full = min(_FULL_BYTES, most)
        self._kinds: dict[str, Gathered] = {}
        self._counts = array("q", (first, 0, 0))
        """Flat, as all that changes with a turn (gathered.py): the number of the next row that is told or lost, rows,
        and bytes of text, which are most of what a message has."""

    @property
    def next(self) -> int:
        """The number of the next row that is told or lost."""
        return self._counts[0]

    def add(self, run: Run, at: int) -> Iterable[TapMessage]:
        """Rows of what happened at this time, in microseconds; messages that are full."""
        kind, rows = KIND_OF[run.row], run.count
        columns = run.columns if self._held is None else _held(kind, run.columns, self._held)
        said, size = _said(columns, kind in EVENT_ROWS)
        if rows > 1 and (size > self._full or rows > MOST_ROWS):
            half = rows // 2
            return [*self.add(run.cut(0, half), at), *self.add(run.cut(half, rows), at)]
        gathered = self._kinds.get(kind)
        if gathered is None:
            gathered = self._kinds[kind] = Gathered(kind)
        full: Iterable[TapMessage] = ()
        _, before, text = self._counts
        if text + size > self._full or before + rows > MOST_ROWS or gathered.turns == MOST_TURNS:
            full = self.end()
        said.append(at)
        self._counts[2] += gathered.add(said, rows)
        self._counts[1] += rows
        return full

    def end(self) -> list[TapMessage]:
        """Messages with all that is left, if anything is."""
        _, rows, _ = self._counts
        if not rows:
            return []
        value = self._value(self._kinds, rows)
        if len(value) <= self._most:
            messages = [self._message(value, rows)]
        else:
            messages = list(self._parts({name: kind.laid_out() for name, kind in self._kinds.items() if kind.turns}))
        self._counts[1] = self._counts[2] = 0
        for kind in self._kinds.values():
            kind.clear()
        return messages

    def nothing(self) -> TapMessage:
        """A message without rows: those before its number have been told or lost."""
        return self._message(self._header(0) + b"}", 0)

    def _parts(self, laid_out: "_LaidOut") -> Iterator[TapMessage]:
        """Of what is too large for one message. A row that is too large is told without what may be large; if that does
        not help, it is lost."""
        rows = sum(len(columns[0]) for columns in laid_out.values())
        value = self._value(_gathered(laid_out), rows)
        if len(value) <= self._most:
            yield self._message(value, rows)
        elif rows > 1:
            for half in _halves(laid_out, rows // 2):
                yield from self._parts(half)
        elif (without := _without_what_is_large(laid_out)) != laid_out:
            yield from self._parts(without)
        else:
            yield self._message(b"", 1)

    def _message(self, value: bytes, rows: int) -> TapMessage:
        first = self.next
        self._counts[0] += rows
        return TapMessage(first, rows, value)

    def _value(self, kinds: Mapping[str, Gathered], rows: int) -> bytes:
        texts = (kind.texts() for kind in kinds.values() if kind.turns)
        return b"".join((self._header(rows), *chain.from_iterable(texts), b"}"))

    def _header(self, count: int) -> bytes:
        """Open: what follows is put behind it."""
        header = {"version": VERSION} | self._head._asdict() | {"first": self.next, "count": count}
        return orjson.dumps(header)[:-1]


def encode(
    head: Head, first: int, written: Iterable[tuple[int, Run]], held: Held = ALL, most: int = MOST_BYTES
) -> Iterator[TapMessage]:
    """Messages that hold these rows, each with the time when it happened; numbered from `first` on."""
    stream = Stream(head, held, first, most)
    for at, run in written:
        yield from stream.add(run, at)
    yield from stream.end()


def _said(columns: Iterable[RunColumn], about_events: bool) -> tuple[list[Said], int]:
    """What a turn says, and the bytes of its text."""
    said, size = list[Said](columns), 0
    if about_events:
        said[_TIME] = _micros(said[_TIME])
    for place, column in enumerate(said):
        if type(column) is list:
            said[place] = text = orjson.dumps(column)
            size += len(text)
    return said, size


_TIME = 3
"""The place of the time at which an event was published."""


def _micros(times: RunColumn) -> RunColumn:
    return times // _MICRO if isinstance(times, int) else [time // _MICRO for time in times]


# -- what is too large -------------------------------------------------------------------------------------------------

_LaidOut: TypeAlias = dict[str, list[list[Any]]]
"""Columns by kind."""


def _gathered(laid_out: _LaidOut) -> dict[str, Gathered]:
    kinds = {name: Gathered(name) for name in laid_out}
    for name, columns in laid_out.items():
        kinds[name].add(map(orjson.dumps, columns), len(columns[0]))
    return kinds


def _halves(laid_out: _LaidOut, first: int) -> tuple[_LaidOut, _LaidOut]:
    """The first so many rows, and the others."""
    begin, end = _LaidOut(), _LaidOut()
    for name, columns in laid_out.items():
        here = min(first, len(columns[0]))
        first -= here
        if here:
            begin[name] = [column[:here] for column in columns]
        if here < len(columns[0]):
            end[name] = [column[here:] for column in columns]
    return begin, end


def _without_what_is_large(laid_out: _LaidOut) -> _LaidOut:
    return {
        name: [[None] if column.name in _LARGE else one for column, one in zip(COLUMNS[name], columns, strict=True)]
        for name, columns in laid_out.items()
    }


_LARGE = frozenset(("attributes", "filter"))


# -- what taps may hold ------------------------------------------------------------------------------------------------


def _held(kind: str, columns: Iterable[RunColumn], held: Held) -> Iterable[RunColumn]:
    """The columns, without what the taps may not hold."""
    named = dict(zip((column.name for column in COLUMNS[kind]), columns, strict=False))
    if "attributes" in named and kind in EVENT_ROWS and held.attributes is not None:
        named["attributes"] = _each(partial(_listed, held.attributes), named["attributes"])
    if "filter" in named and held.filters is not None:
        named["filter"] = _each(partial(_of_listed, held.filters), named["filter"], named["type"])
    if held.clients is not None:
        for name in _CLIENTS & named.keys():
            named[name] = _each(partial(_known, held.clients), named[name])
    return named.values()


_CLIENTS = frozenset(("client", "publisher"))


def _each(change: Callable[..., Any], *columns: RunColumn) -> RunColumn:
    """Of each value what it becomes."""
    if not any(map(is_varied, columns)):
        return change(*columns)
    return list(map(change, *(one if is_varied(one) else repeat(one) for one in columns)))


def _listed(names: frozenset[str], attributes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: value for name, value in attributes.items() if name in names} if attributes and names else None


def _of_listed(types: frozenset[str], filter: str | None, type: str | None) -> str | None:
    return filter if type in types else None


def _known(clients: frozenset[str], client: str | None) -> str | None:
    return client if client in clients else None
