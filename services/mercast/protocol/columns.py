"""The columns of tap rows, read from rows.py: for the encoder, for Spark's schema and for docs/taps.md."""

import types
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from mercast.content.event import EventId
from mercast.protocol import rows

VERSION = 3
"""Of tap messages; in the first, no column was written as runs (repeated.py), in the second none as runs that rise.
Columns may be added without a new one: readers skip those that they do not know, and take those that are absent for
null. A message of a higher version is for newer readers."""

Kind: TypeAlias = Literal["int", "bool", "string", "ints", "counts"]
"""Of a value: 64-bit integer, boolean, text, array of integers, object from text to integer."""


class Column(NamedTuple):
    name: str
    kind: Kind
    nullable: bool
    meaning: str
    json: bool = False
    """Whether it is an object of any shape: readers take its text as it is, who does not look into it need not."""
    rises: bool = False
    """Whether its runs may be of numbers that rise."""


HEADER = (
    Column("version", "int", False, f"Of this form of messages: {VERSION}."),
    Column("broker", "int", False, "The broker that writes."),
    Column("incarnation", "int", False, "Which of its lives; a higher one began later."),
    Column("cluster", "string", False, "The cluster that it is in."),
    Column("strategy", "string", False, "How it routes."),
    Column("first", "int", False, "The number of the message's first row, in this topic and partition."),
    Column("count", "int", False, "How many rows follow, numbered one after the other."),
)

EVENT = (
    Column("event_broker", "int", False, "The broker that the event was published at."),
    Column("event_incarnation", "int", False, "Its incarnation then."),
    Column("event_sequence", "int", False, "The number of the event there.", rises=True),
    Column("time", "int", False, "When its publish frame was read there."),
)
"""In the place of the fields `event` and `time`."""

AT = Column("at", "int", False, "When it happened.")
"""The last of every kind; put there by the one who ships the row."""

EVENT_ROWS: dict[str, type[Any]] = {
    "published": rows.Published,
    "received": rows.Copied,
    "delivered": rows.Delivered,
    "dropped": rows.Dropped,
}
TAP_ROWS = EVENT_ROWS | {"tick": rows.Ticked}
"""The kinds in the topic of taps."""

CONTROL_ROWS: dict[str, type[Any]] = {
    "declared": rows.Declared,
    "advertised": rows.Advertised,
    "unadvertised": rows.Unadvertised,
    "subscribed": rows.Subscribed,
    "unsubscribed": rows.Unsubscribed,
    "settled": rows.Agreed,
    "linked": rows.Linked,
    "unlinked": rows.Unlinked,
    "snapshot": rows.Snapshot,
}
"""The kinds in the topic of control rows."""

_KINDS: dict[Any, Kind] = {
    int: "int",
    bool: "bool",
    str: "string",
    tuple[int, ...]: "ints",
    dict[str, int]: "counts",
    dict[str, bool | int | float | str]: "string",
}
_JSON = dict[str, bool | int | float | str]


def _columns(row: type[Any]) -> tuple[Column, ...]:
    hints = get_type_hints(row, include_extras=True)
    about_event = hints.get("event") is EventId
    own = [_column(name, hint) for name, hint in hints.items() if get_origin(hint) is Annotated]
    return (*(EVENT if about_event else ()), *own, AT)


def _column(name: str, hint: Any) -> Column:
    of, meaning = get_args(hint)
    nullable = get_origin(of) in (Union, types.UnionType)
    if nullable:
        (of,) = (one for one in get_args(of) if one is not types.NoneType)
    return Column(name, _KINDS[of], nullable, meaning, of == _JSON)


COLUMNS: dict[str, tuple[Column, ...]] = {kind: _columns(row) for kind, row in (TAP_ROWS | CONTROL_ROWS).items()}
"""By kind of row, in the order that they are written in."""

KIND_OF: dict[type[Any], str] = {row: kind for kind, row in (TAP_ROWS | CONTROL_ROWS).items()}
