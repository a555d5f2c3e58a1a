"""Events that wait for a route: bounded in number and size, given up one by one, the oldest first."""

from mercast.content import Event, EventId
from mercast.limits import DEFAULTS, Limits
from mercast.overlay.channel import Patience
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import pack
from mercast.protocol.effects import Send, Tap
from mercast.protocol.messages import Forward, Packet, Record, Update
from mercast.protocol.rows import Dropped
from mercast.protocol.stimuli import LinkUp, Received, Tick
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.parked import Parked
from mercast.routing.settings import Settings


def forward(first, count, payload=b""):
    events = [Event(EventId(1, 1, first + k), "quote", {}, 0, "p", payload=payload) for k in range(count)]
    return Forward(b"\2\0", 1, tuple(map(Packet, events)))


def sequences(forwards):
    return [packet.event.id.sequence for one in forwards for packet in one.packets]


def test_of_events_that_came_together_only_as_many_are_given_up_as_must_be():
    parked = Parked(Limits(parked=10))
    assert sequences(parked.add(1.0, 0, forward(0, 10))) == []
    assert sequences(parked.add(2.0, 0, forward(10, 3))) == [0, 1, 2]
    assert len(parked) == 10
    assert sequences(parked.add(3.0, 0, forward(20, 12))) == [*range(3, 13), 20, 21]


def test_their_size_is_bounded_too():
    parked = Parked(Limits(parked_bytes=1000))
    assert sequences(parked.add(1.0, 0, forward(0, 4, b"x" * 300))) == [0]
    assert sequences(parked.add(1.0, 0, forward(4, 1, b"x" * 2000))) == [1, 2, 3, 4]
    assert len(parked) == 0


def test_each_waits_its_time():
    parked = Parked(Limits())
    parked.add(1.0, 0, forward(0, 2))
    parked.add(2.0, 0, forward(2, 1))
    assert parked.next_deadline() == 1.0
    assert sequences(parked.due(1.5)) == [0, 1]
    assert [(until, sequences([one])) for until, _, one in parked.take()] == [(2.0, [2])]
    assert parked.next_deadline() == float("inf")


def broker():
    """Broker 1, whose only neighbour is 2."""
    core = DDBR(1, 1, Settings(Timing(heart_beat=1_000.0), patience=Patience(resend_after=1_000.0), sampling=0))
    core.begin_with(0.0, {2: 1}, [Record(2, 1, 1, (0,), ((1, 1),))])
    return core


def for_three(sequence):
    event = Event(EventId(2, 1, sequence), "quote", {}, 0, "p")
    return Received(2, (Forward(pack([3]), 1, (Packet(event, traced=True),), "a note", True),))


def forwards(effects):
    sent = [
        (effect.neighbour, message) for effect in effects if isinstance(effect, Send) for message in effect.messages
    ]
    return [(neighbour, message) for neighbour, message in sent if isinstance(message, Forward)]


def dropped(effects):
    rows = [row for effect in effects if isinstance(effect, Tap) for row in effect.rows]
    return [(row.event.sequence, row.why) for row in rows if isinstance(row, Dropped)]


def test_what_waited_goes_on_as_it_came():
    core, arrival = broker(), for_three(1)
    assert forwards(core.handle(0.0, arrival)) == []
    news = Update(b"", 0, (Record(2, 1, 2, (0,), ((1, 1), (3, 1))), Record(3, 1, 1, (0,), ((2, 1),))))
    [forward] = arrival.messages
    assert forwards(core.handle(1.0, Received(2, (news,)))) == [(2, forward._replace(hops=2))]
    assert dropped(core.handle(9.0, Tick())) == []


def test_a_broker_drops_the_oldest_when_too_many_wait():
    core = broker()
    core.handle(0.0, for_three(1))
    events = [Event(EventId(2, 1, 2 + n), "quote", {}, 0, "p") for n in range(DEFAULTS.parked)]
    many = Forward(pack([3]), 1, tuple(map(Packet, events)))
    assert dropped(core.handle(1.0, Received(2, (many,)))) == [(1, "no route")]


def test_trying_in_vain_makes_nobody_wait_longer():
    core = broker()
    core.handle(0.0, for_three(1))
    core.handle(2.0, LinkUp(4, 1))  # tries, and waits on
    core.handle(3.0, for_three(2))
    assert core.next_deadline() == 5.0
    assert dropped(core.handle(4.9, Tick())) == []
    assert dropped(core.handle(5.0, Tick())) == [(1, "no route")]
    assert dropped(core.handle(7.9, Tick())) == []
    assert dropped(core.handle(8.0, Tick())) == [(2, "no route")]
