"""Clients that come and go: each visit has a type of its own, subscribes, advertises, publishes, and takes it all back.

What was published arrives once, wherever brokers are restarted meanwhile; only the kill of one excuses what is missing.
"""

import asyncio
import random
from itertools import count

from soak.load import TYPE

import mercast
from mercast.workloads import Stock

EVENTS = 20
PATIENCE = 10.0
"""Seconds for what was published to arrive."""

_PACE = 0.05
_STEP = 0.1
"""Seconds between two connections of one who passes by."""


class Visitors:
    """`disturbed(since)` says whether a broker was killed since then."""

    def __init__(self, homes, at_once, disturbed, seed):
        self._homes, self._at_once, self._disturbed = homes, at_once, disturbed
        self._rng, self._stock = random.Random(seed), Stock()
        self._numbers = count(1)
        self._stopped = asyncio.Event()
        self.visits = self.excused = self.events = 0
        self.problems = []

    def stop(self):
        self._stopped.set()

    async def run(self):
        async with asyncio.TaskGroup() as visiting:
            for _ in range(self._at_once):
                visiting.create_task(self._come_and_go())

    async def _come_and_go(self):
        loop = asyncio.get_running_loop()
        while not self._stopped.is_set():
            number, began, arrived = next(self._numbers), loop.time(), []
            try:
                await self._visit(f"visit.{number}", arrived)
                missing = EVENTS - len(set(arrived))
                trouble = f"{missing} of {EVENTS} events are missing" if missing else ""
            except (mercast.MercastError, TimeoutError) as error:
                trouble = repr(error)
            self.visits += 1
            self.events += len(arrived)
            if len(set(arrived)) < len(arrived):
                self.problems.append(f"visitor {number}: events arrived twice")
            if trouble and self._disturbed(began):
                self.excused += 1
            elif trouble:
                self.problems.append(f"visitor {number}: {trouble}")

    async def _visit(self, type, arrived):
        async with self._connect() as subscriber, self._connect() as publisher:
            events = await subscriber.subscribe(type, "n >= 0")
            quotes = await subscriber.subscribe(TYPE, str(self._stock.filter(self._rng)), settled=False)
            advertisement = await publisher.advertise(type, "n >= 0")
            for n in range(EVENTS):
                await publisher.publish(type, {"n": n})
                await asyncio.sleep(_PACE)
            try:
                while len(set(arrived)) < EVENTS:
                    arrived.append((await events.get(PATIENCE)).attributes["n"])
            except TimeoutError:
                return  # what is missing is counted
            for handle in (quotes, advertisement, events):
                await handle.cancel()

    def _connect(self):
        """To any of the brokers; to another, if that one is not there."""
        homes = self._rng.sample(self._homes, len(self._homes))
        return mercast.connect(homes, name="visitor")


class Passers:
    """Clients that come, say who they are and leave, tens in a second: what each leaves behind adds up."""

    def __init__(self, homes, at_once):
        self._homes, self._at_once = homes, at_once
        self._stopped = asyncio.Event()
        self.passed = 0
        self.problems = []

    def stop(self):
        self._stopped.set()

    async def run(self):
        async with asyncio.TaskGroup() as passing:
            for number in range(self._at_once):
                passing.create_task(self._pass_by(self._homes[number % len(self._homes)]))

    async def _pass_by(self, home):
        while not self._stopped.is_set():
            try:
                async with mercast.connect(home, name="passer"):
                    self.passed += 1
            except (mercast.MercastError, TimeoutError) as error:
                self.problems.append(f"who passes by {home}: {error!r}")
                return
            await asyncio.sleep(_STEP)
