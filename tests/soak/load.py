"""Publishers and subscribers, spread over the brokers."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from time import monotonic, monotonic_ns

from soak.ledger import Ledger

import mercast
from mercast.client.aio import Client, Subscription
from mercast.client.errors import MercastError
from mercast.content import Value
from mercast.workloads import Stock

TYPE = "stock.quote"

_FILTERS = 10
"""Of each subscriber."""

_QUOTES = 1_000
"""Different ones, published again and again: each is tried on all filters once."""

_PACE = 0.01
"""Seconds from one batch of a publisher to the next."""

_MOST = 500
"""Events in a batch, when a publisher has fallen behind."""

_NUMBER = 8
"""Bytes of an event's number, which is its payload."""

_LOOK = 0.05
_QUIET = 1.0
"""Seconds without a delivery after which nothing more is waited for."""


class Load:
    """`async with Load(…) as load`: connected and settled; `publish` until `stop`."""

    def __init__(
        self, homes: Sequence[str], publish_at: Sequence[str], subscribers: int, rate: float, seed: int
    ) -> None:
        stock, self._rng = Stock(), random.Random(seed)
        self._filters = [stock.filter(self._rng) for _ in range(_FILTERS * subscribers)]
        self._quotes: list[Mapping[str, Value]] = [stock.event(self._rng) for _ in range(_QUOTES)]
        self.ledger = Ledger(self._quotes, self._filters)
        self._homes = [homes[number % len(homes)] for number in range(subscribers)]
        self._publish_at = publish_at
        self._rate = rate / len(publish_at)
        self._stopped = asyncio.Event()
        self._ends = AsyncExitStack()
        self.subscribers: list[Client] = []
        self.publishers: list[Client] = []
        self._subscriptions: list[Subscription] = []

    async def __aenter__(self) -> "Load":
        async with AsyncExitStack() as ends:
            for home in self._homes:
                client = await ends.enter_async_context(mercast.connect(home, name="subscriber"))
                self.subscribers.append(client)
            asked = (self.subscribers[at // _FILTERS].subscribe(TYPE, str(one)) for at, one in enumerate(self._filters))
            self._subscriptions = await asyncio.gather(*asked)
            for home in self._publish_at:
                client = await ends.enter_async_context(mercast.connect(home, name="publisher"))
                self.publishers.append(client)
                await client.advertise(TYPE)
            self._ends = ends.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ends.aclose()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        """Publish and receive until stopped, and then receive what is still on its way."""
        async with asyncio.TaskGroup() as receiving:
            for number, subscription in enumerate(self._subscriptions):
                receiving.create_task(self._receive(number, subscription))
            async with asyncio.TaskGroup() as publishing:
                for client in self.publishers:
                    publishing.create_task(self._publish(client))
            await self._all_arrived()
            for subscription in self._subscriptions:
                subscription.end()

    def settled_away_from(self, broker: int) -> bool:
        """Whether every subscriber has a broker other than that one, and the overlay knows of its filters."""
        placed = all(client.broker not in (None, broker) for client in self.subscribers)
        return placed and all(one.missing is not None for one in self._subscriptions)

    async def _receive(self, number: int, subscription: Subscription) -> None:
        deliver = self.ledger.deliver
        async for event in subscription:
            deliver(int.from_bytes(event.payload), number, monotonic_ns())

    async def _publish(self, client: Client) -> None:
        began, sent = monotonic(), 0
        while not self._stopped.is_set():
            await asyncio.sleep(_PACE)
            count = min(int(self._rate * (monotonic() - began)) - sent, _MOST)
            if count > 0:
                sent += count
                await self._publish_some(client, count)

    async def _publish_some(self, client: Client, count: int) -> None:
        chosen, now = [self._rng.randrange(_QUOTES) for _ in range(count)], monotonic_ns()
        numbers = [self.ledger.publish(quote, now) for quote in chosen]
        events = [
            (TYPE, self._quotes[quote], number.to_bytes(_NUMBER)) for quote, number in zip(chosen, numbers, strict=True)
        ]
        for number, receipt in zip(numbers, await client.publish_many(events), strict=True):
            if isinstance(receipt, MercastError):
                self.ledger.not_accepted(number)

    async def _all_arrived(self) -> None:
        before, quiet_since = self.ledger.delivered, monotonic()
        while self.ledger.delivered < self.ledger.due and monotonic() - quiet_since < _QUIET:
            await asyncio.sleep(_LOOK)
            if self.ledger.delivered > before:
                before, quiet_since = self.ledger.delivered, monotonic()


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
