"""Events, types, filters: parse, normalise, evaluate, cover, intersect. Pure, and light enough for the client."""

from mercast.content.declarations import read_declarations
from mercast.content.errors import ContentError, FilterError
from mercast.content.event import Event, EventId, check_event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.types import AttributeType, Declaration, Types
from mercast.content.values import Attributes, Kind, Value, check_attributes, kind_of

__all__ = [
    "Advertisement",
    "AttributeType",
    "Attributes",
    "ContentError",
    "Declaration",
    "Event",
    "EventId",
    "Filter",
    "FilterError",
    "Interest",
    "Kind",
    "Subscription",
    "Types",
    "Value",
    "check_attributes",
    "check_event",
    "kind_of",
    "read_declarations",
]
