"""Every strategy delivers exactly what brute force says, while clients and subscriptions come and go."""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from live import PATIENCE, Mesh, metrics

import mercast
from mercast.content import Filter
from mercast.routing.strategies import STRATEGIES

LINKS = [(1, 2), (2, 3), (3, 4), (4, 1), (4, 5)]
"""Two equal ways across the ring, and one broker behind it."""

SEED, ROUNDS, CLIENTS, EVENTS = 7, 5, 9, 60

KINDS = {"a": "int", "b": "float", "s": "string", "ok": "bool"}
MARK = b"mark"
LINEAGE = {"animal": {"animal"}, "cat": {"cat", "animal"}, "plant": {"plant"}}
"""A cat is an animal; plants are not declared."""


def some_filter(rng):
    """Text of the filter language, of any shape."""
    leaves = [
        f"a {rng.choice(['<', '<=', '=', '<>', '>', '>='])} {rng.randint(0, 9)}",
        f"b BETWEEN {rng.randint(0, 5)} AND {rng.randint(4, 9)}.5",
        f"s IN ('x', '{rng.choice('yz')}')",
        f"s LIKE '{rng.choice(['x%', '%y', '_', 'z'])}'",
        f"a IS {rng.choice(['', 'NOT '])}NULL",
        "ok",
    ]
    first, second = rng.sample(leaves, 2)
    return rng.choice(["", first, first, f"{first} AND {second}", f"{first} OR NOT ({second})"])


def some_attributes(rng):
    values = {
        "a": rng.randint(0, 9),
        "b": rng.uniform(0, 9),
        "s": rng.choice(["x", "xy", "y", "z"]),
        "ok": rng.random() < 0.5,
    }
    return {name: value for name, value in values.items() if rng.random() < 0.8}


class Asked:
    """A subscription, and what brute force knows of it."""

    def __init__(self, client, type, where, echo):
        self.client, self.type, self.where, self.echo = client, type, where, echo
        self._filter = Filter.parse(where) if where else Filter()
        self.stream = None
        self.got = []

    def wants(self, event):
        of_type = self.type is None or self.type in LINEAGE[event.type]
        return of_type and self._filter.matches(event.attributes) and (self.echo or event.by is not self.client)

    def drain(self):
        """The events that have come since the last time."""
        new = []
        while (event := self.stream.take()) is not None:
            if event.payload != MARK:
                new.append(int(event.payload))
        self.got += new
        return new


class Sent:
    def __init__(self, number, by, type, attributes):
        self.number, self.by, self.type, self.attributes = number, by, type, attributes


