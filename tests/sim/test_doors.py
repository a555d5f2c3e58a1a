"""What clients may say, and what becomes of it, at the door of every core."""

from dataclasses import replace

import pytest

from mercast.content import Advertisement, Declaration, Event, EventId, Filter
from mercast.content.errors import ContentError
from mercast.content.event import check_event
from mercast.limits import DEFAULTS, Limits
from mercast.overlay.channel import NO_STREAM
from mercast.overlay.split import CARRY, pack
from mercast.protocol.effects import Answer, Send, Settled
from mercast.protocol.messages import Carried, Complete, Control, Forward, Local, Packet, Put, Record
from mercast.protocol.stimuli import (
    Advertise,
    Batch,
    Declare,
    Leave,
    Publish,
    Received,
    Subscribe,
    Tick,
    Unadvertise,
    Unsubscribe,
)
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.costs import Given
from mercast.sim.simulator import Simulator
from mercast.wire.door import MOST_CROSSED, check_message
from mercast.wire.events import decode_packet, encode_packet


def answers(core, stimulus):
    return [effect for effect in core.handle(0.0, stimulus) if isinstance(effect, Answer)]


@pytest.mark.parametrize(
    "stimulus",
    [
        Subscribe("s", 1, "", Filter()),
        Subscribe("s", 1, 5, Filter()),
        Subscribe("s", 1, "q" * 1000, Filter()),
        Advertise("s", 1, ["q"], Filter()),
        Publish("s", 1, ["q"], {}, 0),
        Publish("s", 0, "q", {}, 0),
        Publish("s", 2**32, "q", {}, 0),
        Publish("s", -5, "q", {}, 0),
    ],
)
def test_what_is_no_name_or_number_is_refused(stimulus):
    [answer] = answers(DDBR(1, 1), stimulus)
    assert answer.refused


ASKED = [
    Advertise("c", 1, "quote", Filter()),
    Subscribe("c", 2, "quote", Filter()),
    Declare("c", 3, Declaration("quote")),
    Unsubscribe("c", 4, 2),
    Unadvertise("c", 5, 1),
]


def test_every_request_is_answered_under_its_own_number():
    core = DDBR(1, 1)
    assert answers(core, Batch(tuple(ASKED))) == [Answer("c", number) for number in range(1, 6)]
    refused = answers(core, Batch(tuple(asked._replace(request=-asked.request) for asked in ASKED)))
    assert [answer[:2] for answer in refused] == [("c", -number) for number in range(1, 6)]
    assert all("number requests upwards from 1" in answer.refused for answer in refused)


@pytest.mark.parametrize("crossed", [MOST_CROSSED - 1, MOST_CROSSED])
def test_an_edge_passes_on_nothing_that_the_next_one_would_refuse(crossed):
    """A peer has made up where an advertisement has been, and an event."""
    clusters, further = tuple(range(1000, 1000 + crossed)), crossed < MOST_CROSSED
    edge = MERC(100, 1, Settings(clusters=(1, 2)))
    records = [Record(peer, 1, 1, (cluster,), ((100, 1),)) for peer, cluster in ((10, 1), (20, 2))]
    edge.begin_with(0.0, {10: 1}, records[:1], ({20: 1}, records[1:]))
    put = Put(Carried((77, Local("p", 1)), clusters), Advertisement("quote"))
    told = edge.handle(0.1, Received(10, (Control(10, 100, 0, (1, 1), 1, (Complete(), put), NO_STREAM, 0, ()),)))
    brought = [item for message in _of(told, Control) for item in message.items if isinstance(item, Put)]
    assert [item.key.crossed for item in brought] == [(*clusters, 1)] * further
    for message in _of(told, Control):
        check_message(message)

    homes = {10: (1,), 20: (2,), 100: (1, 2)}
    simulator = Simulator(lambda broker, incarnation: MERC(broker, incarnation, Settings(clusters=homes[broker])))
    asked = [(10, Advertise("p", 1, "quote", Filter())), (20, Subscribe("s", 1, None, Filter()))]
    converge(simulator, [(10, 100), (20, 100)], asked)
    packet = Packet(Event(EventId(78, 1, 1), "quote", {}, 0, "p"), False, clusters)
    forward = Forward(pack((CARRY | 100,)), 1, (packet,))
    sent = simulator.brokers[100].handle(simulator.now, Received(10, (forward,)))
    carried = [packet for message in _of(sent, Forward) for packet in message.packets]
    assert [decode_packet(encode_packet(one)).crossed for one in carried] == [(*clusters, 1)] * further


