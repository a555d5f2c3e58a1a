"""Attribute values: bool, signed 64-bit int, finite float, string; and the door that lets nothing else in.

Three kinds compare with each other inside themselves only: bools, numbers (ints and floats by exact value: 10 equals
10.0, 2**53 + 1 is not 2.0**53) and strings (by code point). Python's own comparison does just that inside a kind, so
no value is ever converted. A missing attribute and None are the same: NULL.
"""

import math
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from mercast.content.errors import ContentError, quoted
from mercast.limits import DEFAULTS, Limits

Value: TypeAlias = bool | int | float | str
Attributes: TypeAlias = Mapping[str, Any]

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Kind(IntEnum):
    BOOL = 1
    NUMBER = 2
    STRING = 3


_KIND_OF_TYPE: dict[type[Value], Kind] = {
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
}


def kind_of(value: object) -> Kind:
    """The kind of an attribute value; ContentError for anything that can be none."""
    kind = _KIND_OF_TYPE.get(type(value))  # type: ignore[arg-type]
    if kind is None:
        kind = _KIND_OF_TYPE[_base_of(value)]
    if kind is Kind.NUMBER and not INT_MIN <= value <= INT_MAX:  # type: ignore[operator]
        _check_number(value)
    return kind


def _check_number(value: Any) -> None:
    if isinstance(value, int):
        raise ContentError(f"an int of {value.bit_length() + 1} bits is too large: ints have 64 bits")
    if not math.isfinite(value):
        raise ContentError(f"{value!r} is not a number that can be compared: floats are finite")


def _base_of(value: object) -> type[Value]:
    for base in _KIND_OF_TYPE:
        if isinstance(value, base):
            return base
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise ContentError(f"{name} cannot be an attribute: use Python's bool, int, float or str")


def check_name(name: object, what: str, limits: Limits = DEFAULTS) -> str:
    """A name of an attribute, type or publisher; `what` says which in the error."""
    if not isinstance(name, str) or not name:
        raise ContentError(f"{what} {quoted(name)} is not a name: use a string of at least one character")
    if len(name) > limits.name_length:
        raise ContentError(
            f"{what} {name[:40]!r}… has {len(name)} characters, at most {limits.name_length} are allowed"
        )
    check_text(name, what)
    return name


def check_text(text: str, what: str) -> None:
    """Strings are Unicode text. A lone surrogate has no UTF-8 form: it could be neither sent nor ordered."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ContentError(
            f"{what}: character {error.start + 1} is half of a surrogate pair, which is not text; send whole characters"
        ) from None


def check_attributes(attributes: Attributes, limits: Limits = DEFAULTS) -> dict[str, Value]:
    """The door for an event's attributes: nested data flattened to dotted names, NULLs left out, all else refused."""
    if type(attributes) is dict and _are_plain(attributes, limits):
        return attributes
    if not isinstance(attributes, Mapping):
        raise ContentError(f"attributes are names with values, not {type(attributes).__name__}")
    checked: dict[str, Value] = {}
    for name, value in _flat(attributes, "", 0, limits):
        if name in checked:
            raise ContentError(f"attribute {quoted(name)} is given twice, once as nested data: keep one of them")
        if len(checked) == limits.attributes:
            raise ContentError(f"more than {limits.attributes} attributes: put what is not filtered on in the payload")
        checked[name] = value
    return checked


def _are_plain(attributes: dict[Any, Any], limits: Limits) -> bool:
    """Whether there is nothing to do: nearly always, and every event comes by here. No is always a safe answer."""
    names, longest = tuple(attributes), _LONGEST if limits is DEFAULTS else _longest(limits)
    if limits is not DEFAULTS or names not in _names:
        if len(names) > limits.attributes or not all(_is_plain_name(name, longest) for name in names):
            return False
        if limits is DEFAULTS:
            if len(_names) >= _NAMES:
                _names.clear()
            _names.add(names)
    for value in attributes.values():
        kind = type(value)
        if kind is str:
            if len(value) > longest or not value.isascii():
                return False
        elif kind is int or kind is float:
            if not INT_MIN <= value <= INT_MAX:
                return False
        elif kind is not bool:
            return False
    return True


def _longest(limits: Limits) -> int:
    """A name or a string of more characters is looked at with care."""
    return min(limits.name_length, limits.string_length)


_LONGEST = _longest(DEFAULTS)

_names: set[tuple[str, ...]] = set()
_NAMES = 1_000
"""Events of a type have the same names: looked at once, remembered for a while."""


def _is_plain_name(name: Any, longest: int) -> bool:
    return type(name) is str and 0 < len(name) <= longest and name.isascii()


def _flat(attributes: Attributes, prefix: str, depth: int, limits: Limits) -> Iterator[tuple[str, Value]]:
    if depth > limits.nesting:
        raise ContentError(f"attribute {prefix[:40]!r}… is nested more than {limits.nesting} levels deep")
    for key, value in attributes.items():
        name = check_name(prefix + check_name(key, "attribute", limits), "attribute", limits)
        if isinstance(value, Mapping):
            yield from _flat(value, name + ".", depth + 1, limits)
        elif value is not None:
            yield name, _checked(name, value, limits)


def _checked(name: str, value: Any, limits: Limits) -> Value:
    try:
        kind = kind_of(value)
    except ContentError as error:
        raise ContentError(f"attribute {quoted(name)}: {error}") from None
    if kind is Kind.STRING:
        if len(value) > limits.string_length:
            raise ContentError(
                f"attribute {quoted(name)} has {len(value)} characters, at most {limits.string_length} are allowed: "
                "larger data belongs in the payload"
            )
        check_text(value, f"attribute {quoted(name)}")
    return plain(value)


def plain(value: Value) -> Value:
    """The value itself, rid of any subclass (numpy's float64, enums of strings), which may compare in its own way."""
    if type(value) in _KIND_OF_TYPE:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # not str(value), which an enum answers with its own name
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value
