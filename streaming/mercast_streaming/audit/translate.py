"""From a filter to an expression of Spark, as SQL over typed columns: four for each attribute, by kind of its value.

Of an event's columns for an attribute at most one is not null. So a comparison across kinds, or with what is missing,
is null, which is SQL's unknown; AND, OR and NOT are then SQL's own. Ints and floats compare by exact value: the value
in the filter is known, so for the column of the other kind it is replaced here by a bound of that kind.
"""

import math
import string
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mercast_streaming.audit.where import ANY, ONE, And, Compare, In, IsNull, Like, Not, Or, Truth, Value, Where

Columns: TypeAlias = Callable[[str, str], str]
"""The column of an attribute's values of one kind."""

INT, FLOAT, STRING, BOOL = KINDS = ("int", "float", "string", "bool")
TYPES = {INT: "BIGINT", FLOAT: "DOUBLE", STRING: "STRING", BOOL: "BOOLEAN"}

_PLAIN = frozenset(string.ascii_letters + string.digits + " .,:;_-%()")
_LEAST, _MOST = -(2**63), 2**63 - 1


def translate(where: Where, columns: Columns) -> str:
    """True, false or null, just as the filter is true, false or unknown."""
    match where:
        case Truth(value):
            return _literal(value)
        case Not(term):
            return f"NOT ({translate(term, columns)})"
        case And(terms):
            return _joined("AND", terms, columns)
        case Or(terms):
            return _joined("OR", terms, columns)
        case IsNull(name):
            return "(" + " AND ".join(f"{columns(name, kind)} IS NULL" for kind in KINDS) + ")"
        case Like(name, pattern):
            return _like(columns(name, STRING), pattern)
        case Compare(name, operator, value):
            return _compare(name, operator, value, columns)
        case In(name, values):
            return _in(name, values, columns)


def _joined(operator: str, terms: Sequence[Where], columns: Columns) -> str:
    return "(" + f" {operator} ".join(translate(term, columns) for term in terms) + ")"


# -- values ------------------------------------------------------------------------------------------------------------


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return f"'{text(value)}'"
    return f"CAST('{value!r}' AS {TYPES[FLOAT if isinstance(value, float) else INT]})"


def text(value: str) -> str:
    """To stand between single quotes: whatever Spark's parser might take for something else is told by its number."""
    return "".join(one if one in _PLAIN else f"\\U{ord(one):08X}" for one in value)


def _compare(name: str, operator: str, value: Value, columns: Columns) -> str:
    if isinstance(value, bool | str):
        return f"({columns(name, BOOL if isinstance(value, bool) else STRING)} {operator} {_literal(value)})"
    ints = (operator, value) if isinstance(value, int) else _for_ints(operator, value)
    floats = (operator, value) if isinstance(value, float) else _for_floats(operator, value)
    # Floats first: where there are both, ints are few.
    by_kind = (_bounded(columns(name, kind), *bound) for kind, bound in ((FLOAT, floats), (INT, ints)))
    return f"coalesce({', '.join(by_kind)})"


_ALWAYS, _NEVER = "always", "never"


def _bounded(column: str, operator: str, value: Value) -> str:
    """Always and never are unknown of null all the same."""
    if operator in (_ALWAYS, _NEVER):
        return f"({column} {'=' if operator == _ALWAYS else '<'} {column})"
    return f"({column} {operator} {_literal(value)})"


def _for_floats(operator: str, value: int) -> tuple[str, int | float]:
    """What a float must be for `float operator value` to hold."""
    near = float(value)
    if int(near) == value:
        return operator, near
    below = near if int(near) < value else math.nextafter(near, -math.inf)
    return _between(operator, below, math.nextafter(below, math.inf))


def _for_ints(operator: str, value: float) -> tuple[str, int | float]:
    """What an int must be for `int operator value` to hold."""
    if not _LEAST <= value < _MOST + 1:
        above = value > 0
        holds = operator == "<>" or operator in (("<", "<=") if above else (">", ">="))
        return (_ALWAYS if holds else _NEVER), 0
    if value.is_integer():
        return operator, int(value)
    return _between(operator, math.floor(value), math.ceil(value))


def _between(operator: str, below: int | float, above: int | float) -> tuple[str, int | float]:
    """`operator` a value that lies between these two, which have nothing of their kind between them."""
    match operator:
        case "=":
            return _NEVER, 0
        case "<>":
            return _ALWAYS, 0
        case "<" | "<=":
            return "<=", below
        case _:
            return ">=", above


def _in(name: str, values: Sequence[Value], columns: Columns) -> str:
    """Short for OR: with values of several kinds, an attribute of one is unknown to equal those of the others."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    equal: dict[str, list[tuple[str, Value]]] = {
        INT: [("=", value) if isinstance(value, int) else _for_ints("=", value) for value in numbers],
        FLOAT: [("=", value) if isinstance(value, float) else _for_floats("=", value) for value in numbers],
        STRING: [("=", value) for value in values if isinstance(value, str)],
        BOOL: [("=", value) for value in values if isinstance(value, bool)],
    }
    by_kind = {
        kind: [_literal(value) for operator, value in bounds if operator == "="] for kind, bounds in equal.items()
    }
    asked = [INT, FLOAT] if numbers else []
    asked += [kind for kind in (STRING, BOOL) if by_kind[kind]]
    parts = []
    for kind in asked:
        column = columns(name, kind)
        parts.append(f"({column} IN ({', '.join(by_kind[kind])}))" if by_kind[kind] else _bounded(column, _NEVER, 0))
    found = f"coalesce({', '.join(parts)})" if len(parts) > 1 else parts[0]
    several = bool(numbers) + bool(by_kind[STRING]) + bool(by_kind[BOOL]) > 1
    return f"CASE WHEN {found} THEN TRUE END" if several else found


# -- patterns ----------------------------------------------------------------------------------------------------------


def _like(column: str, pattern: Sequence[str]) -> str:
    plain = [symbol for symbol in pattern if symbol not in (ANY, ONE)]
    if len(plain) == len(pattern):
        return f"({column} = {_literal(''.join(plain))})"
    if pattern[-1] == ANY and len(plain) == len(pattern) - 1:
        return f"startswith({column}, {_literal(''.join(plain))})"
    return f"({column} RLIKE {_literal(_expression(pattern))})"


def _expression(pattern: Sequence[str]) -> str:
    """A regular expression that never looks back: what stands between two ANY is found as early as can be, for good."""
    pieces: list[str] = [""]
    for symbol in pattern:
        if symbol == ANY:
            pieces.append("")
        else:
            pieces[-1] += "." if symbol == ONE else f"\\x{{{ord(symbol):x}}}"
    first, *middle, last = pieces if len(pieces) > 1 else (pieces[0], None)
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return f"(?s)\\A{first}" + ("" if last is None else f"{found}.*{last}") + "\\z"
