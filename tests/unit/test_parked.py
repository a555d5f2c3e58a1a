"""Events that wait for a route: bounded in number and size, given up one by one, the oldest first."""

from mercast.content import Event, EventId
from mercast.limits import Limits
from mercast.protocol.messages import Forward, Packet
from mercast.routing.parked import Parked


def forward(first, count, payload=b""):
    events = [Event(EventId(1, 1, first + k), "quote", {}, 0, "p", payload=payload) for k in range(count)]
    return Forward(b"\2\0", 1, tuple(map(Packet, events)))


def sequences(forwards):
    return [packet.event.id.sequence for one in forwards for packet in one.packets]


def test_of_events_that_came_together_only_as_many_are_given_up_as_must_be():
    parked = Parked(Limits(parked=10))
    assert sequences(parked.add(1.0, forward(0, 10))) == []
    assert sequences(parked.add(2.0, forward(10, 3))) == [0, 1, 2]
    assert len(parked) == 10
    assert sequences(parked.add(3.0, forward(20, 12))) == [*range(3, 13), 20, 21]


def test_their_size_is_bounded_too():
    parked = Parked(Limits(parked_bytes=1000))
    assert sequences(parked.add(1.0, forward(0, 4, b"x" * 300))) == [0]
    assert sequences(parked.add(1.0, forward(4, 1, b"x" * 2000))) == [1, 2, 3, 4]
    assert len(parked) == 0


def test_each_waits_its_time():
    parked = Parked(Limits())
    parked.add(1.0, forward(0, 2))
    parked.add(2.0, forward(2, 1))
    assert parked.next_deadline() == 1.0
    assert sequences(parked.due(1.5)) == [0, 1]
    assert [(until, sequences([one])) for until, one in parked.take()] == [(2.0, [2])]
    assert parked.next_deadline() == float("inf")