class Story:
    def __init__(self, mesh, strategy, seed, across=False):
        """Across clusters, events keep their order from the moment that a subscription is settled."""
        self.mesh, self.strategy, self.rng, self.across = mesh, strategy, random.Random(seed), across
        self.clients, self.publishers, self.asked = [], [], []
        self.marks = {}
        self.sent = []

    async def run(self):
        async with AsyncExitStack() as self.ends:
            await self.tell()

    async def tell(self):
        self.publishers = [await self.connect(id) for id in (1, 3, 5)]
        await self.publishers[0].declare("animal", KINDS)
        await self.publishers[0].declare("cat", {}, "animal")
        for _ in range(ROUNDS):
            await self.change()
            await self.see_a_mark_of_everybody()
            self.look_at(self.unsettled)
            before = self.delivered()
            settled = await self.publish_all(EVENTS)
            await self.see_a_mark_of_everybody()
            due = self.look_at(settled, exactly=True)
            assert self.delivered() - before == len(due) + len(LINEAGE) * len(self.clients) ** 2

    # -- what happens ------------------------------------------------------------------------------------------------

    async def change(self):
        """Clients and subscriptions come and go while events are published."""
        leaving = [one for one in self.clients[len(self.publishers) :] if self.rng.random() < 0.3]
        for client in leaving:
            self.clients.remove(client)
        ended = [one for one in self.asked if one.client not in leaving and self.rng.random() < 0.3]
        self.asked = [one for one in self.asked if one.client not in leaving and one not in ended]
        coming = [self.come() for _ in range(CLIENTS - len(self.clients))]
        more = [self.subscribe(self.rng.choice(self.clients)) for _ in range(CLIENTS)]
        changes = [*(one.close() for one in leaving), *(one.stream.cancel() for one in ended), *coming, *more]
        self.rng.shuffle(changes)
        *_, self.unsettled = await asyncio.gather(*changes, self.publish_all(EVENTS))

    async def come(self):
        client = await self.connect(self.rng.choice(list(self.mesh.brokers)))
        for _ in range(self.rng.randint(1, 3)):
            await self.subscribe(client)

    async def connect(self, id):
        client = await self.ends.enter_async_context(mercast.connect(self.mesh[id].client))
        self.marks[client] = await client.subscribe(None, "a = -1")
        self.clients.append(client)
        return client

    async def subscribe(self, client):
        type = self.rng.choice([None, *LINEAGE])
        asked = Asked(client, type, some_filter(self.rng), self.rng.random() < 0.7)
        asked.stream = await client.subscribe(type, asked.where, echo=asked.echo)
        self.asked.append(asked)

    async def publish_all(self, count):
        by = list(dict.fromkeys([*self.publishers, *self.rng.sample(self.clients, 2)]))
        events = []
        for _ in range(count):
            type, attributes = self.rng.choice(list(LINEAGE)), some_attributes(self.rng)
            events.append(Sent(len(self.sent), self.rng.choice(by), type, attributes))
            self.sent.append(events[-1])
        await asyncio.gather(*(self.publish_in_order(one, [sent for sent in events if sent.by is one]) for one in by))
        return events

    async def publish_in_order(self, by, events):
        for event in events:
            receipt = await by.publish(event.type, event.attributes, b"%d" % event.number)
            assert receipt.destinations <= len(self.mesh.brokers)

    # -- what must hold ------------------------------------------------------------------------------------------------

    async def see_a_mark_of_everybody(self):
        """Events of a publisher and type arrive in order: who has the marks has all that was published before."""
        marks = [(client, type) for client in self.clients for type in LINEAGE]
        await asyncio.gather(*(client.publish(type, {"a": -1}, MARK) for client, type in marks))
        for client in self.clients:
            seen = [await self.marks[client].get(PATIENCE) for _ in marks]
            assert len({(mark.id.broker, mark.publisher, mark.type) for mark in seen}) == len(marks)

    def look_at(self, events, exactly=False):
        """Compare what came with what was wanted; the copies that were due, as (client, event)."""
        due = set()
        for one in self.asked:
            new, wanted = one.drain(), [event.number for event in events if one.wants(event)]
            assert set(new) <= set(wanted), f"undue: {one.type} {one.where}"
            assert sorted(new) == wanted or not exactly, f"not what is due: {one.type} {one.where}"
            assert len(one.got) == len(set(one.got)), "twice"
            for of_one in self.in_order_of(new if self.across else one.got).values():
                assert of_one == sorted(of_one) or (self.across and not exactly), "out of order"
            due |= {(one.client, number) for number in wanted}
        return due

    def in_order_of(self, numbers):
        """By publisher; at rendezvous by type too, since each type has its own meeting place."""
        by_type = self.strategy == "static-hash"
        found = {}
        for event in map(self.sent.__getitem__, numbers):
            found.setdefault((event.by, by_type and event.type), []).append(event.number)
        return found

    def delivered(self):
        return sum(metrics(broker)["mercast_events_delivered_total"] for broker in self.mesh.brokers.values())


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_brute_force_says(strategy):
    with Mesh(5, LINKS, strategy=strategy, matcher="index", audit={}) as mesh:
        asyncio.run(Story(mesh, strategy, SEED).run())


@pytest.mark.slow
def test_what_brute_force_says_of_several_clusters():
    with Mesh(2, clusters=3, edges=2, strategy="merc", matcher="index", audit={}) as mesh:
        asyncio.run(Story(mesh, "merc", SEED, across=True).run())
