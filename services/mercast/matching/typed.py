"""Matching by type and content: an index per type, asked along an event's lineage."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeAlias

from mercast.content.filter import Filter
from mercast.content.values import Attributes
from mercast.matching.index import Index
from mercast.matching.scan import Scan

Matcher: TypeAlias = Index | Scan


class TypedMatcher:
    """Ids are unique over all types. A subscription to no type in particular is kept under None."""

    def __init__(self, make: Callable[[], Matcher] = Index) -> None:
        self._make = make
        self._matchers: dict[str | None, Matcher] = {}
        self._type_of: dict[Hashable, str | None] = {}

    def __len__(self) -> int:
        return len(self._type_of)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._type_of

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._type_of)

    def add(self, id: Hashable, type: str | None, filter: Filter, destination: Hashable = None) -> None:
        if type not in self._matchers:
            self._matchers[type] = self._make()
        self._matchers[type].add(id, filter, destination)
        self._type_of[id] = type

    def remove(self, id: Hashable) -> None:
        type = self._type_of.pop(id)
        self._matchers[type].remove(id)
        if not len(self._matchers[type]):
            del self._matchers[type]

    def match(self, lineage: Iterable[str], attributes: Attributes) -> list[Any]:
        """The ids that match an event whose type has this lineage, ascending."""
        return sorted(id for matcher in self._along(lineage) for id in matcher.match(attributes))

    def destinations(self, lineage: Iterable[str], attributes: Attributes) -> list[Any]:
        """The destinations with a match, ascending."""
        return sorted({one for matcher in self._along(lineage) for one in matcher.destinations(attributes)})

    def _along(self, lineage: Iterable[str]) -> Iterable[Matcher]:
        return (self._matchers[type] for type in (*lineage, None) if type in self._matchers)
