"""Who tells of what in a cluster: advertisements (R-SRT) or subscriptions (R-PRT), made there or carried there."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from mercast.content.interest import Interest
from mercast.content.interests import Interests
from mercast.protocol.messages import Carried, Local, Origin

Crossed: TypeAlias = tuple[int, ...]
"""The clusters that something has left, oldest first."""


class Telling(NamedTuple):
    crossed: Crossed
    """Empty if it was made in this very cluster, by a client of the broker that tells of it."""
    broker: int


class Way(NamedTuple):
    """A way that something has come; the best is the first by `order`."""

    crossed: Crossed
    brokers: tuple[int, ...]
    """All who tell of it by this way: redundant edges."""
    value: Interest


class Tellings:
    def __init__(self, me: int) -> None:
        self._me = me
        self._items: dict[Origin, dict[Telling, Interest]] = {}
        self.own: Interests[Local | Carried, Interest] = Interests()
        """What this broker itself tells of: its own clients', at home, and what it brings; as it says it."""
        self.brought: dict[Origin, tuple[Carried, ...]] = {}
        """What this broker itself, being an edge, brings into the cluster, and under which names."""
        self._made_at: dict[int, set[Origin]] = {}

    def put(self, origin: Origin, telling: Telling, value: Interest) -> None:
        self._items.setdefault(origin, {})[telling] = value
        if telling.broker == self._me:
            self.own.put(_said(origin, telling), value)
        self._made_at.setdefault(origin[0], set()).add(origin)

    def drop(self, origin: Origin, telling: Telling) -> Interest:
        """What was told so."""
        was = self._items[origin].pop(telling)
        if telling.broker == self._me:
            self.own.drop(_said(origin, telling))
        if not self._items[origin]:
            del self._items[origin]
            self._made_at[origin[0]].discard(origin)
            if not self._made_at[origin[0]]:
                del self._made_at[origin[0]]
        return was

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def made_at(self, broker: int) -> set[Origin]:
        return self._made_at.get(broker, set())

    def of(self, origin: Origin) -> dict[Telling, Interest]:
        return self._items.get(origin, {})

    def agreed(self, origin: Origin) -> Interest | None:
        """What all who tell of it say; None if they differ."""
        first, *others = self._items[origin].values()
        return first if all(value == first for value in others) else None

    def best(self, origin: Origin, counts: Callable[[Telling], bool]) -> Way | None:
        """Among those that count."""
        crossed = min((telling.crossed for telling in self.of(origin) if counts(telling)), key=order, default=None)
        if crossed is None:
            return None
        brokers = self.tellers(origin, crossed, counts)
        return Way(crossed, brokers, self._items[origin][Telling(crossed, brokers[0])])

    def ways(self, origin: Origin, counts: Callable[[Telling], bool]) -> list[Way]:
        """All by which it has come, the best first."""
        found = sorted({telling.crossed for telling in self.of(origin) if counts(telling)}, key=order)
        tellers = [self.tellers(origin, one, counts) for one in found]
        return [
            Way(one, some, self._items[origin][Telling(one, some[0])]) for one, some in zip(found, tellers, strict=True)
        ]

    def tellers(self, origin: Origin, crossed: Crossed, counts: Callable[[Telling], bool]) -> tuple[int, ...]:
        """Who tells of it by this way."""
        return tuple(sorted(one.broker for one in self.of(origin) if one.crossed == crossed and counts(one)))


def _said(origin: Origin, telling: Telling) -> Local | Carried:
    return Carried(origin, telling.crossed) if telling.crossed else origin[1]


@lru_cache(maxsize=65_536)
def order(crossed: Crossed) -> tuple[int, int, Crossed]:
    """Of ways, the best first: across the fewest clusters; of as many, by a sum, which is the same from either end. So
    events, which follow subscriptions, go by the way that advertisements came."""
    return len(crossed), sum(map(_weight, crossed)), crossed


def _weight(cluster: int) -> int:
    return int.from_bytes(blake2b(b"%d" % cluster, digest_size=8).digest())
