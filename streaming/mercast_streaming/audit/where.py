"""The text of WHERE, read: a parser of its own, written from docs/filters.md and from nothing else.

BETWEEN, a bare boolean and a value that comes first are told by simpler forms, as that page explains them.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Value: TypeAlias = bool | int | float | str


class Truth(NamedTuple):
    value: bool


class Compare(NamedTuple):
    name: str
    operator: str
    """=, <>, <, <=, > or >=."""
    value: Value


class In(NamedTuple):
    name: str
    values: tuple[Value, ...]


class Like(NamedTuple):
    name: str
    pattern: tuple[str, ...]
    """Plain characters one by one, ANY and ONE."""


class IsNull(NamedTuple):
    name: str


class Not(NamedTuple):
    term: "Where"


class And(NamedTuple):
    terms: tuple["Where", ...]


class Or(NamedTuple):
    terms: tuple["Where", ...]


Where: TypeAlias = Truth | Compare | In | Like | IsNull | Not | And | Or

ANY, ONE = "any text", "one character"
"""In a pattern; no single character is written like them."""

_INTS = range(-(2**63), 2**63)
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KEYWORDS = {"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "ESCAPE"}
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<word>[^\W\d]\w*(?:\.\w+)*)
    | (?P<sign><>|!=|<=|>=|[=<>(),+-])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)


class WhereError(Exception):
    """The text is no filter, as far as the audit can tell."""


class _Token(NamedTuple):
    kind: str
    """string, name, number, keyword, sign or end."""
    text: str


def read(text: str) -> Where:
    """WhereError if it cannot be. The empty text means all."""
    tokens = list(_tokens(text))
    if len(tokens) == 1:
        return Truth(True)
    reader = _Reader(tokens)
    where = reader.either()
    reader.take("end")
    return where


def names_of(where: Where) -> set[str]:
    """The attributes that it asks about."""
    match where:
        case Truth():
            return set()
        case Not(term):
            return names_of(term)
        case And(terms) | Or(terms):
            return set().union(*map(names_of, terms))
        case _:
            return {where.name}


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].lstrip()
            raise WhereError(f"not a part of a filter, at character {len(text) - len(rest) + 1}: {rest[:20]!r}")
        at, kind = found.end(), str(found.lastgroup)
        part = found[kind]
        if kind == "string":
            yield _Token(kind, part[1:-1].replace("''", "'"))
        elif kind == "quoted":
            yield _Token("name", part[1:-1].replace('""', '"'))
        elif kind == "word":
            yield _Token("keyword", part.upper()) if part.upper() in _KEYWORDS else _Token("name", part)
        else:
            yield _Token(kind, "<>" if part == "!=" else part)
        if kind == "end":
            return


class _Reader:
    """By descent: each method reads one form, from its first token on."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def either(self) -> Where:
        terms = [self._both()]
        while self._skip("OR"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def take(self, kind: str) -> str:
        found = self._tokens[self._at]
        if found.kind != kind:
            raise WhereError(f"found {found.text!r} where a {kind} should be")
        self._at += 1
        return found.text

    def _skip(self, text: str) -> bool:
        """Whether this keyword or sign was next; it is read then."""
        found = self._tokens[self._at]
        if found.text != text or found.kind not in ("keyword", "sign"):
            return False
        self._at += 1
        return True

    def _need(self, text: str) -> None:
        if not self._skip(text):
            raise WhereError(f"found {self._tokens[self._at].text!r} where {text} should be")

    def _both(self) -> Where:
        terms = [self._maybe_not()]
        while self._skip("AND"):
            terms.append(self._maybe_not())
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _maybe_not(self) -> Where:
        if self._skip("NOT"):
            return Not(self._maybe_not())
        if self._skip("("):
            inside = self.either()
            self._need(")")
            return inside
        return self._condition()

    def _condition(self) -> Where:
        if self._tokens[self._at].kind == "name":
            return self._about(self.take("name"))
        value = self._value()
        operator = self._operator()
        if operator is not None:
            return Compare(self.take("name"), _TURNED[operator], value)
        if isinstance(value, bool):
            return Truth(value)
        raise WhereError(f"{value!r} is compared with nothing")

    def _about(self, name: str) -> Where:
        operator = self._operator()
        if operator is not None:
            return Compare(name, operator, self._value())
        if self._skip("IS"):
            other = self._skip("NOT")
            self._need("NULL")
            return Not(IsNull(name)) if other else IsNull(name)
        if self._skip("NOT"):
            found = self._list_or_range(name)
            if found is None:
                raise WhereError(f"NOT after {name} is followed by neither BETWEEN, IN nor LIKE")
            return Not(found)
        return self._list_or_range(name) or Compare(name, "=", True)

    def _list_or_range(self, name: str) -> Where | None:
        if self._skip("BETWEEN"):
            low = self._value()
            self._need("AND")
            return And((Compare(name, ">=", low), Compare(name, "<=", self._value())))
        if self._skip("IN"):
            self._need("(")
            values = [self._value()]
            while self._skip(","):
                values.append(self._value())
            self._need(")")
            return In(name, tuple(values))
        if self._skip("LIKE"):
            pattern = self.take("string")
            return Like(name, _pattern(pattern, self.take("string") if self._skip("ESCAPE") else "\\"))
        return None

    def _operator(self) -> str | None:
        return next((operator for operator in _TURNED if self._skip(operator)), None)

    def _value(self) -> Value:
        for text, value in (("TRUE", True), ("FALSE", False)):
            if self._skip(text):
                return value
        if self._tokens[self._at].kind == "string":
            return self.take("string")
        sign = -1 if self._skip("-") else 1
        if sign == 1:
            self._skip("+")
        return sign * self._number(sign)

    def _number(self, sign: int) -> int | float:
        text = self.take("number")
        if not text.isdigit():
            if not math.isfinite(float(text)):
                raise WhereError(f"{text} is too large")
            return float(text)
        # Digits are counted first: Python refuses to read very many.
        digits = text.lstrip("0") or "0"
        if len(digits) > len(str(_INTS.stop)) or sign * int(digits) not in _INTS:
            raise WhereError(f"{text[:40]} does not fit into 64 bits")
        return int(digits)


def _pattern(text: str, escape: str) -> tuple[str, ...]:
    if len(escape) != 1:
        raise WhereError(f"{escape!r} is not one escape character")
    symbols: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == escape:
            plain = next(characters, "")
            if plain not in ("%", "_", escape):
                raise WhereError(f"{escape} stands before {plain!r} in the pattern {text!r}")
            symbols.append(plain)
        else:
            symbols.append({"%": ANY, "_": ONE}.get(character, character))
    return tuple(symbols)
