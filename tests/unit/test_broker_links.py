"""A connection between brokers, with a stand-in for the network: what waits, what is dropped, who is cut off."""

import asyncio
from unittest.mock import Mock

import pytest

from mercast.broker import overlay as overlay_module
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.links import ASKING, LINKING, Link
from mercast.broker.overlay import Overlay
from mercast.content.event import Event, EventId
from mercast.membership.members import Member
from mercast.overlay.construct import neighbours
from mercast.overlay.linkstate import LinkState
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.topology import MOST_COST
from mercast.protocol.effects import Send
from mercast.protocol.messages import Complete, Control, Forward, HeartBeat, Packet, Record
from mercast.protocol.stimuli import LinkDown, LinkUp
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame
from mercast.wire.hello import VERSIONS, hello
from mercast.wire.peers import encode_message

QUEUE = FRAME_BYTES
AHEAD = 256 * 1024
BEAT = Timing().heart_beat * Timing().misses
EVENT_BYTES = 1_000_000


class Network:
    """Takes what is written, and says when that is much; how much of it has left is up to the test."""

    def __init__(self):
        self.written, self.left, self.aborted = b"", 0, False
        self.high, self.paused, self.link = 0, False, None

    def write(self, data):
        self.written += data
        if not self.paused and self.get_write_buffer_size() > self.high:
            self.paused = True
            self.link.pause_writing()

    def takes(self, size):
        """So many bytes leave."""
        self.left += min(size, self.get_write_buffer_size())
        if self.paused and self.get_write_buffer_size() <= self.high / 4:
            self.paused = False
            self.link.resume_writing()

    def get_write_buffer_size(self):
        return len(self.written) - self.left

    @property
    def said(self):
        """Since the link came up."""
        return [kind for kind, _ in Framing(FRAME_BYTES).feed(self.written)]

    def abort(self):
        self.aborted = True

    close = abort

    def is_closing(self):
        return self.aborted

    def set_write_buffer_limits(self, high):
        self.high = high

    def get_extra_info(self, _): ...


class Reader:
    """A client, as far as it is read or not."""

    def __init__(self):
        self.held = False

    def hold(self, _why, on):
        self.held = on


@pytest.fixture
def loop(monkeypatch):
    monkeypatch.setattr(overlay_module, "_LOOK", 0)
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def told(test):
    """A test that is a story on a loop of its own."""

    def run(loop):
        loop.run_until_complete(test())

    run.__name__ = test.__name__
    return run


async def some_turns():
    for _ in range(20):
        await asyncio.sleep(0)


async def linked():
    """A link to broker 2, and what is below it."""
    broker = Broker(BrokerConfig(id=1, link_queue_bytes=QUEUE))
    link = Link(Overlay(broker, 0, "here:1", "here:2"), LINKING)
    network = Network()
    network.link = link
    link.connection_made(network)
    network.takes(len(network.written))
    link._deadline.cancel()
    link.neighbour = 2
    broker.links[2] = link
    return broker, link, network


def events(first, count, size=EVENT_BYTES, publisher="client.1"):
    """On their way to broker 2."""
    return Forward(
        b"\x02\x00",
        1,
        tuple(
            Packet(Event(EventId(1, 1, number), "big", {}, 0, publisher, payload=bytes(size)))
            for number in range(first, first + count)
        ),
    )


def numbers(forwards):
    return [packet.event.id.sequence for forward in forwards for packet in forward.packets]


def beat(sent, echo=None):
    return HeartBeat(b"digest", sent, echo)


CONTROL = Control(1, 2, 0, (1, 1), 1, (Complete(),), (0, 0), 0, ())


# -- how much waits --------------------------------------------------------------------------------------------------


@told
async def test_a_burst_waits_then_is_dropped_and_counted_and_never_cuts_the_link():
    broker, link, network = await linked()
    link.send([events(1, 100)])
    most = QUEUE // EVENT_BYTES
    assert network.get_write_buffer_size() < AHEAD + EVENT_BYTES + 100
    assert link.queued <= QUEUE
    assert broker.core.dropped == {"link queue full": 100 - most}
    while link.queued:
        network.takes(AHEAD)
    assert broker.counters.forwarded == most
    assert not network.aborted
    assert broker.counters.denied == {}


