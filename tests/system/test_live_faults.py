"""A broker is killed, and returns; another is stopped by its operator; a subscriber stops reading."""

import asyncio
import os
import signal
import socket
from contextlib import AsyncExitStack, suppress

import pytest
from live import PATIENCE, Mesh, agree, ask, metrics, until
from under_load import AROUND

import mercast
from mercast.client.errors import Unacknowledged
from mercast.wire import requests
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame
from mercast.wire.hello import VERSIONS, hello

RING = [(1, 2), (2, 3), (3, 4), (4, 1)]
QUEUE = 256 * 1024


async def so(condition, what):
    """As `until`, beside the event loop."""
    await asyncio.to_thread(until, condition, what)


def but(mesh, *ids):
    return [broker for broker in mesh.brokers.values() if broker.id not in ids]


async def taken(stream, count):
    return [(await stream.get(PATIENCE)).attributes["n"] for _ in range(count)]


def nothing_more(stream):
    return stream.take() is None


async def found_by(publisher, type, destinations):
    """Publish until so many destinations are found: the last receipt."""
    async with asyncio.timeout(PATIENCE):
        while (await publisher.publish(type)).destinations != destinations:
            await asyncio.sleep(0)


class Flow:
    """Events from one client without a pause."""

    def __init__(self, client, type):
        self.client, self.type = client, type
        self.count = 0
        self._over = False

    async def __aenter__(self):
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_):
        self._over = True
        await self._task

    async def _run(self):
        while not self._over:
            await self.client.publish(self.type, {"n": self.count})
            self.count += 1


@pytest.mark.slow
def test_a_broker_is_killed_and_returns():
    with Mesh(4, RING, audit=AROUND) as mesh:
        asyncio.run(killed(mesh))


async def killed(mesh):
    async with AsyncExitStack() as ends:

        async def at(id):
            return await ends.enter_async_context(mercast.connect(mesh[id].client))

        publisher, third, fourth, orphan, orphaned = [await at(id) for id in (1, 3, 4, 2, 2)]
        streams = [await one.subscribe("tick") for one in (third, fourth)]
        lost_home = await orphan.subscribe("tick"), await orphan.subscribe("probe")
        await orphaned.publish("tick", {"n": -1})
        for stream in (*streams, lost_home[0]):
            assert await taken(stream, 1) == [-1]

        # Broker 2 dies with publishes unanswered, while events flow past it.
        async with Flow(publisher, "tick") as flow:
            os.kill(mesh[2].pid, signal.SIGSTOP)
            unanswered = asyncio.gather(
                orphaned.publish_many([("tick", {"n": -2}), ("tick", {"n": -3})]),
                orphaned.publish("tick", {"n": -4}),
                return_exceptions=True,
            )
            await asyncio.sleep(0)
            mesh.kill(2)
            outcomes = await unanswered
            assert [type(one) for one in (*outcomes[0], outcomes[1])] == [Unacknowledged] * 3
            assert "is not resent" in str(outcomes[1])
            await asyncio.to_thread(agree, but(mesh, 2))

        # Lost at most what was on its way between the fault and the change of routes; the end has come, in order.
        first = flow.count
        for n in range(first, first + 50):
            assert (await publisher.publish("tick", {"n": n})).destinations >= 2
        for stream in streams:
            got = await taken(stream, 1)
            while got[-1] != first + 49:
                got += await taken(stream, 1)
            assert got == sorted(set(got))
            assert got[-50:] == list(range(first, first + 50))

        # Its clients are elsewhere by themselves, with their subscriptions.
        await found_by(publisher, "probe", 1)
        assert orphan.broker in (1, 3, 4)
        await so(lambda: orphaned.broker in (1, 3, 4), "the publisher has found another broker")
        while lost_home[0].take() is not None:
            pass
        await publisher.publish("tick", {"n": -5})
        await orphaned.publish("tick", {"n": -6})
        for stream in (*streams, lost_home[0]):
            assert sorted(await taken(stream, 2)) == [-6, -5]

        # It returns, and takes part again.
        await asyncio.to_thread(mesh.start, 2)
        await asyncio.to_thread(mesh.wait_ready, 2)
        await asyncio.to_thread(agree, mesh.brokers.values())
        newcomer = await at(2)
        assert newcomer.broker == 2
        at_home = await newcomer.subscribe("tick")
        await publisher.publish("tick", {"n": -7})
        await newcomer.publish("tick", {"n": -8})
        for stream in (*streams, lost_home[0], at_home):
            assert sorted(await taken(stream, 2)) == [-8, -7]
            assert nothing_more(stream)


def test_sigterm_moves_clients_without_a_gap():
    with Mesh(3, audit={}) as mesh:
        asyncio.run(moved(mesh))
        assert ask(mesh[1], "readyz")["ready"]


