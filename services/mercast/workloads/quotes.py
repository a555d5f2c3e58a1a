"""Real quotes, as somebody has recorded them: a table with a heading line, of symbol, price, volume and whatever else.

A subscriber names a symbol as often as it is quoted, mostly with a range of prices about a quote of it; see `stock.py`.
"""

import csv
import math
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mercast.content import ContentError, Filter, Value, check_attributes
from mercast.content.expression import And, Between, Compare, Expression
from mercast.workloads.stock import WITH_PRICE, WITH_VOLUME

NEEDED = ("symbol", "price", "volume")
MOST_QUOTES = 100_000
"""Of a file; what comes after these is left out, for all are kept in memory."""

_INT = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_BOOLS = {"true": True, "false": False}
_NEAR = 0.03
"""How far from a quote's price a subscriber's range goes, on either side."""


class QuotesError(ValueError):
    """Says in which line and column something is wrong, and what would be right."""


class Quotes:
    def __init__(self, quotes: Sequence[dict[str, Value]]) -> None:
        if not quotes:
            raise QuotesError("there are no quotes")
        self.quotes = quotes

    def filter(self, rng: random.Random) -> Filter:
        quote = rng.choice(self.quotes)
        terms: list[Expression] = [Compare("symbol", "=", quote["symbol"])]
        if rng.random() < WITH_PRICE:
            price = float(quote["price"])
            terms.append(Between("price", round(price * (1 - _NEAR), 4), round(price * (1 + _NEAR), 4)))
        if rng.random() < WITH_VOLUME:
            terms.append(Compare("volume", ">=", quote["volume"]))
        return Filter(And(tuple(terms)))

    def event(self, rng: random.Random) -> dict[str, Value]:
        return rng.choice(self.quotes)


def quotes_of(file: Path) -> Quotes:
    """Of a file in CSV. Spreadsheets put a mark before the first line (a BOM), which is none of its name."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return read_quotes(lines, str(file))


def read_quotes(lines: Iterable[str], name: str, most: int = MOST_QUOTES) -> Quotes:
    """Of the lines of such a file, as far as they are needed; `name` is how errors call it."""
    rows = csv.reader(lines, strict=True)
    try:
        heading = [column.strip() for column in next(rows, [])]
        _check_heading(heading, name)
        quotes: list[dict[str, Value]] = []
        for cells in rows:
            if cells:
                quotes.append(_quote(heading, cells, f"{name}, line {rows.line_num}"))
            if len(quotes) == most:
                break
    except csv.Error as error:
        raise QuotesError(f"{name}, line {rows.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        raise QuotesError(f"{name}, after line {rows.line_num}: this is not text in UTF-8 ({error.reason})") from None
    if not quotes:
        raise QuotesError(f"{name}: there are no quotes below the heading")
    return Quotes(quotes)


def _check_heading(heading: list[str], name: str) -> None:
    missing = [column for column in NEEDED if column not in heading]
    if missing:
        found = ", ".join(filter(None, heading)) or "nothing"
        raise QuotesError(
            f"{name}, line 1: there is no column {' and no '.join(missing)}; "
            f"the first line names the columns, {', '.join(NEEDED)} among them, and this one has {found}"
        )
    for place, column in enumerate(heading, 1):
        if not column or column in heading[: place - 1]:
            wrong = f"{column} is there twice" if column else "it has no name"
            raise QuotesError(f"{name}, line 1, column {place}: {wrong}")


def _quote(heading: list[str], cells: list[str], where: str) -> dict[str, Value]:
    if len(cells) != len(heading):
        raise QuotesError(f"{where}: {len(cells)} cells, but the heading names {len(heading)} columns")
    quote: dict[str, Value] = {}
    for place, (column, cell) in enumerate(zip(heading, cells, strict=True), 1):
        text = cell.strip()
        at = f"{where}, column {place} ({column})"
        if column == "symbol":
            if not text:
                raise QuotesError(f"{at}: a quote needs a symbol")
            quote[column] = text
        elif column in NEEDED:
            quote[column] = _number(text, at)
        elif text:
            quote[column] = _value(text)
        try:
            check_attributes({column: quote[column]} if column in quote else {})
        except ContentError as error:
            raise QuotesError(f"{at}: {error}") from None
    return quote


def _number(text: str, at: str) -> int | float:
    value = _value(text)
    if isinstance(value, bool | str) or value < 0:
        raise QuotesError(f"{at}: {text!r} is not a number of 0 or more")
    return value


def _value(text: str) -> Value:
    """An int, a float, true or false; else a string."""
    if _INT.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return _BOOLS.get(text.lower(), text)
    return number if math.isfinite(number) else text