@told
async def test_control_is_written_where_events_are_dropped():
    broker, link, network = await linked()
    link.send([events(1, 10)])
    dropped, said = broker.core.dropped["link queue full"], len(network.said)
    broker._send(Send(2, (events(11, 1), CONTROL)))
    assert broker.core.dropped["link queue full"] == dropped + 1
    assert network.said[said:] == [Kind.MESSAGE]


@told
async def test_events_and_control_keep_their_order_while_there_is_room():
    _, link, network = await linked()
    before = len(network.said)
    link.send([events(1, 1, 10), CONTROL, events(2, 1, 10)])
    assert network.said[before:] == [Kind.FORWARD, Kind.MESSAGE, Kind.FORWARD]


@told
async def test_only_control_that_is_not_read_cuts_a_link_off():
    broker, link, network = await linked()
    link.send([events(1, 10)])
    while network.get_write_buffer_size() <= 2 * QUEUE:
        assert not network.aborted
        link.out.append(bytes(EVENT_BYTES))
        link.flush()
    assert network.aborted
    assert broker.counters.denied == {"slow": 1}


@told
async def test_who_publishes_for_a_full_link_waits_and_nobody_else():
    broker, link, network = await linked()
    one, other = broker.sessions["client.1"], broker.sessions["client.2"] = Reader(), Reader()
    broker._send(Send(2, (events(1, 1),)))
    assert not one.held
    broker._send(Send(2, (events(2, 2),)))
    assert one.held
    assert not other.held
    while link.queued:
        network.takes(AHEAD)
    assert not one.held


@told
async def test_who_publishes_for_two_full_links_waits_for_both():
    broker, link, network = await linked()
    one = broker.sessions["client.1"] = Reader()
    third = broker.links[3] = Link(link.host, LINKING)
    third.neighbour, below = 3, Network()
    below.link = third
    third.connection_made(below)
    for neighbour in (2, 3):
        broker._send(Send(neighbour, (events(1, 3),)))
    link.host.unlink(2, "silent for too long")
    assert network.aborted
    assert one.held
    link.host.unlink(3, "silent for too long")
    assert not one.held


def later(monkeypatch):
    """What is put off: (seconds, what, about)."""
    put_off = []

    def call_later(seconds, what, *about):
        put_off.append((seconds, what, about))
        return Mock()

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    return put_off


def test_nobody_waits_for_long(loop, monkeypatch):
    async def story():
        broker, _, _ = await linked()
        one = broker.sessions["client.1"] = Reader()
        put_off = later(monkeypatch)
        broker._send(Send(2, (events(1, 3),)))
        assert one.held
        [(seconds, let_go, about)] = [one for one in put_off if one[1] == broker.let_go]
        assert seconds == BEAT
        let_go(*about)
        assert not one.held
        broker._send(Send(2, (events(4, 1),)))
        assert one.held

    loop.run_until_complete(story())


def test_a_link_that_takes_nothing_for_too_long_is_cut_off_and_a_slow_one_is_not(loop, monkeypatch):
    """Whether it does, the system knows better than what is still in this process."""

    async def story():
        broker, link, network = await linked()
        unacknowledged = 1000
        monkeypatch.setattr("mercast.broker.links.unacknowledged", lambda _: unacknowledged)
        put_off = later(monkeypatch)
        link.send([events(1, 3)])
        for taken in (1, 0):
            unacknowledged -= taken
            link.send([beat(1.0)])
            seconds, look, about = put_off.pop()
            assert seconds == BEAT
            look(*about)
            assert network.aborted == (not taken)
        assert broker.counters.denied == {"slow": 1}

    loop.run_until_complete(story())


# -- what becomes of it when the link is lost ------------------------------------------------------------------------


@told
async def test_what_has_not_left_goes_another_way_and_what_may_be_lost_is_counted():
    broker, link, network = await linked()
    link.send([events(1, 4)])
    first = len(network.written)
    network.takes(first - 10)  # all of the first but its end, so the second is written
    assert len(network.written) > first
    broker.take = Mock()
    link.connection_lost(None)
    down, unsent = [call.args[0] for call in broker.take.call_args_list]
    assert down == LinkDown(2)
    assert (unsent.neighbour, numbers(unsent.forwards)) == (2, [2, 3, 4])
    assert broker.core.dropped == {"link down": 1}


