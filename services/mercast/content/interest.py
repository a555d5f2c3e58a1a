"""Subscriptions (what a subscriber wants) and advertisements (what a publisher will send): a type and a filter.

Both speak of a type and all its subtypes, so both need the tree of types to be decided.
"""

from dataclasses import dataclass, field

from mercast.content.errors import ContentError
from mercast.content.filter import Filter
from mercast.content.types import Types
from mercast.content.values import Attributes


@dataclass(frozen=True, slots=True)
class Interest:
    type: str | None = None
    """The type with its subtypes; None for events of any type."""
    filter: Filter = field(default_factory=Filter)

    def matches(self, types: Types, event_type: str, attributes: Attributes) -> bool:
        return self._spans(types, event_type) and self.filter.matches(attributes)

    def covers(self, types: Types, other: "Interest") -> bool:
        """True only if every event of the other is one of this. May say no too often."""
        return self._spans(types, other.type) and self.filter.covers(other.filter)

    def intersects(self, types: Types, other: "Interest") -> bool:
        """False only if no event can be of both. May say yes too often."""
        related = self.type is None or other.type is None or types.related(self.type, other.type)
        return related and self.filter.intersects(other.filter)

    def check(self, types: Types) -> None:
        """Refuse what a declared type shows to be a mistake."""
        if self.type is not None:
            types.check_filter(self.type, self.filter.expression)

    def _spans(self, types: Types, other: str | None) -> bool:
        return self.type is None or (other is not None and self.type in types.lineage(other))


class Subscription(Interest):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Advertisement(Interest):
    def __post_init__(self) -> None:
        if self.type is None:
            raise ContentError("an advertisement names a type: publishers say what they will send")
