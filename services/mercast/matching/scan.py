"""The plain scan: every filter evaluated against every event.

The oracle that the index is held against, and the cost model of the papers in live experiments.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from mercast.content.filter import Filter
from mercast.content.values import Attributes


class Scan:
    """Answers as `Index` does."""

    def __init__(self) -> None:
        self._filters: dict[Any, tuple[Filter, Any]] = {}

    def add(self, id: Hashable, filter: Filter, destination: Hashable = None) -> None:
        if id in self._filters:
            raise ValueError(f"a filter with the id {id!r} is there already: remove it first")
        self._filters[id] = filter, destination

    def remove(self, id: Hashable) -> None:
        del self._filters[id]

    def move(self, id: Hashable, destination: Hashable) -> None:
        self._filters[id] = self._filters[id][0], destination

    def __contains__(self, id: Hashable) -> bool:
        return id in self._filters

    def __len__(self) -> int:
        return len(self._filters)

    def filters(self) -> Iterator[tuple[Any, Filter, Any]]:
        """(id, filter, destination) of each."""
        return ((id, filter, destination) for id, (filter, destination) in self._filters.items())

    def match(self, attributes: Attributes) -> list[Any]:
        return sorted([id for id, (filter, _) in self._filters.items() if filter.matches(attributes)])

    def match_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        return [self.match(attributes) for attributes in events]

    def destinations(self, attributes: Attributes) -> list[Any]:
        hit: set[Any] = set()
        for filter, destination in self._filters.values():
            if destination not in hit and filter.matches(attributes):
                hit.add(destination)
        return sorted(hit)

    def destinations_many(self, events: Sequence[Attributes]) -> list[list[Any]]:
        return [self.destinations(attributes) for attributes in events]
