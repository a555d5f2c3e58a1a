"""By which ways advertisements come into a cluster: the best, and for a while those that were the best before it.

When a shorter way appears, subscriptions are laid along it from the subscriber's end, so whoever hears of one there can
send events to its end. Events that left before that are on the old way: it counts on, and subscriptions stay along it,
until all must have heard of the new one and those events must have arrived.

In a circle of clusters, whoever makes a list also learns here that an edge has no use for an event: if it tells of the
event's advertisement by a better way than this, the cluster beyond it gets the event by that one.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

from mercast.protocol.messages import Origin
from mercast.routing.destination.tellings import Crossed, Telling, Tellings, Way, order

_MOST_BEFORE = 4
"""Ways that were the best before and still count, of one advertisement: however often the best one changes."""

_REMEMBERED = 10_000

ANY = -1
Beyond: TypeAlias = tuple[int, int]
"""An edge, and the cluster that it carries events into; or any of them: it brings events from one into all others."""


class Ways:
    def __init__(self, tellings: Tellings, counts: Callable[[Telling], bool], last: float) -> None:
        """Who tells of advertisements, which of them count, and the seconds that a way lasts after it was the best."""
        self._tellings, self._counts, self._last = tellings, counts, last
        self._now: dict[Origin, tuple[Way, ...]] = {}
        self._since: dict[Origin, float] = {}
        """When each was heard of first: nothing can have gone by what was so only at that very moment."""
        self._told: dict[Origin, tuple[Telling, ...]] = {}
        """Who tells of it from other clusters."""
        self._before: dict[Origin, tuple[Crossed, ...]] = {}
        """Those that still count."""
        self._until: dict[Origin, float] = {}
        """How long they do, and news of others may not have reached everybody; the first that ends first."""
        self.come_by = lru_cache(_REMEMBERED)(self._come_by)
        self.better = lru_cache(_REMEMBERED)(self._better)

    def of(self, advertisement: Origin) -> tuple[Way, ...]:
        """The best one first."""
        return self._now.get(advertisement, ())

    def look(self, now: float, advertisement: Origin) -> None:
        """Something has changed."""
        self.come_by.cache_clear()
        self.better.cache_clear()
        was, best = self.of(advertisement), self.best(advertisement)
        if best is None:
            for some in (self._now, self._since, self._told, self._before, self._until):
                some.pop(advertisement, None)
            return
        told = tuple(sorted(one for one in self._tellings.of(advertisement) if one.crossed and self._counts(one)))
        if self._since.setdefault(advertisement, now) < now and told != self._told[advertisement]:
            self._keep(now, advertisement, was[0].crossed)
        self._told[advertisement] = told
        before = (one for one in self._before.get(advertisement, ()) if one != best.crossed)
        others = (Way(one, self._tellings.tellers(advertisement, one, self._counts), best.value) for one in before)
        self._now[advertisement] = best, *others

    def _keep(self, now: float, advertisement: Origin, crossed: Crossed) -> None:
        """The best one until now counts on, be it still the best or not; so do others, if there are any."""
        before = (one for one in self._before.get(advertisement, ()) if one != crossed)
        self._before[advertisement] = (crossed, *before)[:_MOST_BEFORE]
        self._until.pop(advertisement, None)
        self._until[advertisement] = now + self._last

    def best(self, advertisement: Origin) -> Way | None:
        return self._tellings.best(advertisement, self._counts)

    def _come_by(self, source: int, lineage: tuple[str, ...]) -> frozenset[Crossed]:
        """All ways of events of a broker and a type."""
        return frozenset(way.crossed for one in self._made(source, lineage) for way in self.of(one))

    def _better(self, source: int, lineage: tuple[str, ...], crossed: Crossed) -> frozenset[Beyond]:
        """Which edges lead where such events come by a better way than across these clusters."""
        found = [frozenset(self._better_of(one, crossed)) for one in self._made(source, lineage)]
        return found[0].intersection(*found) if found else frozenset()

    def _made(self, source: int, lineage: tuple[str, ...]) -> list[Origin]:
        """The advertisements of such events."""
        made = self._tellings.made_at(source)
        return [one for one in made if any(way.value.type in lineage for way in self.of(one)[:1])]

    def _better_of(self, advertisement: Origin, crossed: Crossed) -> Iterator[Beyond]:
        if advertisement not in self._until:
            for one in self._told[advertisement]:
                if order(one.crossed[:-1]) < order(crossed):
                    yield one.broker, one.crossed[-1]
                if order(one.crossed) < order(crossed):
                    yield one.broker, ANY

    def give_up(self, now: float) -> list[Origin]:
        """Advertisements of which only the best way counts from now on; they are to be looked at."""
        over = list(takewhile(lambda one: self._until[one] <= now, self._until))
        for advertisement in over:
            del self._until[advertisement], self._before[advertisement]
        return over

    def next_deadline(self) -> float:
        return next(iter(self._until.values()), float("inf"))

    def validate(self) -> None:
        best = {origin: way for origin in self._tellings if (way := self.best(origin)) is not None}
        assert best == {origin: ways[0] for origin, ways in self._now.items()}
        assert self._since.keys() == self._told.keys() == self._now.keys()
        assert self._before.keys() == self._until.keys() <= self._now.keys()
