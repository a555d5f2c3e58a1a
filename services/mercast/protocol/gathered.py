"""Rows of one kind that are gathered for a message, turn by turn.

Of most columns all rows of a turn have the same value, and their numbers follow each other: such a turn adds one number
to a column, however many its rows. What differs from row to row is written as text at once.

Numbers and text lie in flat buffers, and nothing is kept as an object of its own. That would stay between the events of
later turns, whose memory would then never be free as a whole, to be used again while the processor has it at hand:
brokers were some percent slower, even long after their taps had been off.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from struct import Struct
from typing import Any, TypeAlias

import orjson

from mercast.protocol.columns import COLUMNS, EVENT_ROWS, Column
from mercast.protocol.repeated import RUNS, Repeated, Rising, in_words

Said: TypeAlias = Any
"""Of a column, for the rows of a turn: JSON, if they differ; else the one value, or a range."""

MOST_TURNS = 8192
"""In one message."""
_TURNS = 64
"""That there is room for at first."""
_MOST_TEXT = 1_000_000
"""Bytes that a column keeps room for: what one large row took is not kept for ever."""
_MOST_WORDS = 1024
_NUMBERS = range(-(1 << 63), 1 << 63)


class Gathered:
    __slots__ = ("_cells", "_columns", "_name", "_texts", "_turn", "_words", "turns")

    def __init__(self, name: str) -> None:
        self._name, self._columns = name, COLUMNS[name]
        self.turns = 0
        self._turn = Struct(f"{1 + len(self._columns)}q")
        self._cells = bytearray(_TURNS * self._turn.size)
        """Of each turn how many rows it has, and for each column a number: the one that all its rows have, the first of
        those that rise, or the place of a word."""
        self._words: dict[str | None, int] = {}
        """Some that were said, with their places."""
        self._texts = [BytesIO() for _ in self._columns]
        """Of columns that are not numbers: the values, with a comma after each. The position is the end."""

    def add(self, said: Iterable[Said], rows: int) -> int:
        """Of a turn; how many bytes of text more there are."""
        size, turn = 0, [rows]
        for place, one in enumerate(said):
            number = None if self._texts[place].tell() else self._number(self._columns[place], one)
            if number is None:
                size += self._write(place, one, rows)
            turn.append(number or 0)
        end = self.turns * self._turn.size
        if end == len(self._cells):
            self._cells += bytes(end)
        self._turn.pack_into(self._cells, end, *turn)
        self.turns += 1
        return size

    def _number(self, column: Column, one: Said) -> int | None:
        """What stands for it; None if nothing can."""
        kind = type(one)
        if kind is bytes or self._name not in EVENT_ROWS or column.json:
            return None  # of other kinds there are few rows
        if column.kind == "string":
            place = self._words.get(one)
            if place is None and len(self._words) < _MOST_WORDS:
                place = self._words[one] = len(self._words)
            return place
        if kind is range:
            one, kind = one[0], int
        whole = kind is int and column.kind == "int" and one in _NUMBERS  # else nobody's, but a neighbour may say it
        return one if whole or kind is bool else None

    def _write(self, place: int, one: Said, rows: int) -> int:
        text = self._texts[place]
        before = text.tell()
        if self.turns and not before:  # it was numbers until now
            _put(text, orjson.dumps(list(self._runs(place))))
        if type(one) is not bytes:
            one = orjson.dumps(list(one) if type(one) is range else [one] * rows)
        _put(text, one)
        return text.tell() - before

    def clear(self) -> None:
        self.turns = 0
        for place, text in enumerate(self._texts):
            if text.tell() > _MOST_TEXT:
                self._texts[place] = BytesIO()
            text.seek(0)
        if len(self._words) == _MOST_WORDS:
            self._words.clear()

    def _numbers(self, cell: int) -> list[int]:
        """In this cell of each turn."""
        cells = memoryview(self._cells)[: self.turns * self._turn.size].cast("q")
        return cells[cell :: 1 + len(self._columns)].tolist()

    def _runs(self, place: int) -> Repeated:
        column, values = self._columns[place], list[Any](self._numbers(1 + place))
        if column.kind == "string":
            words = list(self._words)
            values = [words[at] for at in values]
        elif column.kind == "bool":
            values = list(map(bool, values))
        kind = Rising if column.rises else Repeated
        return kind(values, self._numbers(0)).joined()

    def _text(self, place: int) -> memoryview | bytes:
        """The values of a column with commas between them."""
        text = self._texts[place]
        size = text.tell()
        return text.getbuffer()[: size - 1] if size else orjson.dumps(list(self._runs(place)))[1:-1]

    def _found(self, place: int) -> "Repeated | memoryview | bytes":
        """Runs, if these are much shorter."""
        if self._name in EVENT_ROWS and not self._texts[place].tell():
            runs = self._runs(place)
            if runs.is_shorter:
                return runs
        return self._text(place)

    def texts(self) -> Iterator[Any]:
        """As a message says them. In pieces, for they are long: to be put together once."""
        runs: dict[str, dict[str, Any]] = {}
        before = b',"%b":{' % self._name.encode()
        for place, column in enumerate(self._columns):
            found = self._found(place)
            if isinstance(found, Repeated):
                runs[column.name] = in_words(found)
            else:
                yield b'%b"%b":[' % (before, column.name.encode())
                yield found
                before = b"],"
        yield b'%b"%b":%b}' % (before, RUNS.encode(), orjson.dumps(runs)) if runs else before[:1] + b"}"

    def laid_out(self) -> list[list[Any]]:
        """Every column, with a value for each row."""
        return [orjson.loads(b"".join((b"[", self._text(place), b"]"))) for place in range(len(self._columns))]


def _put(text: BytesIO, values: bytes) -> None:
    text.write(memoryview(values)[1:-1])
    text.write(b",")
