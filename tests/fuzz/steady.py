"""Clients that behave, on brokers that are fuzzed: each of their events arrives where it must, once and in order."""

import asyncio
from contextlib import AsyncExitStack
from itertools import count

import mercast

TYPE = "steady.tick"
PATIENCE = 60.0
"""Seconds for all to arrive, on a busy machine."""

_PACE, _LOOK = 0.005, 0.02


class Steady:
    """A publisher and a subscriber at each broker. `everywhere`: events must also arrive at the other brokers."""

    def __init__(self, brokers, everywhere):
        self._brokers, self._everywhere = brokers, everywhere
        self._ends = AsyncExitStack()
        self._published = dict.fromkeys(brokers, 0)
        self._arrived = {(by, at): [] for by in brokers for at in brokers}
        self._going = asyncio.Event()
        self._idle = {}
        self._tasks = []
        self._visits = count(1)

    async def __aenter__(self):
        async with AsyncExitStack() as ends:
            for id, broker in self._brokers.items():
                subscriber = await ends.enter_async_context(mercast.connect(broker.client, name="steady-subscriber"))
                self._tasks.append(asyncio.create_task(self._receive(id, await subscriber.subscribe(TYPE))))
            for id, broker in self._brokers.items():
                publisher = await ends.enter_async_context(mercast.connect(broker.client, name="steady-publisher"))
                await publisher.advertise(TYPE)
                self._idle[id] = asyncio.Event()
                self._tasks.append(asyncio.create_task(self._publish(id, publisher)))
            self._ends = ends.pop_all()
        self.go_on()
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._ends.aclose()

    def go_on(self):
        self._going.set()

    @property
    def published(self):
        return sum(self._published.values())

    async def _publish(self, id, client):
        while True:
            if not self._going.is_set():
                self._idle[id].set()
                await self._going.wait()
            self._idle[id].clear()
            await client.publish(TYPE, {"by": id, "n": self._published[id]})
            self._published[id] += 1
            await asyncio.sleep(_PACE)

    async def _receive(self, id, subscription):
        async for event in subscription:
            self._arrived[event.attributes["by"], id].append(event.attributes["n"])

    async def problems(self):
        """Once all that was published should have arrived; publishing stops for that."""
        self._going.clear()
        try:
            async with asyncio.timeout(PATIENCE):
                for idle in self._idle.values():
                    await self._unless_failed(idle.wait())
                while not all(
                    len(self._arrived[way]) >= self._published[way[0]] for way in self._arrived if self._due(way)
                ):
                    await self._unless_failed(asyncio.sleep(_LOOK))
        except TimeoutError:
            pass  # what is missing is told below
        except mercast.MercastError as error:
            return [f"a client that behaves is told: {error}"]
        found = []
        for (by, at), arrived in self._arrived.items():
            due = range(self._published[by])
            missing = sorted(set(due) - set(arrived)) if self._due((by, at)) else []
            if missing:
                found.append(f"{len(missing)} events from broker {by} to {at} are missing, the first is {missing[0]}")
            elif self._due((by, at)) and arrived != list(due):
                found.append(f"events from broker {by} to {at} are out of order or doubled")
            elif len(set(arrived)) < len(arrived):
                found.append(f"events from broker {by} to {at} are doubled")
        return found

    def _due(self, way):
        return self._everywhere or way[0] == way[1]

    async def _unless_failed(self, waiting):
        """Or else what a client's task has failed with."""
        waiting = asyncio.ensure_future(waiting)
        await asyncio.wait([waiting, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done():
                waiting.cancel()
                task.result()
                raise mercast.MercastError("a subscription has ended")
        await waiting

    async def visit(self):
        """A newcomer at each broker is served too; what is wrong, if anything."""
        for id, broker in self._brokers.items():
            type = f"visit.{next(self._visits)}"
            try:
                async with asyncio.timeout(PATIENCE), mercast.connect(broker.client, name="visitor") as client:
                    events = await client.subscribe(type, settled=False)
                    await client.advertise(type, settled=False)
                    await client.publish(type, {"n": 1})
                    await events.get(PATIENCE)
            except (mercast.MercastError, TimeoutError) as error:
                return [f"a newcomer at broker {id} is not served: {error!r}"]
        return []
