"""Which edges carry an event out of a cluster: one decider, the broker that makes the list.

A subscription of another cluster is told of by every edge that can reach it. Of each such group of edges one is picked
by a rendezvous hash of the publisher's broker and the next cluster: a publisher keeps its path while the edges stay the
same, and publishers spread over them. Where edges reach different things, as few are picked as reach everything.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import TypeAlias

from mercast.routing.destination.tellings import Crossed, Telling, order
from mercast.routing.destination.ways import ANY, Beyond

Group: TypeAlias = frozenset[Telling]

FIRST_GROUP = 1 << 16
"""Destinations of a matcher are numbers: those of brokers are lower."""

_REMEMBERED = 10_000


class Carriers:
    def __init__(self, alive: Callable[[int], bool], stays: Callable[[int], bool]) -> None:
        """Of a broker: whether it can be reached, and whether it is not about to stop."""
        self._alive, self._stays = alive, stays
        self._numbers: dict[Group, int] = {}
        self._groups: dict[int, Group] = {}
        self._used: Counter[int] = Counter()
        """How often each number is in use."""
        self._picked: dict[tuple[int, Crossed, tuple[int, ...], frozenset[Beyond]], tuple[int, ...]] = {}

    def take(self, tellings: Iterable[Telling]) -> int:
        """The destination that stands for whoever tells so, in use once more."""
        group = frozenset(tellings)
        number = self._numbers.get(group)
        if number is None:
            # The lowest, for matchers have room for all that there ever were; it may have stood for others before.
            number = self._numbers[group] = next(one for one in count(FIRST_GROUP) if one not in self._groups)
            self._groups[number] = group
            self.forget_picks()
        self._used[number] += 1
        return number

    def give_back(self, number: int) -> None:
        self._used[number] -= 1
        if not self._used[number]:
            del self._used[number], self._numbers[self._groups.pop(number)]

    def forget_picks(self) -> None:
        """Somebody came or went, or a destination stands for others."""
        self._picked.clear()

    def pick(
        self, source: int, crossed: Crossed, numbers: tuple[int, ...], elsewhere: frozenset[Beyond] = frozenset()
    ) -> tuple[int, ...]:
        """The edges that are to carry an event of a broker, which has crossed these clusters, to all of the groups; not
        where it comes by a better way."""
        asked = source, crossed, numbers, elsewhere
        picked = self._picked.get(asked)
        if picked is None:
            if len(self._picked) >= _REMEMBERED:
                self._picked.clear()
            picked = self._picked[asked] = self._pick(*asked)
        return picked

    def _pick(
        self, source: int, crossed: Crossed, numbers: tuple[int, ...], elsewhere: frozenset[Beyond]
    ) -> tuple[int, ...]:
        waiting = [some for number in numbers for some in self._able(self._groups[number], crossed, elsewhere)]
        picked: list[int] = []
        while waiting:
            reach = Counter(broker for some in waiting for broker in {one.broker for one in some})
            every = (one for some in waiting for one in some)
            best = max(every, key=lambda one: (reach[one.broker], _weight(source, one.crossed[-1], one.broker)))
            picked.append(best.broker)
            waiting = [some for some in waiting if all(one.broker != best.broker for one in some)]
        return tuple(sorted(set(picked)))

    def _able(self, group: Group, crossed: Crossed, elsewhere: frozenset[Beyond]) -> list[list[Telling]]:
        """By each way that leads into no cluster twice, who can carry. There are several while a better one takes over,
        and where rules have types go by different ones. If nobody can be reached, the event is to wait, as for any
        broker of the cluster that is out of reach for now. One that is about to stop carries what no other does."""
        able = [one for one in group if not set(one.crossed) & set(crossed)]
        able = [one for one in able if elsewhere.isdisjoint({(one.broker, one.crossed[-1]), (one.broker, ANY)})]
        able = [one for one in able if self._alive(one.broker)] or able
        able = [one for one in able if self._stays(one.broker)] or able
        ways = sorted({one.crossed for one in able}, key=order)
        return [[one for one in able if one.crossed == way] for way in ways]


@lru_cache(maxsize=65_536)
def _weight(source: int, cluster: int, broker: int) -> int:
    return int.from_bytes(blake2b(f"{source} {cluster} {broker}".encode(), digest_size=8).digest())
