"""A broker that leaves: it stays until its neighbours have what it was to send them, as long as there is time."""

import asyncio

import pytest

from mercast.broker import draining as draining_module
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.draining import Draining
from mercast.broker.links import LINKING, Link
from mercast.broker.overlay import Overlay
from mercast.content import Event, EventId
from mercast.protocol.messages import Forward, Packet
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame


class Network:
    """Keeps what is written until it is taken."""

    def __init__(self):
        self.waiting, self.framing, self.kinds = 0, Framing(FRAME_BYTES), []

    def write(self, data):
        self.waiting += len(data)
        self.kinds += [kind for kind, _ in self.framing.feed(data)]

    def get_write_buffer_size(self):
        return self.waiting

    def is_closing(self):
        return False

    def set_write_buffer_limits(self, high): ...

    def get_extra_info(self, _): ...


async def draining(seconds):
    """A link that takes nothing for now, with an event that waits for it, and the task that drains."""
    broker = Broker(BrokerConfig(id=1, matcher="scan", drain_seconds=seconds))
    link, network = Link(Overlay(broker, 0, "here:1", "here:2"), LINKING), Network()
    link.connection_made(network)
    link.neighbour = 2
    link._framing.limit = FRAME_BYTES
    broker.links[2] = link
    link.pause_writing()
    link.send([Forward(b"\x02\x00", 1, (Packet(Event(EventId(1, 1, 1), "quote", {}, 0, "p")),))])
    return link, network, asyncio.create_task(Draining(broker, set()).run())


@pytest.fixture(autouse=True)
def _look_in_every_turn(monkeypatch):
    monkeypatch.setattr(draining_module, "_LOOK", 0)


async def turns(times=20):
    for _ in range(times):
        await asyncio.sleep(0)


def test_a_broker_stays_until_neighbours_have_everything():
    async def story():
        link, network, task = await draining(1000)
        await turns()
        assert network.kinds == [Kind.HELLO]
        network.waiting = 0
        link.resume_writing()
        await turns()
        assert network.kinds == [Kind.HELLO, Kind.FORWARD]  # not taken yet
        assert not task.done()
        network.waiting = 0
        while network.kinds[-1] != Kind.PING:
            await asyncio.sleep(0)
        await turns()
        assert not task.done()
        link.data_received(frame(Kind.PONG, b"last"))
        await task
        assert network.kinds.count(Kind.PING) == 1

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.parametrize("seconds", [0, 0.1])
def test_it_does_not_stay_for_longer_than_it_may(seconds):
    async def story():
        _, network, task = await draining(seconds)
        await task
        assert network.kinds == [Kind.HELLO]

    asyncio.run(asyncio.wait_for(story(), 30))
