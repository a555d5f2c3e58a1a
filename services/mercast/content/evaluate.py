"""Direct evaluation of a filter under SQL's three-valued logic: True, False, or None for unknown.

A missing attribute is NULL; a comparison with NULL or across kinds is unknown; NOT unknown is unknown. This is the
plain reading that every faster form (boxes, the matching index, the audit) is held against.
"""

import operator
from collections.abc import Callable
from typing import Any

from mercast.content.expression import And, Between, Compare, Expression, In, IsNull, Like, Not, Or
from mercast.content.like import compile_like
from mercast.content.values import Attributes, Value, kind_of, plain

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(expression: Expression, attributes: Attributes) -> bool | None:
    match expression:
        case And(terms):
            return _all(evaluate(term, attributes) for term in terms)
        case Or(terms):
            return negate(_all(negate(evaluate(term, attributes)) for term in terms))
        case Not(term):
            return negate(evaluate(term, attributes))
    value = attributes.get(expression.name)
    if isinstance(expression, IsNull):
        return value is None
    return None if value is None else _predicate(expression, plain(value))


def _predicate(leaf: Compare | Between | In | Like, value: Value) -> bool | None:
    match leaf:
        case Compare(_, op, constant):
            return compare(op, value, constant)
        case Between(_, low, high):
            return _all((compare(">=", value, low), compare("<=", value, high)))
        case In(_, values):
            return negate(_all(compare("<>", value, constant) for constant in values))
        case Like(_, pattern, escape):
            text = value if isinstance(value, str) else None
            return None if text is None else compile_like(pattern, escape).matches(text)


def compare(op: str, left: Value, right: Value) -> bool | None:
    return COMPARE[op](left, right) if kind_of(left) is kind_of(right) else None


def negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: Any) -> bool | None:
    """AND: false if any is false, else unknown if any is unknown."""
    result: bool | None = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result