def _of(effects, kind):
    sent = (message for effect in effects if isinstance(effect, Send) for message in effect.messages)
    return [message for message in sent if isinstance(message, kind)]


def test_a_publish_does_not_replace_an_advertisement():
    core = DDBR(1, 1)
    core.handle(0.0, Publish("c", 7, "a", {}, 0))
    [answer] = answers(core, Publish("c", 7, "b", {}, 0))
    assert "each once" in answer.refused


def test_what_a_caller_changes_afterwards_changes_nothing_here():
    simulator = Simulator(DDBR, seed=1)
    simulator.build([(0, 1)])
    simulator.run(5)
    simulator.do(0, Advertise("p", 1, "quote", Filter()))
    simulator.do(1, Subscribe("s", 1, "quote", Filter.parse("x = 1")))
    simulator.run(8)
    attributes, declared = {"x": 1}, {}
    simulator.do(0, Publish("p", 2, "quote", attributes, 0))
    attributes["x"] = 2
    simulator.run(9)
    assert [delivery.event.attributes for delivery in simulator.deliveries] == [{"x": 1}]
    simulator.do(0, Declare("p", 3, Declaration("other", None, declared)))
    declared["y"] = None
    simulator.do(0, Declare("p", 4, Declaration("other", None, {})))
    assert not simulator.answers[0, "p", 4].refused


def test_other_limits_leave_no_trace():
    event = Event(EventId(1, 1, 1), "q" * 300, {}, 0, "p")
    check_event(event, Limits(name_length=1000))
    with pytest.raises(ContentError, match="300 characters"):
        check_event(event)


def test_what_a_paused_broker_missed_comes_before_what_follows():
    simulator = Simulator(DDBR, seed=1)
    simulator.start(1)
    simulator.pause(1)
    simulator.do(1, Subscribe("s", 1, "quote", Filter()))
    simulator.resume(1)
    assert simulator.brokers[1].clients.subscriptions


def test_events_that_travel_together_cost_as_much_as_alone():
    busy = []
    for stimuli in (
        [Batch(tuple(Publish("p", 2 + k, "quote", {}, 0) for k in range(50)))],
        [Publish("p", 2 + k, "quote", {}, 0) for k in range(50)],
    ):
        simulator = Simulator(DDBR, seed=1, cost=Given(0.0, 1e-6))
        simulator.build([(0, 1)])
        simulator.run(5)
        simulator.do(0, Advertise("p", 1, "quote", Filter()))
        simulator.do(1, Subscribe("s", 1, "quote", Filter()))
        simulator.run(7.99)
        before = simulator.busy[0]
        for stimulus in stimuli:
            simulator.do(0, stimulus)
        simulator.run(8.4)
        busy.append(round(1e6 * (simulator.busy[0] - before)))
    assert busy[0] == busy[1] >= 50