@told
async def test_what_the_neighbour_has_read_is_not_lost():
    broker, link, network = await linked()
    link.send([events(1, 5, 10), beat(1.0), events(6, 1, 10), beat(2.0), events(7, 2, 10)])
    network.takes(AHEAD)
    link.data_received(encode_message(beat(5.0, echo=1.0)))
    link.data_received(encode_message(beat(6.0)))
    broker.take = Mock()
    link.connection_lost(ConnectionResetError())
    assert [type(call.args[0]) for call in broker.take.call_args_list] == [LinkDown]
    assert broker.core.dropped == {"link down": 3}


@told
async def test_what_had_arrived_when_a_side_hung_up_is_not_counted_as_lost():
    """Of two brokers, one hangs up: both have asked."""
    told = {1: await linked(), 2: await linked()}
    said = dict.fromkeys(told, 0)

    def pass_on():
        for one, (_, link, network) in told.items():
            data, said[one] = network.written[said[one] :], len(network.written)
            network.takes(len(data))
            if data:
                told[3 - one][1].data_received(data)
                link.broker.take = Mock()

    for one, (broker, link, network) in told.items():
        link._framing.limit, said[one], broker.take_all = FRAME_BYTES, len(network.written), Mock()
        link.send([events(1, 3, 10), beat(1.0)])
    leaving = told[1][1]
    for _ in range(4):
        leaving.has_all()
        pass_on()
    assert leaving.has_all()
    told[2][1].send([events(4, 1, 10)])  # that one may be lost
    for broker, link, network in told.values():
        network.takes(AHEAD)
        link.connection_lost(None)
        assert broker.core.dropped == ({} if link is leaving else {"link down": 1})


@told
async def test_under_tls_all_that_the_network_was_given_may_have_left():
    broker, link, _ = await linked()
    link._secured = True
    link.send([events(1, 4)])
    broker.take = Mock()
    link.connection_lost(None)
    assert numbers(broker.take.call_args.args[0].forwards) == [2, 3, 4]
    assert broker.core.dropped == {"link down": 1}


@told
async def test_who_hangs_up_is_written_no_more():
    _, link, network = await linked()
    link.send([events(1, 4)])
    link.eof_received()
    assert network.aborted


# -- the end ---------------------------------------------------------------------------------------------------------


@told
async def test_a_link_that_is_replaced_ends_at_once():
    broker, link, network = await linked()
    broker.calls.add(link)
    another = Link(link.host, LINKING)
    another.neighbour = 2
    link.host.greeted(another, LINKING)
    assert broker.links == {2: another}
    assert network.aborted


@told
async def test_a_link_that_is_no_longer_wanted_ends_once_all_goes_another_way_and_has_arrived():
    broker, link, network = await linked()
    link._framing.limit = FRAME_BYTES
    broker.take(LinkUp(2, 1))
    link.host._rewire()  # nobody else is there, so nobody should be a neighbour
    await some_turns()
    assert broker.core.state.mine.links == ((2, MOST_COST),)
    link.send([events(1, 1, size=10)])
    assert Kind.PING not in network.said
    link.data_received(encode_message(HeartBeat(broker.core.state.digest, broker.now())))
    await some_turns()
    assert Kind.PING not in network.said  # the event has not left yet
    network.takes(EVENT_BYTES)
    await some_turns()
    assert network.said[-1] == Kind.PING
    assert not network.aborted
    link.data_received(frame(Kind.PONG, b"last"))
    await some_turns()
    assert network.aborted
    assert not broker.links
    assert not broker.core.dropped


