"""Matching by type and content: an index per type, asked along an event's lineage."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeAlias

from mercast.content.filter import Filter
from mercast.content.values import Attributes
from mercast.matching.index import Index
from mercast.matching.scan import Scan

Matcher: TypeAlias = Index | Scan

_FEW = 16
"""So many filters are sooner evaluated than looked up."""

_LINES = 1024
"""Lineages whose matchers are remembered."""


class Work:
    """What matching there was: events that met a filter at all, and filters that they met."""

    def __init__(self) -> None:
        self.matches = self.compared = 0


class TypedMatcher:
    """Ids are unique over all types. A subscription to no type in particular is kept under None."""

    def __init__(self, make: Callable[[], Matcher] = Index, work: Work | None = None) -> None:
        self._make = make
        self._work = work or Work()
        self._matchers: dict[str | None, Matcher] = {}
        self._type_of: dict[Hashable, str | None] = {}
        self._lines: dict[tuple[str, ...], list[Matcher]] = {}
        """The matchers along each lineage that was asked for."""

    def __len__(self) -> int:
        return len(self._type_of)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._type_of

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._type_of)

    def add(self, id: Hashable, type: str | None, filter: Filter, destination: Hashable = None) -> None:
        if id in self._type_of:
            raise ValueError(f"there is a filter with the id {id!r} already: remove it first")
        matcher = self._matchers.get(type)
        if matcher is None:
            matcher = self._put(type, Scan())
        if len(matcher) == _FEW and isinstance(matcher, Scan):
            matcher = self._put(type, self._grown(matcher))
        matcher.add(id, filter, destination)
        self._type_of[id] = type

    def _put(self, type: str | None, matcher: Matcher) -> Matcher:
        self._matchers[type] = matcher
        self._lines.clear()
        return matcher

    def _grown(self, few: Scan) -> Matcher:
        many = self._make()
        for id, filter, destination in few.filters():
            many.add(id, filter, destination)
        return many

    def remove(self, id: Hashable) -> None:
        type = self._type_of.pop(id)
        self._matchers[type].remove(id)
        if not len(self._matchers[type]):
            del self._matchers[type]
            self._lines.clear()

    def match(self, lineage: tuple[str, ...], attributes: Attributes) -> list[Any]:
        """The ids that match an event whose type has this lineage, ascending."""
        found = self._along(lineage)
        if len(found) == 1:
            return found[0].match(attributes)
        return sorted(id for matcher in found for id in matcher.match(attributes))

    def destinations(self, lineage: tuple[str, ...], attributes: Attributes) -> list[Any]:
        """The destinations with a match, ascending."""
        found = self._along(lineage)
        if len(found) == 1:
            return found[0].destinations(attributes)
        return sorted({one for matcher in found for one in matcher.destinations(attributes)})

    def _along(self, lineage: tuple[str, ...]) -> list[Matcher]:
        found = self._lines.get(lineage)
        if found is None:
            if len(self._lines) >= _LINES:
                self._lines.clear()
            found = [self._matchers[type] for type in (*lineage, None) if type in self._matchers]
            self._lines[lineage] = found
        self._work.matches += bool(found)
        self._work.compared += sum(map(len, found))
        return found
