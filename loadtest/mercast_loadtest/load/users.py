"""Locust's users: a publisher and a subscriber, on the blocking client. gevent makes greenlets of the client's threads.

`shared` is set on the classes when a test starts. A broker that is lost ends nobody: the client finds another one by
itself; users note when that was, so that what fell around it can be told apart.
"""

import logging
from collections import deque
from contextlib import suppress
from itertools import groupby
from time import monotonic, perf_counter, time_ns
from typing import ClassVar

import gevent
from gevent import Greenlet
from locust import User, task

from mercast import blocking
from mercast.client.errors import MercastError
from mercast.client.event import Receipt
from mercast_loadtest.load.facts import STAMP
from mercast_loadtest.load.run import Run
from mercast_loadtest.load.statistics import CONNECT, METHOD, PUBLISH, SUBSCRIBE, failed

_PACE = 0.01
"""Seconds from one batch of a publisher to the next."""
_MOST = 1_000
"""Events in a batch, when a publisher has fallen behind; what is more is not made up for."""
_WATCH = 0.25
"""Seconds between a subscriber's looks at its connection."""
_AGAIN = 1.0
"""Seconds before another attempt."""
_STANDS = 2.0
"""With churn, how long a subscription stands, in times the patience: only the first part of it can be counted."""

logging.getLogger("mercast.client").setLevel(logging.ERROR)  # what happens to connections is noted and told here


class _Client(User):
    abstract = True
    shared: ClassVar[Run]
    client: blocking.Client

    def connect(self, number: int, name: str) -> None:
        """However long it takes."""
        while True:
            began = perf_counter()
            try:
                self.client = blocking.connect(self.shared.brokers(number), name=name)
            except MercastError as error:
                failed(self.environment.stats, CONNECT, str(error))
                gevent.sleep(_AGAIN)
            else:
                self.tell(CONNECT, began)
                self.id = self.client.id
                return

    def tell(self, name: str, began: float) -> None:
        """A request that is rare, and so may cost something."""
        took = (perf_counter() - began) * 1e3
        self.environment.events.request.fire(
            request_type=METHOD, name=name, response_time=took, response_length=0, exception=None, context={}
        )

    def on_stop(self) -> None:
        if hasattr(self, "client"):
            with suppress(MercastError):
                self.client.close()


class Publisher(_Client):
    def on_start(self) -> None:
        run = self.shared
        self._number = run.number("publisher")
        self._noting = run.publisher(self._number)
        self.connect(self._number, "load-publisher")
        while True:
            try:
                self._advertised = self.client.advertise(run.plan.type)
                break
            except MercastError as error:
                failed(self.environment.stats, "advertise", str(error))
                gevent.sleep(_AGAIN)
        self._sent, self._credit, self._last = 0, 0.0, monotonic()
        self._noting.ready()

    @task
    def publish(self) -> None:
        """What is due since the last time."""
        gevent.sleep(_PACE)
        now = monotonic()
        self._credit = min(self._credit + self.shared.share * (now - self._last), _MOST)
        self._last = now
        if self.shared.rate == 0:
            self._credit = 0.0
        self._look()
        count = int(self._credit)
        if count and not self._noting.is_lost:
            self._credit -= count
            self._publish(count)

    def _look(self) -> None:
        """Is it connected as it was, and known to all brokers? Until then its events would find nobody."""
        if self.client.id != self.id or self._advertised.missing is None:
            self._noting.lost()
            if self.client.id is not None and self._advertised.missing is not None:
                self.id = self.client.id
                self._noting.back()

    def _publish(self, count: int) -> None:
        run, number, first = self.shared, self._number, self._sent
        self._sent += count
        pool, type_, size = run.plan.pool, run.plan.type, len(run.plan.pool)
        place, step = run.plan.place(number, first), run.plan.place(0, 1)
        now, pack, tag = time_ns(), STAMP.pack, run.tag
        events = []
        for sequence in range(first, first + count):
            events.append((type_, pool[place], pack(tag, number, sequence, now)))
            place = (place + step) % size
        outcomes: list[Receipt | MercastError] | None = None
        began = perf_counter()
        run.facts.open += 1
        try:
            outcomes = self.client.publish_many(events)
        except MercastError as error:
            failed(self.environment.stats, PUBLISH, type(error).__name__, count)
        finally:  # who is stopped here does not know what became of them
            run.facts.open -= 1
            self._note(first, count, now, round((perf_counter() - began) * 1e9), outcomes)

    def _note(self, first: int, count: int, now: int, took: int, outcomes: list[Receipt | MercastError] | None) -> None:
        published = self.shared.facts.published
        if outcomes is None:
            published(self._number, first, count, now, took, False)
            return
        for kind, some in groupby(outcomes, type):
            many, accepted = len(list(some)), kind is Receipt
            published(self._number, first, many, now, took, accepted)
            first += many
            if not accepted:
                failed(self.environment.stats, PUBLISH, kind.__name__, many)