@told
async def test_the_overlay_is_built_without_members_that_are_about_to_leave():
    """On a ring of five. A link to one that leaves stays until that hangs up."""
    ring = [1]
    while len(ring) < 5:
        ring.append(min(neighbours(set(range(1, 6)), ring[-1], 2) - set(ring)))
    broker, link, _ = await linked()
    broker.config = broker.config.model_copy(update={"degree": 2})
    host = link.host
    link.neighbour, link.incarnation = ring[1], 1
    broker.links = {ring[1]: link}
    host.members.learn([Member(id, f"there:{id}", "", 1) for id in ring[1:]])
    host.members.see(ring[1:], broker.now())
    broker.take(LinkUp(ring[1], 1))
    await some_turns()
    between = zip(ring, ring[1:] + ring[:1], strict=True)
    links = {one: {} for one in ring}
    for one, other in between:
        links[one][other] = links[other][one] = 1
    say = broker.core.state.learn
    say(Record(id, 1, 1, (0,), tuple(links[id].items())) for id in ring[1:])
    assert host._wanted() == {ring[1], ring[4]}
    say([Record(ring[1], 1, 2, (0,), tuple((other, MOST_COST) for other in links[ring[1]]))])
    assert host._wanted() == {ring[1], ring[2], ring[4]}
    broker.links.clear()
    assert host._wanted() == {ring[2], ring[4]}


def test_whether_others_hold_together_without_those_who_leave():
    state = LinkState(1, 1)
    state.set_links({2: 1, 4: 1})
    state.learn([Record(2, 1, 1, (0,), ((1, 1), (3, 1))), Record(3, 1, 1, (0,), ((2, 1), (4, 1)))])
    state.learn([Record(4, 1, 1, (0,), ((1, 1), (3, 1)))])
    assert state.holds_together_without({1})
    assert not state.holds_together_without({1, 3})
    state.learn([Record(2, 1, 2, (0,), ((1, 1), (3, 1), (4, 1)))])
    assert not state.holds_together_without({1, 3})  # one end only
    state.learn([Record(4, 1, 2, (0,), ((1, 1), (2, 1), (3, 1)))])
    assert state.holds_together_without({1, 3})
    assert state.holds_together_without({1, 2, 3, 4})
    assert state.retiring == set()
    state.learn([Record(3, 1, 2, (0,), ((2, MOST_COST), (4, MOST_COST)))])
    assert state.retiring == {3}


@told
async def test_a_link_that_is_wanted_again_stays():
    broker, link, network = await linked()
    broker.take(LinkUp(2, 1))
    link.host._rewire()
    await some_turns()
    assert broker.core.state.mine.links == ((2, MOST_COST),)
    broker.members[0].learn([Member(2, "there:1", "there:2", 1)])
    broker.members[0].see([2], broker.now())
    await some_turns()
    assert (broker.core.state.mine.links, link.host._parting) == (((2, 1),), {})
    assert broker.links == {2: link}
    assert not network.aborted


@told
async def test_a_neighbour_that_asks_whether_it_has_everything_is_answered_behind_what_waits():
    _, link, network = await linked()
    link._framing.limit = FRAME_BYTES
    link.pause_writing()
    link.send([events(1, 1, size=10)])
    link.data_received(frame(Kind.PING, b"last"))
    assert Kind.PONG not in network.said
    link.resume_writing()
    assert network.said[-3:] == [Kind.FORWARD, Kind.PING, Kind.PONG]  # and is asked the same


@told
async def test_a_link_that_is_no_longer_wanted_and_is_lost_is_forgotten():
    broker, link, network = await linked()
    broker.take(LinkUp(2, 1))
    link.host._rewire()
    await some_turns()
    link.connection_lost(None)
    await some_turns()
    assert not link.host._parting
    assert not network.aborted


def test_who_is_hung_up_on_has_some_time_to_read_what_was_said(loop, monkeypatch):
    async def story():
        _, link, network = await linked()
        put_off = later(monkeypatch)
        network.close = Mock()
        link.close()
        network.close.assert_called_once()
        [(_, end, about)] = put_off
        end(*about)
        assert network.aborted

    loop.run_until_complete(story())


@told
async def test_a_caller_that_is_no_link_holds_nobody_up():
    broker, link, _ = await linked()
    caller, network = Link(link.host), Network()
    network.link = caller
    caller.connection_made(network)
    caller.neighbour = 2
    caller.pause_writing()
    assert caller._stuck is None
    caller.resume_writing()
    assert not broker._held_back


