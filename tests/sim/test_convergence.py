"""D-DBR in the simulator: convergence by messages, exact delivery, settling."""

import random

import networkx as nx
import pytest

from mercast.content import AttributeType, Declaration, Event, EventId, Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Send, Settled
from mercast.protocol.messages import Forward, Packet, Record, Update
from mercast.protocol.rows import Copied
from mercast.protocol.stimuli import (
    Advertise,
    Declare,
    Leave,
    LinkDown,
    Publish,
    Received,
    Retire,
    Subscribe,
    Unsent,
    Unsubscribe,
)
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.settings import Settings
from mercast.sim.costs import Given
from mercast.sim.links import Clock, Link
from mercast.sim.simulator import Simulator


@pytest.fixture
def overlay():
    simulator = Simulator(lambda broker, incarnation: DDBR(broker, incarnation, Settings(matcher="scan")), seed=1)
    simulator.build(nx.random_regular_graph(3, 10, seed=1).edges)
    simulator.run(5)
    return simulator


def test_views_converge(overlay):
    assert len({core.state.digest for core in overlay.brokers.values()}) == 1
    assert all(core.state.reachable == overlay.brokers.keys() for core in overlay.brokers.values())


def test_a_restarted_broker_has_none_of_the_links_that_it_had(overlay):
    """Else it would be reckoned with, as it was before, by all who hear of its first link before they hear of it."""
    overlay.crash(0)
    overlay.run(6)
    overlay.start(0)
    while overlay.now < 8:
        overlay.run(overlay.now + 0.001)
        assert {core.state[0].incarnation for core in overlay.brokers.values() if 0 in core.state.reachable} == {2}
    assert all(core.state.reachable == overlay.brokers.keys() for core in overlay.brokers.values())


def test_an_event_reaches_exactly_the_matching_subscribers(overlay):
    overlay.do(0, Advertise("p", 1, "quote", Filter()))
    for broker in range(10):
        overlay.do(broker, Subscribe(f"s{broker}", 1, "quote", Filter.parse(f"price > {broker}")))
    overlay.run(8)
    assert len(overlay.settled) == 11
    assert all(not settled.missing for settled in overlay.settled.values())
    overlay.do(0, Publish("p", 2, "quote", {"price": 5}, 0))
    overlay.run(9)
    assert sorted((d.broker, d.client, d.subscriptions) for d in overlay.deliveries) == [
        (broker, f"s{broker}", (1,)) for broker in range(5)
    ]
    assert overlay.receipts[0, "p", 2] == 5


@pytest.mark.parametrize("strategy", [DDBR, FBR])
def test_events_go_around_a_broker_that_is_about_to_stop_but_through_it_if_they_must(strategy):
    simulator = Simulator(lambda *who: strategy(*who, Settings(matcher="scan")), seed=1)
    simulator.build([(0, 1), (1, 2), (2, 3), (3, 0), (1, 4)])
    simulator.run(5)
    simulator.do(0, Advertise("p", 1, "quote", Filter()))
    for broker in (2, 4):
        simulator.do(broker, Subscribe("s", 1, "quote", Filter()))
    simulator.run(8)
    simulator.do(1, Retire())
    began = simulator.now
    simulator.run(10)
    assert simulator.brokers[1].neighbourhood.is_known_since(began)
    simulator.rows.clear()
    simulator.do(0, Publish("p", 2, "quote", {}, 0))
    simulator.run(11)
    assert sorted(delivery.broker for delivery in simulator.deliveries) == [2, 4]
    went = {(row.neighbour, broker) for broker, row in simulator.rows if isinstance(row, Copied)}
    assert went == {(0, 3), (3, 2), (0, 1), (1, 4)}


@pytest.mark.parametrize(("strategy", "elsewhere"), [(DDBR, {3: 1}), (Flooding, {})])
def test_what_a_dead_link_has_not_sent_goes_another_way(strategy, elsewhere):
    simulator = Simulator(lambda *who: strategy(*who, Settings(matcher="scan")), seed=1)
    simulator.build([(0, 1), (1, 2), (2, 3), (3, 0)])
    simulator.run(5)
    core, packet = simulator.brokers[0], Packet(Event(EventId(0, 1, 7), "quote", {}, 0, "p"))
    core.handle(5.0, LinkDown(1))
    effects = core.handle(5.0, Unsent(1, (Forward(pack([2]), 1, (packet,)),)))
    sent = {effect.neighbour: effect.messages for effect in effects if isinstance(effect, Send)}
    assert {neighbour: one.hops for neighbour, (one,) in sent.items()} == elsewhere
    assert core.dropped == ({} if elsewhere else {"link down": 1})


