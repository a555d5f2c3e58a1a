"""Many advertisements or subscriptions: those that another may concern are found by type, without looking at all."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from mercast.content.interest import Interest
from mercast.content.types import Types

K = TypeVar("K")
I = TypeVar("I", bound=Interest)  # noqa: E741


class Interests(dict[K, I]):
    """Changed by `put` and `drop` only."""

    def __init__(self) -> None:
        super().__init__()
        self._by_type: dict[str | None, dict[K, None]] = {}

    def put(self, key: K, interest: I) -> None:
        if key in self:
            self.drop(key)
        self[key] = interest
        self._by_type.setdefault(interest.type, {})[key] = None

    def drop(self, key: K) -> I:
        was = self.pop(key)
        same = self._by_type[was.type]
        del same[key]
        if not same:
            del self._by_type[was.type]
        return was

    def concerning(self, types: Types, other: Interest) -> Iterator[tuple[K, I]]:
        """Those that may have events in common with it (`Interest.intersects`)."""
        if not self:
            return
        related = self._by_type.keys() if other.type is None else _related(types, other.type)
        for key in (key for type in related for key in self._by_type.get(type, ())):
            if self[key].filter.intersects(other.filter):
                yield key, self[key]

    def any_concerning(self, types: Types, other: Interest) -> bool:
        return next(self.concerning(types, other), None) is not None


def _related(types: Types, type: str) -> Iterable[str | None]:
    """Those of its events, its ancestors' and its subtypes', in an order that is the same everywhere."""
    return dict.fromkeys((None, *types.lineage(type), *types.below(type)))
