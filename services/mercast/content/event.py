"""Events: what a publisher sends. Brokers read id, type and attributes, and never the payload."""

from typing import NamedTuple

from mercast.content.errors import ContentError, quoted
from mercast.content.values import Attributes, check_attributes, check_name
from mercast.limits import DEFAULTS, Limits


class EventId(NamedTuple):
    """Unique for ever: a broker counts the events published at it, and counts anew in each incarnation."""

    broker: int
    incarnation: int
    sequence: int


class Event(NamedTuple):
    id: EventId
    type: str
    attributes: Attributes
    time: int
    """Nanoseconds since 1970, read where the event was published."""
    publisher: str
    content_type: str = "application/octet-stream"
    trace: str | None = None
    """Trace context as the W3C header `traceparent` has it, if the publisher sent one."""
    payload: bytes = b""
    encoded: bytes = b""
    """The content (all but id, time, publisher) as a client sent it, to be passed on untouched (wire/events.py)."""
    stamped: bytes = b""
    """The whole as a broker sent it. Like the field above, empty where nothing came, and no part of what is said."""


_checked: set[tuple[str, str, str]] = set()
_CHECKED = 10_000
"""Names recur; those that were right lately need not be looked at again."""


def _check_names(names: tuple[str, str, str], limits: Limits) -> None:
    for name, what in zip(names, ("type", "publisher", "content type"), strict=True):
        check_name(name, what, limits)
    if limits is DEFAULTS:
        if len(_checked) >= _CHECKED:
            _checked.clear()
        _checked.add(names)


def _is_checked(names: tuple[str, str, str], limits: Limits) -> bool:
    try:
        return limits is DEFAULTS and names in _checked
    except TypeError:  # not even hashable
        return False


def check_event(event: Event, limits: Limits = DEFAULTS) -> Event:
    """The door for events: the same event with flat, plain attributes. ContentError says what is wrong with it."""
    id_, type_, given, time, publisher, content_type, trace, payload, encoded, _ = event
    names = (type_, publisher, content_type)
    if not _is_checked(names, limits):
        _check_names(names, limits)
    if trace is not None:
        check_name(trace, "trace context", limits)
    if not isinstance(id_, EventId) or not isinstance(time, int):
        raise ContentError(
            f"an event has an EventId and a time in whole nanoseconds, not {quoted(id_)} and {quoted(time)}"
        )
    if not isinstance(payload, bytes):
        raise ContentError(f"a payload is bytes, not {type(payload).__name__}")
    if len(payload) > limits.payload_bytes:
        raise ContentError(
            f"the payload has {len(payload)} bytes, at most {limits.payload_bytes} are allowed: "
            "send a reference to larger data"
        )
    attributes = check_attributes(given, limits)
    if encoded and (attributes is given or attributes == given):
        return event  # what came over the wire is said just so
    if attributes is given:
        attributes = dict(attributes)  # whose it is may go on changing it
    return event._replace(attributes=attributes, encoded=b"", stamped=b"")
