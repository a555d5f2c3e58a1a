"""What is published and what is asked for: all of it follows from a seed, in whichever process it is worked out.

Publishers go through one pool of events together, over and over: so each filter is tried on each event once, however
many are published. Subscriptions are numbered: those of subscriber 0 first.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercast.content import Filter, Value
from mercast.matching import Index
from mercast.workloads import Quotes, Stock, Workload, Zipf, quotes_of

WORKLOADS: dict[str, tuple[str, Callable[[], Workload]]] = {"quotes": ("stock.quote", Stock), "zipf": ("zipf", Zipf)}
"""By name: the type of the events, and what makes them."""

_POOL = 2_000
"""Events that are different from each other; of real quotes, all there are."""

_AT_ONCE = 64
"""Subscribers, more than were expected, that are looked at together."""


class Plan:
    def __init__(self, workload: str, seed: int, *, publishers: int, filters: int, quotes: str = "") -> None:
        self.type, make = WORKLOADS[workload]
        self._publishers, self._filters, self._seed = publishers, filters, seed
        self._workload: Workload = make()
        if quotes:
            self._workload = quotes_of(Path(quotes))
        self.pool: Sequence[dict[str, Value]] = (
            self._workload.quotes if isinstance(self._workload, Quotes) else self._drawn(_POOL)
        )
        self._known = 0
        """Subscribers whose filters have been tried."""
        self._subscriptions, self._ends = np.zeros(0, np.int64), np.zeros(len(self.pool) + 1, np.int64)

    def _drawn(self, count: int) -> list[dict[str, Value]]:
        rng = random.Random(f"{self._seed} events")
        return [self._workload.event(rng) for _ in range(count)]

    def filters_of(self, subscriber: int) -> list[Filter]:
        rng = random.Random(f"{self._seed} subscriber {subscriber}")
        return [self._workload.filter(rng) for _ in range(self._filters)]

    def subscription(self, subscriber: int, place: int) -> int:
        """The number of one of a subscriber's."""
        return subscriber * self._filters + place

    def place(self, publisher: Any, number: Any) -> Any:
        """Where in the pool an event is, by its publisher and its number there; of arrays, where each is."""
        return (publisher + number * self._publishers) % len(self.pool)

    def wanted(self, places: Any, most: int) -> tuple[Any, Any]:
        """The subscriptions, numbered up to `most`, that want the events at these places of the pool, all in one array;
        and of each the event it is for, counted from 0."""
        if most >= self._known * self._filters:
            self.learn((most // self._filters // _AT_ONCE + 1) * _AT_ONCE)
        starts, counts = self._ends[places], self._ends[places + 1] - self._ends[places]
        events = np.repeat(np.arange(len(places)), counts)
        within = np.arange(len(events)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._subscriptions[np.repeat(starts, counts) + within], events

    def learn(self, subscribers: int) -> None:
        """Try the filters of so many subscribers on the whole pool. Those of others are tried when they appear."""
        index = Index(compiled=False)  # compiled, it is ready for the first event later than this is for the last
        for subscriber in range(subscribers):
            for place, filter in enumerate(self.filters_of(subscriber)):
                index.add(self.subscription(subscriber, place), filter)
        found, ends = index.numbers_many(self.pool)
        self._subscriptions = np.asarray(found, np.int64)
        self._ends = np.concatenate(([0], np.asarray(ends, np.int64)))
        self._known = subscribers
