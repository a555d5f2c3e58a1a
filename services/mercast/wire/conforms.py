"""Whether values are what the protocol's annotations say: what a peer sent is checked before anybody acts on it."""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

Check: TypeAlias = Callable[[Any], bool]


@cache
def checker(hint: Any) -> Check:
    """A function that says whether a value is what a hint says."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda _: True
    if origin in (Union, UnionType):
        return _any_of([checker(arg) for arg in args])
    if origin is tuple:
        if args[1:] == (...,):
            return _all(checker(args[0]))
        return _each([checker(arg) for arg in args])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(checker(args[0]), checker(args[1]))
    if hint is float:
        return lambda value: type(value) in (float, int)
    if hint is None or hint is NoneType:
        return lambda value: value is None
    if hasattr(hint, "_fields") or hasattr(hint, "__dataclass_fields__"):
        return _fields(hint)
    return lambda value: type(value) is hint


def _any_of(checks: list[Check]) -> Check:
    return lambda value: any(check(value) for check in checks)


def _all(check: Check) -> Check:
    return lambda value: type(value) is tuple and all(map(check, value))


def _each(checks: list[Check]) -> Check:
    def each(value: Any) -> bool:
        return (
            type(value) is tuple
            and len(value) == len(checks)
            and all(check(part) for check, part in zip(checks, value, strict=True))
        )

    return each


def _mapping(names: Check, values: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(map(names, value)) and all(map(values, value.values()))


def _fields(cls: type) -> Check:
    hints = get_type_hints(cls)
    names = getattr(cls, "_fields", None) or list(getattr(cls, "__dataclass_fields__", ()))
    checks = [(name, checker(hints[name])) for name in names]

    def fields(value: Any) -> bool:
        return type(value) is cls and all(check(getattr(value, name)) for name, check in checks)

    return fields
