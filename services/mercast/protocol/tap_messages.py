"""Tap rows as messages: one JSON object for many rows, which are packed by kind, as columns (columns.py).

Rows are encoded many at a time, column by column, and put together when they are shipped: an object for each
would cost as much as routing does, and rows that are kept for long keep the events alive that they tell of. Columns of
rows about events in which the same value follows itself are written as runs (repeated.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeAlias

import orjson

from mercast.content.event import EventId
from mercast.protocol.columns import COLUMNS, CONTROL_ROWS, EVENT_ROWS, KIND_OF, VERSION
from mercast.protocol.repeated import (
    FROM,
    MOST_ROWS,
    ROWS,
    RUNS,
    SHORTER,
    Repeated,
    Rising,
    alike,
    in_runs,
    in_words,
    joined,
)
from mercast.protocol.rows import Ids, Run

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


Columns: TypeAlias = tuple[Sequence[Any], ...]
"""Of rows of one kind, in the order of columns.py."""


def gather(written: Iterable[tuple[int, Run]]) -> dict[str, Columns]:
    """Runs, each with the time when it happened, by kind."""
    parts: dict[str, list[Columns]] = {}
    for at, run in written:
        if len(run):
            parts.setdefault(KIND_OF[run.row], []).append(_columns_of(run, at))
    return {
        kind: some[0] if len(some) == 1 else tuple(map(joined, zip(*some, strict=True))) for kind, some in parts.items()
    }


def _columns_of(run: Run, at: int) -> Columns:
    when = Repeated.same(at, len(run))
    if run.row not in _ABOUT_EVENTS:
        return (*run.columns, when)
    ids, times, *others = run.columns
    return (*Ids.of(ids).columns, _micros(times), *others, when)


def _micros(times: Sequence[int]) -> Sequence[int]:
    times = in_runs(times)
    if isinstance(times, Repeated):
        return Repeated([time // _MICRO for time in times.values], times.counts)
    return [time // _MICRO for time in times]


_ABOUT_EVENTS = frozenset(EVENT_ROWS.values())


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
    parts: dict[int, list[slice]] = {}
    if alike(brokers) and alike(incarnations):  # as nearly always
        for block, part in _blocks(sequences):
            parts.setdefault(_partition(brokers[0], incarnations[0], block, partitions), []).append(part)
    else:
        end = 0
        for (*source, block), run in groupby(zip(brokers, incarnations, _blocks_of(sequences), strict=True)):
            begin, end = end, end + len(list(run))
            parts.setdefault(_partition(*source, block, partitions), []).append(slice(begin, end))
    if len(parts) == 1:
        return dict.fromkeys(parts, rows)
    return {place: tuple(joined(column[part] for part in parts[place]) for column in rows) for place in sorted(parts)}


def _blocks(sequences: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Of events of one source, with the places of each."""
    if not isinstance(sequences, range):
        if min(sequences) >> _BLOCK == max(sequences) >> _BLOCK:
            yield sequences[0] >> _BLOCK, slice(None)
            return
        end = 0
        for block, run in groupby(_blocks_of(sequences)):
            begin, end = end, end + len(list(run))
            yield block, slice(begin, end)
        return
    first = sequences[0]
    for block in range(first >> _BLOCK, (sequences[-1] >> _BLOCK) + 1):
        yield block, slice(max(0, (block << _BLOCK) - first), (block + 1 << _BLOCK) - first)


def _blocks_of(sequences: Sequence[int]) -> list[int]:
    return [sequence >> _BLOCK for sequence in sequences]


# -- rows as text ------------------------------------------------------------------------------------------------------