def test_only_so_many_may_call(loop):
    async def story():
        overlay = Overlay(Broker(BrokerConfig(id=1, max_peers=1)), 0, "here:1", "here:2")
        networks = []
        for _ in range(2):
            networks.append(Network())
            Link(overlay).connection_made(networks[-1])
        assert b'"full"' not in networks[0].written
        assert b'"full"' in networks[1].written

    loop.run_until_complete(story())


@told
async def test_a_connection_that_ended_unnoticed_is_forgotten_when_it_should_be_refused():
    class Ended(Network):
        def write(self, _):
            raise RuntimeError("the handler is closed")

    broker = Broker(BrokerConfig(id=1))
    caller = Link(Overlay(broker, 0, "here:1", "here:2"))
    caller.connection_made(Ended())
    assert (broker.calls, list(broker.strangers)) == ({caller}, [caller])
    caller.refuse("protocol", "no HELLO")
    assert (broker.calls, list(broker.strangers)) == (set(), [])


class Told(Network):
    said = b""

    def write(self, data):
        self.said += data

    def close(self):
        self.aborted = True


# -- an earlier life of this broker ----------------------------------------------------------------------------------

LIFE, HOUR = 1_700_000_000_000, 3_600_000


def told_of(incarnation, role, said_as=ASKING, own=1):
    """Broker 1 hears from broker 2 that it has had this incarnation: its own now, whom it asks back, what it says."""

    async def story():
        broker = Broker(BrokerConfig(id=1), LIFE)
        broker.now = lambda: LIFE / 1000
        overlay, asked = Overlay(broker, 0, "here:1", "here:2"), []

        async def ask(address, whom):
            asked.append((address, whom))

        overlay._ask = ask
        link, network = Link(overlay, role), Told()
        link.connection_made(network)
        members = [[2, "there:1", "there:2", own], [1, "here:1", "here:2", incarnation]]
        link.data_received(
            hello(
                mercast=VERSIONS, role=said_as, broker=2, incarnation=own, cluster="default", strategy="ddbr",
                peer="there:1", clients="there:2", members=members,
            )
        )  # fmt: skip
        await asyncio.sleep(0)
        overlay.end()
        return broker.core.incarnation, asked, network.said

    return story()


def test_a_broker_that_was_called_is_believed_about_an_earlier_life(loop):
    incarnation, asked, _ = loop.run_until_complete(told_of(LIFE + HOUR, ASKING))
    assert (incarnation, asked) == (LIFE + HOUR + 1, [])


@pytest.mark.parametrize("said_as", [ASKING, LINKING])
def test_a_caller_is_asked_back_about_an_earlier_life(loop, said_as):
    incarnation, asked, _ = loop.run_until_complete(told_of(LIFE + HOUR, None, said_as))
    assert (incarnation, asked) == (LIFE, [("there:1", 2)])


@pytest.mark.parametrize("role", [ASKING, None])
def test_an_earlier_life_far_beyond_the_clock_is_none(loop, role):
    incarnation, asked, _ = loop.run_until_complete(told_of(LIFE + 24 * HOUR * 31, role))
    assert (incarnation, asked) == (LIFE, [])


@pytest.mark.parametrize(
    "wrong", [{"incarnation": 2**63 - 1}, {"incarnation": -1}, {"incarnation": 1, "own": 2**63 - 1}]
)
@pytest.mark.parametrize("role", [ASKING, None])
def test_incarnations_that_nobody_can_have_are_refused(loop, role, wrong):
    incarnation, asked, said = loop.run_until_complete(told_of(role=role, **wrong))
    assert (incarnation, asked) == (LIFE, [])
    assert b"incarnation from 0 to 9223372036854775806" in said


def test_the_incarnation_of_a_hello_is_one(loop):
    async def story():
        link, network = Link(Overlay(Broker(BrokerConfig(id=1)), 0, "here:1", "here:2")), Told()
        link.connection_made(network)
        said = hello(
            mercast=VERSIONS, role=ASKING, broker=2, incarnation=-1, cluster="default", strategy="ddbr", members=[]
        )
        link.data_received(said)
        assert b"incarnations are numbered 0 to 9223372036854775806" in network.said

    loop.run_until_complete(story())
