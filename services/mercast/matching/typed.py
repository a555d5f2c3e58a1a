"""Matching by type and content: an index per type, asked along an event's lineage."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from mercast.content.filter import Filter
from mercast.content.values import Attributes
from mercast.matching.index import Index
from mercast.matching.loops import Found, joined, packed
from mercast.matching.scan import Scan

Matcher: TypeAlias = Index | Scan
Lineage: TypeAlias = tuple[str, ...]
"""An event's type and its ancestors, nearest first."""

Content: TypeAlias = tuple[Lineage, Attributes]
"""What is looked at of an event."""

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

    def move(self, id: Hashable, destination: Hashable) -> None:
        """Give a filter another destination."""
        self._matchers[self._type_of[id]].move(id, destination)

    def match(self, lineage: Lineage, attributes: Attributes) -> list[Any]:
        """The ids that match an event whose type has this lineage, ascending."""
        return self.match_many([(lineage, attributes)])[0]

    def match_many(self, events: Sequence[Content]) -> list[list[Any]]:
        """For each event, the ids that match, ascending."""
        return self._ask(events, _match)

    def numbers_many(self, events: Sequence[Content]) -> Found:
        """As `match_many`, of ids that are all ints: event after event in one array, and where each event's end."""
        parts = []
        for lineage, run in groupby(events, itemgetter(0)):
            some = [attributes for _, attributes in run]
            found = self._along(lineage, len(some))
            if len(found) == 1 and isinstance(found[0], Index):
                parts.append(found[0].numbers_many(some))
            else:
                parts.append(packed(_asked(found, some, _match)))
        return joined(parts)

    def destinations(self, lineage: Lineage, attributes: Attributes) -> list[Any]:
        """The destinations with a match, ascending."""
        return self.destinations_many([(lineage, attributes)])[0]

    def destinations_many(self, events: Sequence[Content]) -> list[list[Any]]:
        """For each event, the destinations with a match, ascending."""
        return self._ask(events, _find_destinations)

    def _ask(self, events: Sequence[Content], ask: "_Ask") -> list[list[Any]]:
        """Runs of events of one type are asked for together."""
        answers: list[list[Any]] = []
        for lineage, run in groupby(events, itemgetter(0)):
            some = [attributes for _, attributes in run]
            answers += _asked(self._along(lineage, len(some)), some, ask)
        return answers

    def _along(self, lineage: Lineage, events: int) -> list[Matcher]:
        found = self._lines.get(lineage)
        if found is None:
            if len(self._lines) >= _LINES:
                self._lines.clear()
            found = [self._matchers[type] for type in (*lineage, None) if type in self._matchers]
            self._lines[lineage] = found
        self._work.matches += events * bool(found)
        self._work.compared += events * sum(map(len, found))
        return found


_Ask: TypeAlias = Callable[[Matcher, list[Attributes]], list[list[Any]]]


def _match(matcher: Matcher, events: list[Attributes]) -> list[list[Any]]:
    return matcher.match_many(events)


def _find_destinations(matcher: Matcher, events: list[Attributes]) -> list[list[Any]]:
    return matcher.destinations_many(events)


def _asked(matchers: list[Matcher], events: list[Attributes], ask: _Ask) -> list[list[Any]]:
    """What all of them answer, together."""
    if not matchers:
        return [[] for _ in events]
    if len(matchers) == 1:
        return ask(matchers[0], events)
    each = zip(*(ask(matcher, events) for matcher in matchers), strict=True)
    return [sorted(set().union(*lists)) for lists in each]