class _Told:
    """The rows of one kind that a message has so far, as they came."""

    __slots__ = ("forms", "parts")

    def __init__(self, parts: "_Parts") -> None:
        self.parts = [parts]
        self.forms: list[type[_Part]] = list(map(type, parts))
        """How each column is told: as text as soon as its parts are of several forms."""

    def growth(self, parts: "_Parts") -> int:
        """Bytes that the message grows by with these, at most."""
        if list(map(type, parts)) == self.forms:  # as nearly always
            return sum(map(_size, parts))
        size = 0
        for place, (part, form) in enumerate(zip(parts, self.forms, strict=True)):
            if type(part) is form:
                size += _size(part)
            else:
                size += len(_text(part)) + 1
                if form is not bytes:
                    size += sum(len(_text(one[place])) + 1 for one in self.parts)
        return size

    def add(self, parts: "_Parts") -> None:
        self.parts.append(parts)
        for place, part in enumerate(parts):
            if type(part) is not self.forms[place]:
                self.forms[place] = bytes

    def columns(self) -> "Iterator[Repeated | list[bytes]]":
        """All of it: runs where they are shorter, else text in pieces."""
        for form, column in zip(self.forms, zip(*self.parts, strict=True), strict=True):
            runs = joined(column) if form is not bytes else None
            if isinstance(runs, Repeated) and (runs.is_shorter or any(part.is_shorter for part in column)):
                yield runs
            else:
                yield list(map(_text, column))


class Stream:
    """Rows of one topic and partition: encoded as they come, many to a message, numbered as they are told or lost."""

    def __init__(self, head: Head, held: Held = ALL, first: int = 0, most: int = MOST_BYTES) -> None:
        self.next = first
        """The number of the next row that is told or lost."""
        self._head, self._held, self._most = head, held, most
        self._rows = 0
        self._told: dict[str, _Told] = {}
        """By kind."""
        self._bytes = self._empty = len(self._header(_LARGEST)) + _PER_KIND

    def add(self, kind: str, rows: Columns) -> Iterator[TapMessage]:
        """Messages that are full."""
        count, parts = len(rows[0]), _parts(kind, rows, self._held)
        if self._keep(kind, count, parts):
            return
        yield from self.end()
        if self._keep(kind, count, parts):
            return
        if count > 1:
            half = count // 2
            yield from self.add(kind, tuple(one[:half] for one in rows))
            yield from self.add(kind, tuple(one[half:] for one in rows))
        else:
            yield from self._add_large(kind, rows)

    def _keep(self, kind: str, count: int, parts: "_Parts") -> bool:
        """If there is room."""
        told = self._told.get(kind)
        size = told.growth(parts) if told is not None else _NAME_BYTES[kind] + sum(map(_size, parts))
        most = min(self._most, _FULL_BYTES) if self._rows else self._most
        if self._rows + count > MOST_ROWS or self._bytes + size > most:
            return False
        if told is not None:
            told.add(parts)
        else:
            self._told[kind] = _Told(parts)
        self._bytes += size
        self._rows += count
        return True

    def _add_large(self, kind: str, rows: Columns) -> Iterator[TapMessage]:
        """A row that is too large is told without what may be large; if that does not help, it is lost."""
        parts = _parts(kind, rows, self._held._replace(attributes=_NONE, filters=_NONE))
        if not self._keep(kind, 1, parts):
            yield self._message(b"", 1)

    def end(self) -> Iterator[TapMessage]:
        """A message with all that is left, if anything is."""
        if not self._rows:
            return
        kinds = (_kind_texts(kind, told) for kind, told in self._told.items())
        value = b"".join((self._header(self._rows), *chain.from_iterable(kinds), b"}"))
        rows, self._rows, self._bytes = self._rows, 0, self._empty
        self._told.clear()
        yield self._message(value, rows)

    def nothing(self) -> TapMessage:
        """A message without rows: those before its number have been told or lost."""
        return self._message(self._header(0) + b"}", 0)

    def _message(self, value: bytes, rows: int) -> TapMessage:
        self.next += rows
        return TapMessage(self.next - rows, rows, value)

    def _header(self, count: int) -> bytes:
        """Open: what follows is put behind it."""
        header = {"version": VERSION} | self._head._asdict() | {"first": self.next, "count": count}
        return orjson.dumps(header)[:-1]