@pytest.mark.parametrize("strategy", [DDBR, MERC])
@pytest.mark.parametrize("seed", range(3))
def test_no_event_goes_in_circles_while_news_of_a_broker_that_returns_is_slow(strategy, seed):
    """Broker 0 hears by others that 1 is linked to 2 before 1 hears it of 2 itself: 1 would send events back."""
    simulator = Simulator(
        lambda *who: strategy(*who, Settings(matcher="scan")),
        seed=seed,
        reconnect_after=0.004,
        lay=lambda *ends: Link(0.5 if ends == (2, 1) else 0.001),
    )
    simulator.build([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    simulator.run(6)
    simulator.do(0, Advertise("p", 1, "quote", Filter()))
    simulator.do(2, Subscribe("s", 1, "quote", Filter()))
    simulator.run(10)
    simulator.crash(1)
    simulator.run(16)
    simulator.start(1)
    for number in range(300):
        simulator.run(simulator.now + 0.003)
        simulator.do(0, Publish("p", 2 + number, "quote", {"n": number}, 0))
    simulator.run(20)
    assert sorted(delivery.event.attributes["n"] for delivery in simulator.deliveries) == list(range(300))
    assert not any(core.dropped for core in simulator.brokers.values())


def test_a_crash_behind_a_cut_is_found_by_silence():
    simulator = Simulator(DDBR)
    simulator.build([(0, 1)])
    simulator.run(5)
    simulator.set_cut(1, 0, True)
    simulator.crash(1)
    simulator.run(5.5)
    assert simulator.brokers[0].state.reachable == {0, 1}
    simulator.run(10)
    assert simulator.brokers[0].state.reachable == {0}
    simulator.set_cut(1, 0, False)
    simulator.start(1)
    simulator.run(15)
    assert simulator.brokers[0].state.reachable == simulator.brokers[1].state.reachable == {0, 1}
    with pytest.raises(ValueError, match="broker 1 is running: crash it first"):
        simulator.start(1)


def test_an_unsound_record_is_not_passed_on():
    simulator = Simulator(DDBR)
    simulator.build([(0, 1), (1, 2)])
    simulator.run(5)
    unsound = Record(7, 1, 1, (0,), ((1, 300),))
    effects = simulator.brokers[1].handle(5.0, Received(0, (Update(pack([1, 2]), 0, (unsound,)),)))
    told = [one for effect in effects if isinstance(effect, Send) for one in effect.messages if isinstance(one, Update)]
    assert all(not update.records for update in told)


def test_who_has_not_answered_in_time_is_named():
    simulator = Simulator(lambda *who: DDBR(*who, Settings(settle_within=1.0)), seed=1)
    simulator.build([(0, 1), (1, 2)])
    simulator.run(5)
    simulator.pause(2)
    simulator.do(0, Advertise("p", 7, "quote", Filter()))
    simulator.run(5.9)
    assert not simulator.settled
    simulator.run(6)
    assert simulator.settled == {(0, "p", 7): Settled("p", 7, (2,))}
    simulator.resume(2)
    simulator.do(0, Advertise("p", 8, "quote", Filter()))
    simulator.run(9)
    assert simulator.settled[0, "p", 8] == Settled("p", 8)


def test_what_cannot_be_done_is_refused_with_a_reason(overlay):
    overlay.do(0, Declare("c", 1, Declaration("quote", None, {"price": AttributeType.FLOAT})))
    overlay.do(0, Declare("c", 6, Declaration("quote", None, {"price": AttributeType.STRING})))
    overlay.do(0, Advertise("c", 2, "quote", Filter.parse("price > 10")))
    overlay.do(0, Advertise("c", 2, "quote", Filter()))
    overlay.do(0, Publish("c", 3, "quote", {"price": 5}, 0))
    overlay.do(0, Publish("c", 4, "quote", {"price": float("nan")}, 0))
    overlay.do(0, Unsubscribe("c", 5, 1))
    refused = {request: answer.refused for (_, _, request), answer in overlay.answers.items()}
    assert refused[1] == ""
    assert "cannot become string" in refused[6]
    assert "made before" in refused[2]
    assert "outside what 'c' has advertised" in refused[3]
    assert "attribute 'price': nan" in refused[4]
    assert "made nothing" in refused[5]


def test_publishing_without_an_advertisement_advertises_the_type(overlay):
    overlay.do(3, Subscribe("s", 1, "quote", Filter()))
    overlay.run(6)
    overlay.do(0, Publish("p", 1, "quote", {"price": 5}, 0))
    overlay.run(8)
    overlay.do(0, Publish("p", 2, "quote", {"price": 6}, 0))
    overlay.run(9)
    assert [d.event.attributes for d in overlay.deliveries] == [{"price": 6}]


def test_overlapping_subscriptions_get_one_copy_and_echo_can_be_declined(overlay):
    overlay.do(0, Subscribe("p", 1, "quote", Filter()))
    overlay.do(0, Subscribe("p", 2, None, Filter.parse("price > 1")))
    overlay.do(0, Subscribe("q", 1, "quote", Filter(), False))
    overlay.do(0, Publish("p", 3, "quote", {"price": 5}, 0))
    overlay.do(0, Publish("q", 2, "quote", {"price": 5}, 0))
    assert [(d.client, d.event.publisher, d.subscriptions) for d in overlay.deliveries] == [
        ("p", "p", (1, 2)),
        ("q", "p", (1,)),
        ("p", "q", (1, 2)),
    ]


def test_unsubscribing_and_leaving_empty_the_tables(overlay):
    overlay.do(0, Advertise("p", 1, "quote", Filter()))
    overlay.do(3, Subscribe("s", 1, "quote", Filter()))
    overlay.do(4, Subscribe("t", 1, "quote", Filter()))
    overlay.run(8)
    assert len(overlay.brokers[0].r_prt) == 2
    overlay.do(3, Unsubscribe("s", 2, 1))
    overlay.do(4, Leave("t"))
    overlay.run(10)
    assert len(overlay.brokers[0].r_prt) == 0
    overlay.do(0, Leave("p"))
    overlay.run(12)
    assert all(not core.r_srt for core in overlay.brokers.values())


def test_who_has_left_is_told_nothing_more(overlay):
    overlay.do(0, Advertise("p", 1, "quote", Filter()))
    overlay.do(0, Advertise("q", 1, "quote", Filter()))
    overlay.do(0, Leave("p"))
    overlay.brokers[0].validate()
    overlay.run(30)
    assert overlay.settled.keys() == {(0, "q", 1)}


def test_declared_types_reach_every_broker_and_make_subscriptions_to_their_parents_match(overlay):
    overlay.do(0, Advertise("p", 1, "bond", Filter()))
    overlay.do(3, Subscribe("s", 1, "quote", Filter.parse("price > 1")))
    overlay.run(7)
    overlay.do(5, Declare("c", 1, Declaration("quote", None, {"price": AttributeType.FLOAT})))
    overlay.do(5, Declare("c", 2, Declaration("bond", "quote")))
    overlay.run(8)
    assert overlay.settled[5, "c", 2].missing == ()
    assert {core.types.lineage("bond") for core in overlay.brokers.values()} == {("bond", "quote")}
    overlay.do(0, Publish("p", 2, "bond", {"price": 5}, 0))
    overlay.do(0, Publish("p", 3, "bond", {"prize": 5}, 0))
    overlay.run(9)
    assert [(d.broker, d.client) for d in overlay.deliveries] == [(3, "s")]
    assert "did you mean 'price'?" in overlay.answers[0, "p", 3].refused


def test_of_two_contradicting_declarations_made_at_once_the_same_one_wins_everywhere(overlay):
    for broker, parent in ((2, "quote"), (7, "share")):
        overlay.do(broker, Declare("c", 1, Declaration("bond", parent)))
        assert overlay.answers[broker, "c", 1].refused == ""
    overlay.run(8)
    assert {core.types.lineage("bond") for core in overlay.brokers.values()} == {("bond", "quote")}
    overlay.do(7, Declare("c", 2, Declaration("bond", "share")))
    assert "has the parent 'quote', which cannot become 'share'" in overlay.answers[7, "c", 2].refused


def test_a_broker_that_comes_late_learns_all_types(overlay):
    overlay.do(0, Declare("c", 1, Declaration("bond", "quote")))
    overlay.crash(4)
    overlay.run(8)
    overlay.start(4)
    overlay.run(14)
    assert overlay.brokers[4].types.lineage("bond") == ("bond", "quote")


def test_a_request_number_is_used_once(overlay):
    overlay.do(0, Subscribe("c", 1, "quote", Filter()))
    overlay.do(0, Unsubscribe("c", 1, 1))
    overlay.do(0, Subscribe("c", 0, "quote", Filter()))
    assert "number requests upwards from 1" in overlay.answers[0, "c", 1].refused
    assert "number requests upwards from 1" in overlay.answers[0, "c", 0].refused
    overlay.brokers[0].validate()


def test_heart_beats_tell_the_way_and_the_clock_of_a_neighbour():
    simulator = Simulator(DDBR, seed=1)
    simulator.build([(0, 1)], latency=0.02)
    simulator.set_clock(1, Clock(offset=5.0))
    simulator.run(10)
    seen, back = simulator.brokers[0].neighbourhood.neighbours[1], simulator.brokers[1].neighbourhood.neighbours[0]
    assert (seen.rtt, seen.clock_offset) == pytest.approx((0.04, 5.0))
    assert (back.rtt, back.clock_offset) == pytest.approx((0.04, -5.0))


@pytest.mark.parametrize("seed", range(12))
def test_a_clock_that_goes_wrong_stops_nothing(seed):
    rng = random.Random(seed)
    simulator = Simulator(DDBR, seed=1)
    simulator.build([(0, 1), (1, 2)])
    simulator.set_clock(1, Clock(rng.uniform(-9, 9), rng.uniform(0.9, 1.1)))
    simulator.run(20)
    assert all(core.state.reachable == {0, 1, 2} for core in simulator.brokers.values())


@pytest.mark.parametrize("strategy", [DDBR, FBR, Flooding])
def test_a_broker_that_is_gone_for_good_is_forgotten_but_not_its_events(strategy):
    """Another that stood still all the time brings one of them long after."""
    simulator = Simulator(lambda *who: strategy(*who, Settings(matcher="scan", purge_after=5.0)), seed=1)
    simulator.build([(0, 1), (1, 2), (2, 3)])
    simulator.run(5)
    simulator.do(1, Subscribe("s", 1, "quote", Filter()))
    simulator.do(3, Advertise("p", 1, "quote", Filter()))
    simulator.run(6)
    simulator.do(3, Publish("p", 2, "quote", {}, 0))
    simulator.run(7)
    simulator.crash(3)
    simulator.run(30)
    core, (delivery,) = simulator.brokers[1], simulator.deliveries
    assert 3 not in core.state
    simulator.deliveries.clear()
    simulator.do(1, Received(0, (Forward(pack([1]), 1, (Packet(delivery.event),)),)))
    assert (simulator.deliveries, core.dropped["repeat"]) == ([], 1)


@pytest.mark.parametrize(("broker", "cost"), [(2, 300), (2, 0), (2**15, 1)])
def test_a_record_that_no_table_can_hold_is_ignored(broker, cost):
    simulator = Simulator(DDBR, seed=1)
    simulator.build([(0, 1)])
    simulator.run(3)
    record = Record(broker, 1, 1, (0,), ((0, cost),))
    simulator.do(0, Received(1, (Update(b"", 0, (record,)),)))
    simulator.do(0, Publish("p", 1, "quote", {}, 0))
    assert simulator.brokers[0].state.reachable == {0, 1}
    assert broker not in simulator.brokers[0].state


def test_links_that_a_broker_began_with_keep_their_cost():
    core = DDBR(1, 1)
    core.begin_with(0.0, {2: 5, 3: 7}, [Record(2, 1, 1, (0,), ((1, 5),)), Record(3, 1, 1, (0,), ((1, 7),))])
    [sent] = [effect for effect in core.handle(0.5, LinkDown(2)) if isinstance(effect, Send)]
    [update] = [message for message in sent.messages if isinstance(message, Update)]
    assert (sent.neighbour, update.records) == (3, (Record(1, 1, 3, (0,), ((3, 7),)),))


def test_a_broker_number_that_fits_no_list_is_refused():
    with pytest.raises(ValueError, match="numbered from 0 to 32767"):
        DDBR(2**15, 1)


def test_a_paused_broker_does_not_work_on():
    simulator = Simulator(DDBR, seed=1, cost=Given(per_filter=0.1, per_send=0.0))
    simulator.start(0)
    simulator.do(0, Subscribe("s", 1, "quote", Filter()))
    for number in range(5):
        simulator.do(0, Publish("p", 2 + number, "quote", {}, 0))
    simulator.run(0.15)
    simulator.pause(0)
    simulator.run(5)
    assert len(simulator.deliveries) <= 2
    simulator.resume(0)
    simulator.run(9)
    assert len(simulator.deliveries) == 5


def test_at_a_broker_that_was_just_started_nothing_is_settled_too_early():
    """It has to hear what others advertise before it can know that a subscription has reached all whom it concerns."""
    simulator = Simulator(DDBR)
    simulator.build([(0, 1), (1, 2)], latency=0.05)
    simulator.run(5)
    simulator.do(0, Advertise("p", 1, "quote", Filter()))
    simulator.run(10)
    simulator.start(3)
    simulator.link(2, 3, latency=0.05)
    while not simulator.brokers[3].neighbourhood.neighbours:
        simulator.run(simulator.now + 0.01)
    while simulator.brokers[3].state.reachable != frozenset(range(4)):
        simulator.run(simulator.now + 0.01)
    simulator.do(3, Subscribe("s", 1, "quote", Filter()))
    while (3, "s", 1) not in simulator.settled:
        simulator.run(simulator.now + 0.01)
    assert not simulator.settled[3, "s", 1].missing
    simulator.do(0, Publish("p", 2, "quote", {"price": 5}, 0))
    simulator.run(simulator.now + 1)
    assert len(simulator.deliveries) == 1
