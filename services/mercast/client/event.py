"""What a client gets: events, and receipts for those it publishes."""

from struct import error
from typing import TYPE_CHECKING, NamedTuple

from mercast.client.errors import Refused
from mercast.content.errors import ContentError
from mercast.content.event import Event as Checked
from mercast.content.event import EventId, check_event
from mercast.content.values import Attributes, check_attributes
from mercast.protocol.rows import Row
from mercast.wire.events import PLAIN_BYTES, encode_content

if TYPE_CHECKING:
    from mercast.client.standing import Wanted


NO_ATTRIBUTES: Attributes = {}


class Event(NamedTuple):
    type: str
    attributes: Attributes
    payload: bytes
    content_type: str
    time: int
    """Nanoseconds since 1970, read where the event was published."""
    publisher: str
    id: EventId
    subscriptions: "tuple[Wanted, ...]"
    """Those of this client that it matches."""
    trace: str | None = None
    """Trace context as the W3C header `traceparent` has it, if the publisher sent one."""


class ToPublish(NamedTuple):
    """One event for `publish_many`. Plain tuples of the same do as well."""

    type: str
    attributes: Attributes = NO_ATTRIBUTES
    payload: bytes = b""
    content_type: str = PLAIN_BYTES
    trace: str | None = None
    """Trace context as the W3C header `traceparent` has it."""


class Receipt(NamedTuple):
    """The broker has checked, matched and queued the event."""

    destinations: int
    """Found for it. With none, nobody subscribes to such events at the moment."""
    broker: int
    """That accepted it."""


class Hop(NamedTuple):
    """What a broker did with a traced event."""

    broker: int
    row: Row


def encode(event: ToPublish) -> bytes:
    """The event's content as bytes; Refused if a broker would not take it."""
    try:
        return encode_content(event.type, check_attributes(event.attributes), *event[2:])
    except ContentError as reason:
        raise Refused(str(reason)) from None
    except (error, AttributeError, TypeError, UnicodeEncodeError) as damage:
        type_, attributes, payload, content_type, trace = event
        try:  # what is wrong exactly?
            check_event(Checked(EventId(0, 0, 0), type_, attributes, 0, "me", content_type, trace, payload))
        except ContentError as reason:
            raise Refused(str(reason)) from None
        raise Refused(f"this cannot be sent: {damage}") from None
