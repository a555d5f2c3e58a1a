"""The door for what users pass: what gets by here can be sent, and be waited for."""

from collections.abc import Mapping
from typing import Any

from mercast.client.errors import MercastError
from mercast.content.errors import ContentError
from mercast.content.values import check_text


def text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise MercastError(f"{what} is text, not {_kind(value)}")
    try:
        check_text(value, what)
    except ContentError as error:
        raise MercastError(str(error)) from None
    return value


def text_or_none(value: Any, what: str) -> str | None:
    return None if value is None else text(value, what)


def kinds(attributes: Any) -> dict[str, str]:
    """What a type declares."""
    if not isinstance(attributes, Mapping):
        raise MercastError(
            f"a type's attributes are names with types, not {_kind(attributes)}: write {{'price': 'float'}}"
        )
    return {
        text(name, "the name of an attribute"): text(
            kind, f"the type of attribute {name!r} (int, float, bool or string)"
        )
        for name, kind in attributes.items()
    }


def size(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise MercastError(f"a buffer of {value!r}: give a whole number of bytes, at least 1")
    return value


_LONGEST = 1_000_000
"""Seconds. Neither locks nor sockets can wait without end."""


def timeout(value: Any) -> float:
    if not _is_number(value) or not 0 < value <= _LONGEST:
        raise MercastError(f"a timeout of {value!r}: give seconds, more than 0 and at most {_LONGEST}")
    return float(value)


def patience(value: Any) -> float | None:
    """For the next of something: None waits for ever; without time left, what is there already will do."""
    if value is None:
        return None
    if not _is_number(value) or not value <= _LONGEST:
        raise MercastError(f"a timeout of {value!r}: give seconds, at most {_LONGEST}, or None to wait for ever")
    seconds: float = max(0.0, value)
    return seconds


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
