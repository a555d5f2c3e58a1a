"""Tap rows: what a broker did, one row per happening. Field names are the column names everywhere."""

from typing import NamedTuple, TypeAlias

from mercast.content.event import EventId


class Published(NamedTuple):
    event: EventId
    time: int
    type: str
    attributes: dict[str, bool | int | float | str]
    destinations: int
    """Brokers found interested, this one not counted."""
    bytes: int
    matches: int


FIRST, FURTHER = 1, 2


class Copied(NamedTuple):
    """`received`: a copy of an event came in from a neighbour."""

    event: EventId
    time: int
    neighbour: int
    hops: int
    list_length: int
    copy: int
    """1 for the first copy that this broker gets, 2 for any further one."""
    interested: bool


class Delivered(NamedTuple):
    event: EventId
    time: int
    client: str
    subscriptions: tuple[int, ...]
    hops: int


class Dropped(NamedTuple):
    event: EventId
    time: int
    why: str


Row: TypeAlias = Published | Copied | Delivered | Dropped