class Subscriber(_Client):
    def on_start(self) -> None:
        run = self.shared
        self._number = run.number("subscriber")
        self._noting = run.subscriber(self._number)
        self._filters = [str(filter) for filter in run.plan.filters_of(self._number)]
        self._standing: dict[int, blocking.Subscription] = {}
        self._readers: dict[int, Greenlet] = {}
        self._settled: set[int] = set()
        """Places whose subscription is noted as settled."""
        self.connect(self._number, "load-subscriber")
        first = len(self._filters) // 2 if run.churns else len(self._filters)
        self._waiting = deque(range(first, len(self._filters)))
        for place in range(first):
            self._subscribe(place)
        self._turn = monotonic()
        self._noting.ready()

    def on_stop(self) -> None:
        gevent.killall(list(getattr(self, "_readers", {}).values()), block=False)
        super().on_stop()

    @task
    def watch(self) -> None:
        gevent.sleep(_WATCH)
        self._look()
        if self._waiting and self.shared.rate and not self._noting.is_lost:
            every = _STANDS * self.shared.patience / len(self._standing)
            if monotonic() >= self._turn + every:
                self._turn = monotonic()
                self._change()

    def _subscribe(self, place: int) -> None:
        began = perf_counter()
        while True:
            try:
                subscription = self.client.subscribe(self.shared.plan.type, self._filters[place])
                break
            except MercastError as error:
                failed(self.environment.stats, SUBSCRIBE, str(error))
                gevent.sleep(_AGAIN)
        self.tell(SUBSCRIBE, began)
        self._standing[place] = subscription
        self._readers[place] = gevent.spawn(self._read, place, subscription)
        self._note_settled(place, True)

    def _read(self, place: int, subscription: blocking.Subscription) -> None:
        facts, number = self.shared.facts, self.shared.plan.subscription(self._number, place)
        stamps, subscriptions, times = facts.stamps, facts.subscriptions, facts.times
        with suppress(MercastError):  # it has ended: `_look` sees that
            for event in subscription:
                if len(event.payload) == STAMP.size:
                    if event.subscriptions[0] is subscription:
                        facts.copies += 1
                    stamps.extend(event.payload)
                    subscriptions.append(number)
                    times.append(time_ns())
                else:
                    facts.strangers += 1

    def _look(self) -> None:
        """Is it connected as it was, and does all of it stand?"""
        unsettled = {place for place, one in self._standing.items() if one.missing is None or one.over}
        if self.client.id == self.id and not unsettled:
            return
        self._noting.lost()
        for place in list(self._settled):
            self._note_settled(place, False)
        for place in unsettled:
            if self._standing[place].over:  # the client could not keep up, or the new broker refuses it
                failed(self.environment.stats, SUBSCRIBE, "a subscription has ended: this process reads too slowly")
                self._readers.pop(place).kill(block=False)
                self._subscribe(place)
                self._note_settled(place, False)
        if self.client.id is not None and all(one.missing is not None for one in self._standing.values()):
            self.id = self.client.id
            for place in self._standing:
                self._note_settled(place, True)
            self._noting.back()

    def _change(self) -> None:
        """The subscription that has stood longest goes, another one comes."""
        place = next(iter(self._standing))
        self._note_settled(place, False)
        subscription = self._standing.pop(place)
        with suppress(MercastError):
            subscription.cancel()  # its reader takes what has come, and ends
        self._waiting.append(place)
        self._subscribe(self._waiting.popleft())

    def _note_settled(self, place: int, settled: bool) -> None:
        (self._settled.add if settled else self._settled.discard)(place)
        number = self.shared.plan.subscription(self._number, place)
        self.shared.facts.change("settled" if settled else "taken back", number, time_ns())


class Crowd(Subscriber):
    """Comes later, all at once. Numbered on from the subscribers."""

    fixed_count = 0