async def moved(mesh):
    async with AsyncExitStack() as ends:
        publisher = await ends.enter_async_context(mercast.connect(mesh[1].client))
        movers = [await ends.enter_async_context(mercast.connect(mesh[3].client)) for _ in range(5)]
        streams = [await mover.subscribe("tick") for mover in movers]
        process = mesh[3].process
        async with Flow(publisher, "tick") as flow:
            await so(lambda: flow.count > 10, "traffic")
            process.send_signal(signal.SIGTERM)
            await so(lambda: all(mover.broker in (1, 2) for mover in movers), "all clients are elsewhere")
            assert await asyncio.to_thread(process.wait, PATIENCE) == 0
            moved_at = flow.count
            await so(lambda: flow.count > moved_at + 10, "traffic")
        for stream in streams:
            # On the move, what comes by the new broker may be ahead of what is still on its way by the old one.
            assert sorted(await taken(stream, flow.count)) == list(range(flow.count))
            assert nothing_more(stream)
        for mover in movers:  # what is published by them is taken elsewhere, too
            assert (await mover.publish("tick", {"n": 0})).destinations >= 1


def test_sigterm_without_other_brokers_does_not_wait():
    with Mesh(1, options=["--drain-seconds", "1000"]) as mesh, mercast.blocking.connect(mesh[1].client):
        mesh[1].process.send_signal(signal.SIGTERM)
        assert mesh[1].process.wait(PATIENCE) == 0


def test_what_waits_for_a_late_reader_is_sent_before_the_broker_stops():
    """Though it goes on talking, and there is no other broker."""
    with Mesh(1, options=["--drain-seconds", "1000"]) as mesh, socket.socket() as late:
        host, port = mesh[1].client.split(":")
        late.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        late.connect((host, int(port)))
        late.settimeout(PATIENCE)
        late.sendall(hello(mercast=VERSIONS, role="client") + requests.subscribe(1, "big", "", True))
        framing, frames = Framing(FRAME_BYTES), []
        while Kind.SETTLED not in [kind for kind, _ in frames]:
            frames += framing.feed(late.recv(65536))
        with mercast.blocking.connect(mesh[1].client) as publisher:
            receipts = publisher.publish_many([("big", {"n": n}, bytes(100_000)) for n in range(70)])
            assert {one.destinations for one in receipts} == {1}
            mesh[1].process.send_signal(signal.SIGTERM)
            until(lambda: '"draining"' in mesh[1].tail(), "draining")
            frames.clear()
            while data := late.recv(1 << 20):
                frames += framing.feed(data)
                with suppress(OSError):
                    late.sendall(frame(Kind.PING, b"x"))
        kinds = [kind for kind, _ in frames]
        assert kinds.count(Kind.EVENT) == 70
        assert kinds[-1] == Kind.ERROR
        late.close()
        assert mesh[1].process.wait(PATIENCE) == 0


def test_sigint_does_not_wait_for_clients():
    with Mesh(2, options=["--drain-seconds", "1000"]) as mesh, mercast.blocking.connect(mesh[1].client):
        mesh[1].process.send_signal(signal.SIGINT)
        assert mesh[1].process.wait(PATIENCE) == 0


def test_a_slow_subscriber_is_cut_off_and_counted():
    with Mesh(2, options=["--client-queue-bytes", str(QUEUE)]) as mesh:
        host, port = mesh[2].client.split(":")
        with socket.socket() as slow, mercast.blocking.connect(mesh[1].client) as publisher:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((host, int(port)))
            slow.sendall(hello(mercast=VERSIONS, role="client") + requests.subscribe(1, "big", "", True))
            framing, kinds = Framing(FRAME_BYTES), []
            while Kind.SETTLED not in kinds:  # and then it reads no more
                kinds += [kind for kind, _ in framing.feed(slow.recv(65536))]
            with mercast.blocking.connect(mesh[2].client) as neighbour:
                events = neighbour.subscribe("big")
                sent = 0
                while not metrics(mesh[2])["mercast_slow_clients_total"]:
                    publisher.publish("big", {"n": sent}, bytes(64 * 1024))
                    assert events.get(PATIENCE).attributes["n"] == sent
                    sent += 1
                assert metrics(mesh[2])["mercast_slow_clients_total"] == 1
                until(lambda: metrics(mesh[2])["mercast_clients"] == 1, "only the neighbour is left")
                until(lambda: ask(mesh[2], "tables")["counts"]["subscriptions"] == 1, "only its subscription is left")
                publisher.publish("big", {"n": sent})
                assert events.get(PATIENCE).attributes["n"] == sent
            with suppress(ConnectionError):  # or the plain end
                while slow.recv(65536):
                    pass