def test_a_client_has_only_so_many_advertisements_and_subscriptions(monkeypatch):
    few = replace(DEFAULTS, subscriptions=2, advertisements=2)
    monkeypatch.setattr("mercast.routing.clients.DEFAULTS", few)
    core = DDBR(1, 1)
    for number in (1, 2):
        core.handle(0.0, Subscribe("c", number, "a", Filter()))
    core.handle(0.0, Advertise("c", 3, "a", Filter()))
    core.handle(0.0, Publish("c", 4, "b", {}, 0))  # which advertises b
    for stimulus, what in (
        (Subscribe("c", 5, "a", Filter()), "subscriptions"),
        (Advertise("c", 5, "a", Filter()), "advertisements"),
        (Publish("c", 5, "d", {}, 0), "advertisements"),
    ):
        [answer] = answers(core, stimulus)
        assert answer.refused == f"'c' has 2 {what}, and may have no more: take some back"
    assert answers(core, Subscribe("other", 1, "a", Filter())) == [Answer("other", 1)]
    core.handle(0.0, Unsubscribe("c", 6, 1))
    assert answers(core, Subscribe("c", 7, "a", Filter())) == [Answer("c", 7)]
    assert not answers(core, Publish("c", 8, "b", {}, 0))


def test_a_client_has_only_so_many_bytes_of_both_together():
    core, numbers = DDBR(1, 1), ", ".join(map(str, range(8_000)))
    for number in range(1, 30):
        kind = (Subscribe, Advertise)[number % 2]
        [answer] = answers(core, kind("c", number, "a", Filter.parse(f"n IN ({numbers}, {number})")))
        if answer.refused:
            break
    _, _, used = core.clients.most_of_one()
    assert 10 < number < 20
    assert f"the subscriptions and advertisements of 'c' take {used} bytes, and this one would take 2" in answer.refused
    assert f"they may take {DEFAULTS.client_bytes} together: take some back" in answer.refused
    assert answers(core, Subscribe("c", 40, "a", Filter())) == [Answer("c", 40)]
    assert answers(core, Subscribe("other", 1, "a", Filter.parse(f"n IN ({numbers})"))) == [Answer("other", 1)]
    core.handle(0.0, Unsubscribe("c", 41, 2))
    assert answers(core, Subscribe("c", 42, "a", Filter.parse(f"n IN ({numbers})"))) == [Answer("c", 42)]
    core.handle(0.0, Leave("c"))
    core.handle(0.0, Leave("other"))
    assert core.clients.most_of_one() == (0, 0, 0)


def test_numbers_of_publishes_are_checked_where_the_type_is_advertised_too():
    core = DDBR(1, 1)
    core.handle(0.0, Advertise("c", 1, "q", Filter()))
    for number in (-1, 0, 2**32):
        [answer] = answers(core, Publish("c", number, "q", {}, 0))
        assert answer.refused == f"there is no request {number}: number requests upwards from 1 to {2**32 - 1}"


def test_in_a_batch_too_a_number_is_free_once_nothing_is_left_of_its_request():
    again = [Subscribe("c", 1, "q", Filter()), Unsubscribe("c", 2, 1), Subscribe("c", 1, "q", Filter())]
    assert answers(DDBR(1, 1), Batch(tuple(again))) == [Answer("c", 1), Answer("c", 2), Answer("c", 1)]


def settled(effects):
    return [effect for effect in effects if isinstance(effect, Settled)]


def test_what_settled_before_a_client_left_is_not_taken_for_what_it_asks_for_after():
    simulator = Simulator(lambda *who: DDBR(*who, Settings(settle_within=1.0)))
    simulator.build([(0, 1)])
    simulator.run(5)
    simulator.do(0, Advertise("p", 1, "q", Filter()))
    simulator.run(8)
    here, again = simulator.brokers[1], Subscribe("c", 1, "q", Filter())
    assert settled(here.handle(8.0, Batch((Subscribe("c", 1, "none", Filter()), Leave("c"), again)))) == [
        Settled("c", 1)
    ]
    assert settled(here.handle(9.0, Tick())) == [Settled("c", 1, (0,))]


def test_who_waits_for_a_broker_that_is_given_up_is_told_once():
    simulator = Simulator(lambda *who: DDBR(*who, Settings(settle_within=3.0)))
    simulator.build([(0, 1)])
    simulator.run(5)
    simulator.brokers[1].handle(5.0, Advertise("p", 1, "q", Filter()))
    assert settled(simulator.brokers[1].handle(20.0, Tick())) == [Settled("p", 1)]
