"""Links move to where the traffic is, and nothing is lost or doubled by it (D-DBR, section III-C)."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from live import PATIENCE, Mesh, ask, linked, until

import mercast

RING = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1)]
FAR = [(1, 4), (2, 5)]
"""Who publishes for whom: three hops on the ring."""

OPTIONS = ["--organise", "carried", "--organise-every", "1", "--degree", "4", "--heart-beat", "0.5", "--misses", "6"]
PACE = 0.005


@pytest.mark.slow
def test_links_move_to_where_the_traffic_is():
    with Mesh(6, RING, options=OPTIONS) as mesh:
        asyncio.run(moved(mesh))
        assert set(FAR) <= linked(mesh[3])
        assert all(len(ask(broker, "overlay")["links"]) <= 4 for broker in mesh.brokers.values())


async def moved(mesh):
    async with AsyncExitStack() as ends:
        streams, work, counts = [], [], [0] * len(FAR)
        moved = asyncio.Event()

        async def publish(number, client):
            while not moved.is_set():
                await client.publish(f"to.{number}", {"n": counts[number]})
                counts[number] += 1
                await asyncio.sleep(PACE)

        for number, (here, there) in enumerate(FAR):
            subscriber = await ends.enter_async_context(mercast.connect(mesh[there].client))
            publisher = await ends.enter_async_context(mercast.connect(mesh[here].client))
            streams.append(await subscriber.subscribe(f"to.{number}"))
            await publisher.advertise(f"to.{number}")
            work.append(asyncio.create_task(publish(number, publisher)))
        await asyncio.to_thread(until, lambda: set(FAR) <= linked(mesh[3]), lambda: linked(mesh[3]), 2 * PATIENCE)
        before = list(counts)
        while not all(now > then + 50 for now, then in zip(counts, before, strict=True)):
            await asyncio.sleep(PACE)
        moved.set()
        await asyncio.gather(*work)
        for stream, count in zip(streams, counts, strict=True):
            came = [(await stream.get(PATIENCE)).attributes["n"] for _ in range(count)]
            assert sorted(came) == list(range(count))  # a shorter path overtakes the old one
            assert stream.take() is None
