"""`mercast filter`: check a filter, and try it on attributes."""

import sys
from typing import Annotated

import rich
from cyclopts import Parameter

from mercast.content import ContentError, Filter, Value, check_attributes
from mercast.content.parser import parse_value


def check(text: Annotated[str, Parameter(allow_leading_hyphen=True)], *attributes: str) -> None:
    """Check a filter, and try it on attributes.

    Exit status: 0 if the filter is right (and matches, if attributes are given), 1 if not.

    Parameters
    ----------
    text
        The filter, such as "symbol = 'ACME' AND price > 10".
    attributes
        Attributes to try it on: name=value, where a value is written as in a filter ('text', 12, 1.5, TRUE); a value
        that is none of these is taken as text.
    """
    try:
        filter = Filter.parse(text)
        values = check_attributes(dict(map(_attribute, attributes)))
    except ContentError as error:
        sys.exit(str(error))
    rich.get_console().print(str(filter) or "(matches every event)", markup=False, highlight=False, soft_wrap=True)
    if attributes:
        matches = filter.matches(values)
        rich.get_console().print("matches" if matches else "does not match")
        sys.exit(0 if matches else 1)


def _attribute(text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ContentError(f"{text!r} is not an attribute: write name=value")
    try:
        return name, parse_value(value)
    except ContentError:
        return name, value
