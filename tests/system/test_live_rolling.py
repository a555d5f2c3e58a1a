"""Every broker of a mesh is restarted, one after the other, under load: nothing is lost, nothing doubled."""

import asyncio
import signal

import pytest
from live import PATIENCE, Mesh, agree, until

import mercast
from mercast.overlay.construct import neighbours

RING = [(1, 2), (2, 3), (3, 4), (4, 1)]
CLIENTS = 4
PACE = 0.002
"""Seconds between two events of a publisher: all through the restarts there are some on every way."""


class Publisher:
    """Publishes again and again, and keeps account."""

    def __init__(self, client, number):
        self.client, self.number, self.count = client, number, 0
        self.over = False

    async def run(self):
        while not self.over:
            await self.client.publish("tick", {"by": self.number, "n": self.count})
            self.count += 1
            await asyncio.sleep(PACE)


class Subscriber:
    def __init__(self, stream):
        self.stream, self.got = stream, []

    async def run(self):
        async for event in self.stream:
            self.got.append((event.attributes["by"], event.attributes["n"]))


@pytest.mark.slow
def test_a_rolling_restart_loses_nothing_and_doubles_nothing():
    with Mesh(4, RING, audit={}) as mesh:
        asyncio.run(rolled(mesh))


@pytest.mark.slow
def test_neighbours_of_those_who_leave_link_up_before_they_are_gone():
    """On a thin ring, two that leave right after each other would cut it in two."""
    ring = [1]
    while len(ring) < 6:
        ring.append(min(neighbours(set(range(1, 7)), ring[-1], 2) - set(ring)))
    with Mesh(6, None, each=lambda _: ["--degree", 2], audit={}) as mesh:
        asyncio.run(rolled(mesh, [[ring[1], ring[3]], [ring[4]]]))


async def rolled(mesh, groups=None):
    """One broker after the other, or all of a group with nobody started in between."""
    async with asyncio.timeout(3 * PATIENCE), mercast.connect(mesh[1].client) as first:
        clients = [first, *[await mercast.connect(mesh[2 + number % 3].client) for number in range(2 * CLIENTS - 1)]]
        subscribers = [Subscriber(await client.subscribe("tick")) for client in clients[:CLIENTS]]
        reading = [asyncio.create_task(subscriber.run()) for subscriber in subscribers]
        publishers = [Publisher(client, number) for number, client in enumerate(clients[CLIENTS:])]
        for publisher in publishers:
            await publisher.client.advertise("tick")
        work = [asyncio.create_task(publisher.run()) for publisher in publishers]
        for group in groups or [[id] for id in mesh.brokers]:
            for id in group:
                await moving(publishers)
                process = mesh[id].process
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, PATIENCE) == 0
            await moving(publishers)
            for id in group:
                await asyncio.to_thread(mesh.start, id)
            for id in group:
                await asyncio.to_thread(mesh.wait_ready, id)
            await asyncio.to_thread(agree, mesh.brokers.values())
        for publisher in publishers:
            publisher.over = True
        await asyncio.gather(*work)
        due = sorted((publisher.number, n) for publisher in publishers for n in range(publisher.count))
        for subscriber in subscribers:
            await asyncio.to_thread(until, lambda one=subscriber: len(one.got) >= len(due), lambda: len(due))
        for client in clients[1:]:
            await client.close()
        await first.close()
        await asyncio.gather(*reading, return_exceptions=True)
        for subscriber in subscribers:
            assert sorted(subscriber.got) == due


async def moving(publishers):
    """Wait until all of them have got on."""
    so_far = [publisher.count for publisher in publishers]
    ahead = lambda: all(publisher.count > before + 20 for publisher, before in zip(publishers, so_far, strict=True))  # noqa: E731
    await asyncio.to_thread(until, ahead, "all publishers get on")
