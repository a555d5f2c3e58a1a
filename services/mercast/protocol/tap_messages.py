"""Tap rows as messages: one JSON object for many rows, which are packed by kind, as columns (columns.py).

Rows are encoded some hundred at a time, column by column, and put together when they are shipped: an object for each
would cost as much as routing does, and rows that are kept for long keep the events alive that they tell of.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
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
        if len(one[1]):
            runs.setdefault(one[1].row, []).append(one)
    return {KIND_OF[row]: _together(row, some) for row, some in runs.items()}


def _together(row: type[Any], runs: list[tuple[int, Run]]) -> Columns:
    if len(runs) == 1:
        ((when, run),) = runs
        columns, at = run.columns, [when] * len(run)
    else:
        parts = zip(*(run.columns for _, run in runs), strict=True)
        columns = tuple(list(chain.from_iterable(of_runs)) for of_runs in parts)
        at = list(chain.from_iterable(repeat(when, len(run)) for when, run in runs))
    if row not in _ABOUT_EVENTS:
        return (*columns, at)
    ids, times, *others = columns
    return (*zip(*ids, strict=True), [time // _MICRO for time in times], *others, at)


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
    if _alike(brokers) and _alike(incarnations) and max(sequences) >> _BLOCK == (block := min(sequences) >> _BLOCK):
        return {_partition(brokers[0], incarnations[0], block, partitions): rows}  # as nearly always
    blocks = zip(brokers, incarnations, [sequence >> _BLOCK for sequence in sequences], strict=True)
    parts: dict[int, list[slice]] = {}
    end = 0
    for block_of, run in groupby(blocks):
        begin, end = end, end + len(list(run))
        parts.setdefault(_partition(*block_of, partitions), []).append(slice(begin, end))
    if len(parts) == 1:
        return dict.fromkeys(parts, rows)
    return {place: tuple(_cut(column, parts[place]) for column in rows) for place in sorted(parts)}


def _cut(column: Sequence[Any], parts: list[slice]) -> Sequence[Any]:
    return column[parts[0]] if len(parts) == 1 else list(chain.from_iterable(column[part] for part in parts))


def _alike(column: Sequence[Any]) -> bool:
    """Whether all values are the same one."""
    return bool(column[0] == column[-1] and column.count(column[0]) == len(column))


# -- rows as text ------------------------------------------------------------------------------------------------------


class Stream:
    """Rows of one topic and partition: encoded as they come, many to a message, numbered as they are told or lost."""

    def __init__(self, head: Head, held: Held = ALL, first: int = 0, most: int = MOST_BYTES) -> None:
        self.next = first
        """The number of the next row that is told or lost."""
        self._head, self._held, self._most = head, held, most
        self._rows = 0
        self._texts: dict[str, list[tuple[bytes, ...]]] = {}
        """By kind, of each column, of some rows and some more."""
        self._bytes = self._empty = len(self._header(_LARGEST)) + _PER_KIND

    def add(self, kind: str, rows: Columns) -> Iterator[TapMessage]:
        """Messages that are full."""
        count, texts = len(rows[0]), _texts(kind, rows, self._held)
        size = sum(map(len, texts)) + len(texts)
        if self._bytes + size + self._new(kind) > self._most:
            yield from self.end()
        if self._bytes + size + self._new(kind) <= self._most:
            self._keep(kind, count, size, texts)
        elif count > 1:
            half = count // 2
            yield from self.add(kind, tuple(one[:half] for one in rows))
            yield from self.add(kind, tuple(one[half:] for one in rows))
        else:
            yield from self._add_large(kind, rows)

    def _keep(self, kind: str, count: int, size: int, texts: tuple[bytes, ...]) -> None:
        self._bytes += size + self._new(kind)
        self._rows += count
        self._texts.setdefault(kind, []).append(texts)

    def _new(self, kind: str) -> int:
        """Bytes for the names of columns, if there is nothing of this kind yet."""
        return 0 if kind in self._texts else sum(map(len, _NAMES[kind])) + _PER_KIND

    def _add_large(self, kind: str, rows: Columns) -> Iterator[TapMessage]:
        """A row that is too large is told without what may be large; if that does not help, it is lost."""
        texts = _texts(kind, rows, self._held._replace(attributes=_NONE, filters=_NONE))
        size = sum(map(len, texts)) + len(texts)
        if self._bytes + size + self._new(kind) <= self._most:
            self._keep(kind, 1, size, texts)
        else:
            yield self._message(b"", 1)

    def end(self) -> Iterator[TapMessage]:
        """A message with all that is left, if anything is."""
        if not self._rows:
            return
        parts = [self._header(self._rows)]
        for kind, some in self._texts.items():
            parts.append(b',"%b":' % kind.encode())
            columns = zip(_NAMES[kind], zip(*some, strict=True), strict=True)
            parts += [part for name, texts in columns for part in (name, b",".join(texts))]
            parts.append(b"]}")
        value = b"".join((*parts, b"}"))
        rows, self._rows, self._bytes = self._rows, 0, self._empty
        self._texts.clear()
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

_NAMES: dict[str, list[bytes]] = {
    kind: [
        (b"]," if place else b"{") + b'"%b":[' % column.name.encode() for place, column in enumerate(columns)
    ] for kind, columns in COLUMNS.items()
}  # fmt: skip
"""What stands before each column's values."""


def _texts(kind: str, rows: Columns, held: Held) -> tuple[bytes, ...]:
    """Of each column its values with commas between them."""
    return tuple(map(_text, _columns(kind, rows, held).values()))


def _text(column: Sequence[Any]) -> bytes:
    first = column[0]
    if type(first) in _PLAIN and _alike(column):  # of a turn, most columns are
        text = orjson.dumps(first)
        return (text + b",") * (len(column) - 1) + text
    return orjson.dumps(column)[1:-1]


_PLAIN = frozenset((int, bool, str, type(None)))


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