def _kind_texts(kind: str, told: _Told) -> Iterator[bytes]:
    """In pieces, for they are long: to be put together once."""
    runs: dict[str, dict[str, Any]] = {}
    before = b',"%b":{' % kind.encode()
    for column, found in zip(COLUMNS[kind], told.columns(), strict=True):
        if isinstance(found, Repeated):
            runs[column.name] = in_words(found)
            continue
        yield b'%b"%b":[' % (before, column.name.encode())
        for place, text in enumerate(found):
            yield from (b",", text) if place else (text,)
        before = b"],"
    yield b'%b"%b":%b}' % (before, RUNS.encode(), orjson.dumps(runs)) if runs else before[:1] + b"}"


def encode(
    head: Head, first: int, rows: Mapping[str, Columns], held: Held = ALL, most: int = MOST_BYTES
) -> Iterator[TapMessage]:
    """Messages that hold these rows, by kind; numbered from `first` on."""
    stream = Stream(head, held, first, most)
    for kind, some in rows.items():
        if some[0]:
            yield from stream.add(kind, some)
    yield from stream.end()


_NONE = frozenset[str]()
_LARGEST = 2**53
_PER_KIND = 20
"""Bytes at most of its name, and of brackets."""

_NUMBER_BYTES, _COUNT_BYTES = 21, 8
"""Bytes at most that it takes to say a number, and for how many rows a value stands; with the comma."""
_PER_RUNS = len(f',"":{{"{FROM}":[],"{ROWS}":[]}}')
_NAME_BYTES = {
    kind: _PER_KIND + len(RUNS) + sum(len(column.name) + _PER_RUNS for column in columns)
    for kind, columns in COLUMNS.items()
}
"""Bytes at most of the names of columns, and of brackets."""

_Part: TypeAlias = Repeated | bytes
"""Of a column: runs, or its values with commas between them."""
_Parts: TypeAlias = tuple[_Part, ...]


def _parts(kind: str, rows: Columns, held: Held) -> _Parts:
    """Runs only of rows about events: others are few, and it is simpler to read them without."""
    columns = rows if held == ALL else tuple(_held(kind, rows, held))
    return tuple(map(_part if kind in EVENT_ROWS else _text, columns))


def _part(column: Sequence[Any]) -> _Part:
    if isinstance(column, Repeated):
        return column
    if isinstance(column, range):
        return Rising.same(column[0], len(column))
    if type(column[0]) in _PLAIN and alike(column):  # of a turn, most columns are
        return Repeated.same(column[0], len(column))
    return _text(column)


def _size(part: _Part) -> int:
    """Bytes at most, with the comma: runs that are no shorter may be told as text."""
    if isinstance(part, bytes):
        return len(part) + 1
    values, counts = part.values, part.counts
    if len(values) == 1 and counts[0] >= SHORTER and type(values[0]) in _SHORT:  # as most are
        return _NUMBER_BYTES + _COUNT_BYTES
    size = _COUNT_BYTES * len(counts) + len(orjson.dumps(values))
    return size if part.is_shorter else max(size, len(_text(part)) + 1)


_SHORT = frozenset((int, bool, type(None)))


def _text(column: Sequence[Any] | bytes) -> bytes:
    if isinstance(column, bytes):
        return column
    if type(column) is Repeated:
        texts = zip(map(orjson.dumps, column.values), column.counts, strict=True)
        return b",".join([b",".join([text] * count) for text, count in texts])
    return orjson.dumps(column if type(column) in _WRITTEN else list(column))[1:-1]


_PLAIN = frozenset((int, bool, str, tuple, type(None)))
_WRITTEN = frozenset((list, tuple))


def _held(kind: str, rows: Columns, held: Held) -> Iterable[Sequence[Any]]:
    """The columns, without what the taps may not hold."""
    named = dict(zip((column.name for column in COLUMNS[kind]), rows, strict=True))
    for name, change in _CHANGES.items():
        if name in named:
            named[name] = change(kind, named, held)
    return named.values()


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
