"""By which ways advertisements come into a cluster: the best, and for a while those that were the best before it.

When a shorter way appears, subscriptions are laid along it from the subscriber's end, so whoever hears of one there can
send events to its end. Events that left before that are on the old way: it counts on, and subscriptions stay along it,
until all must have heard of the new one and those events must have arrived.
"""

from collections.abc import Callable
from itertools import takewhile

from mercast.protocol.messages import Origin
from mercast.routing.destination.tellings import Crossed, Telling, Tellings, Way

_MOST_BEFORE = 4
"""Ways that were the best before and still count, of one advertisement: however often the best one changes."""


class Ways:
    def __init__(self, tellings: Tellings, counts: Callable[[Telling], bool], last: float) -> None:
        """Who tells of advertisements, which of them count, and the seconds that a way lasts after it was the best."""
        self._tellings, self._counts, self._last = tellings, counts, last
        self._now: dict[Origin, tuple[Way, ...]] = {}
        self._since: dict[Origin, float] = {}
        """When the best one became that."""
        self._before: dict[Origin, tuple[Crossed, ...]] = {}
        """Those that still count."""
        self._until: dict[Origin, float] = {}
        """How long they do: the first that ends first."""

    def of(self, advertisement: Origin) -> tuple[Way, ...]:
        """The best one first."""
        return self._now.get(advertisement, ())

    def look(self, now: float, advertisement: Origin) -> None:
        """Something has changed."""
        was, best = self.of(advertisement), self.best(advertisement)
        if best is None:
            for some in (self._now, self._since, self._before, self._until):
                some.pop(advertisement, None)
            return
        if not was or was[0].crossed != best.crossed:
            since, self._since[advertisement] = self._since.get(advertisement, now), now
            if since < now:  # else nothing has gone that way
                self._keep(now, advertisement, was[0].crossed)
        before = (crossed for crossed in self._before.get(advertisement, ()) if crossed != best.crossed)
        others = (Way(one, self._tellings.tellers(advertisement, one, self._counts), best.value) for one in before)
        self._now[advertisement] = best, *others

    def best(self, advertisement: Origin) -> Way | None:
        return self._tellings.best(advertisement, self._counts)

    def _keep(self, now: float, advertisement: Origin, crossed: Crossed) -> None:
        before = (one for one in self._before.get(advertisement, ()) if one != crossed)
        self._before[advertisement] = (crossed, *before)[:_MOST_BEFORE]
        self._until.pop(advertisement, None)
        self._until[advertisement] = now + self._last

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
        assert self._since.keys() == self._now.keys()
        assert self._before.keys() == self._until.keys() <= self._now.keys()
