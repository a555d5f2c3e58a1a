"""A connection between brokers, with a stand-in for the network: who does not read is cut off."""

import asyncio

import pytest

from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.links import LINKING, Link
from mercast.broker.overlay import Overlay
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.messages import Forward

QUEUE = 64 * 1024
BEAT = Timing().heart_beat * Timing().misses


class Network:
    """Takes what is written, but not further."""

    def __init__(self):
        self.waiting, self.aborted = 0, False
        self.full_at, self.full = float("inf"), None

    def write(self, data):
        self.waiting += len(data)
        if self.waiting > self.full_at:
            self.full()

    def get_write_buffer_size(self):
        return self.waiting

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.aborted

    def set_write_buffer_limits(self, high): ...

    def get_extra_info(self, _): ...


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


async def linked():
    """A link to broker 2, and what is below it; the broker's publishers are told to wait by `pressed`."""
    broker = Broker(BrokerConfig(id=1, link_queue_bytes=QUEUE))
    link = Link(Overlay(broker, "here:1", "here:2"), LINKING)
    network = Network()
    link.connection_made(network)
    network.waiting = 0
    link.neighbour = 2
    broker.links[2] = link
    return broker, link, network


def test_a_link_with_twice_its_queue_unread_is_cut_off(loop):
    async def story():
        broker, link, network = await linked()
        for size in (QUEUE, QUEUE):
            link.out.append(bytes(size))
            link.flush()
        assert not network.aborted
        link.out.append(b"x")
        link.flush()
        assert network.aborted
        assert broker.counters.denied == {"slow": 1}

    loop.run_until_complete(story())


def test_a_link_that_takes_nothing_for_too_long_is_cut_off_and_a_slow_one_is_not(loop, monkeypatch):
    async def story():
        broker, link, network = await linked()
        looks = []
        monkeypatch.setattr(
            asyncio.get_running_loop(), "call_later", lambda seconds, look: looks.append((seconds, look))
        )
        link.out.append(bytes(QUEUE))
        link.flush()
        link.pause_writing()
        assert broker.pressed
        network.waiting -= 1
        for taken in (1, 0):
            [(seconds, look)] = looks
            assert seconds == BEAT
            looks.clear()
            look()
            assert network.aborted == (not taken)
        assert broker.counters.denied == {"slow": 1}

    loop.run_until_complete(story())


def test_events_wait_while_the_network_takes_no_more_and_are_handed_back_if_the_link_goes(loop):
    async def story():
        _, link, network = await linked()
        events = [Forward(b"\x02\x00", 1, ()), Forward(b"\x02\x00", 2, ()), Forward(b"\x02\x00", 3, ())]
        link.pause_writing()
        for number, event in enumerate(events):
            link.forward(event, bytes([number]) * 10)
        link.out.append(b"control")
        link.flush()
        assert (network.waiting, link.queued) == (len(b"control"), len(b"control") + 30)
        network.full_at = network.waiting + 15
        network.full = link.pause_writing
        link.resume_writing()
        assert network.waiting == len(b"control") + 20
        assert link.unsent() == (events[2],)
        assert link.queued == network.waiting

    loop.run_until_complete(story())


def test_publishers_go_on_when_a_full_link_is_given_up(loop):
    async def story():
        broker, link, network = await linked()
        link.pause_writing()
        assert broker.pressed
        link.host.unlink(2, "silent for too long")
        assert network.aborted
        assert not broker.pressed
        link.connection_lost(None)
        assert not broker.pressed

    loop.run_until_complete(story())


def test_a_caller_that_is_no_link_holds_nobody_up(loop):
    async def story():
        broker, link, _ = await linked()
        caller = Link(link.host)
        caller.connection_made(Network())
        caller.neighbour = 2
        caller.pause_writing()
        assert not broker.pressed

    loop.run_until_complete(story())


def test_only_so_many_may_call(loop):
    async def story():
        overlay = Overlay(Broker(BrokerConfig(id=1, max_peers=1)), "here:1", "here:2")
        networks = []
        for _ in range(2):
            networks.append(Told())
            Link(overlay).connection_made(networks[-1])
        assert b'"full"' not in networks[0].said
        assert b'"full"' in networks[1].said

    loop.run_until_complete(story())


class Told(Network):
    said = b""

    def write(self, data):
        self.said += data

    def close(self):
        self.aborted = True
