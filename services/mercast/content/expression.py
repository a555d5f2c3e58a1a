"""The tree of a filter, and its text.

Six leaves and branches, as SQL's WHERE has them; names, values and patterns have been checked by the parser. An empty
`And` is TRUE (the filter that matches all), an empty `Or` is FALSE.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mercast.content.values import Value

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Compare:
    name: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class Between:
    """Short for `name >= low AND name <= high`."""

    name: str
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class In:
    """Short for `name = v1 OR name = v2 OR …`."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    name: str
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class IsNull:
    name: str


@dataclass(frozen=True, slots=True)
class Not:
    term: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple["Expression", ...]


Leaf: TypeAlias = Compare | Between | In | Like | IsNull
Expression: TypeAlias = Leaf | Not | And | Or

TRUE = And(())
FALSE = Or(())

KEYWORDS = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"])

NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_BARE_NAME = re.compile(NAME)


def leaves(expression: Expression) -> Iterator[Leaf]:
    match expression:
        case And(terms) | Or(terms):
            for term in terms:
                yield from leaves(term)
        case Not(term):
            yield from leaves(term)
        case _:
            yield expression


# How tightly each form binds; a term that binds less tightly than its place asks for is put in parentheses.
_OR, _AND, _NOT, _LEAF = range(4)


def to_text(expression: Expression) -> str:
    """Text that parses back to the same meaning. The filter that matches all is the empty text."""
    return "" if expression == TRUE else _text(expression, _OR)


def _text(expression: Expression, place: int) -> str:
    match expression:
        case And(terms):
            return _joined(terms, " AND ", _AND, place) if terms else "TRUE"
        case Or(terms):
            return _joined(terms, " OR ", _OR, place) if terms else "FALSE"
        case Not(Between() | In() | Like() | IsNull() as leaf):
            return _leaf(leaf, "NOT ")
        case Not(term):
            return _in_parentheses("NOT " + _text(term, _NOT), _NOT, place)
    return _leaf(expression, "")


def _joined(terms: tuple[Expression, ...], word: str, binds: int, place: int) -> str:
    return _in_parentheses(word.join(_text(term, binds + 1) for term in terms), binds, place)


def _in_parentheses(text: str, binds: int, place: int) -> str:
    return f"({text})" if binds < place else text


def _leaf(leaf: Leaf, negation: str) -> str:
    name = name_text(leaf.name)
    match leaf:
        case Compare(_, "=", True):
            return name
        case Compare(_, operator, value):
            return f"{name} {operator} {value_text(value)}"
        case Between(_, low, high):
            return f"{name} {negation}BETWEEN {value_text(low)} AND {value_text(high)}"
        case In(_, values):
            return f"{name} {negation}IN ({', '.join(map(value_text, values))})"
        case Like(_, pattern, escape):
            escaped = "" if escape == "\\" else f" ESCAPE {value_text(escape)}"
            return f"{name} {negation}LIKE {value_text(pattern)}{escaped}"
        case IsNull():
            return f"{name} IS {negation}NULL"


def name_text(name: str) -> str:
    if _BARE_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def value_text(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
