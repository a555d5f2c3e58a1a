"""Self-organising reconfiguration: each decision by itself, and what must hold over whole runs on random overlays."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercast.lab.organise import handled, mean_hops, organise, sent_and_received, turn
from mercast.overlay.organise import Organiser, Quota, Request, Step, Traffic
from mercast.overlay.routes import Routes
from mercast.overlay.topology import Topology

RULES = ["paper", "carried"]
RING = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1)]


@st.composite
def worlds(draw):
    """A connected overlay of brokers with scattered numbers, messages between some of them, and a limit of links."""
    numbers = draw(st.lists(st.integers(0, 2**15 - 1), min_size=2, max_size=10, unique=True))
    edges = {(numbers[place], numbers[draw(st.integers(0, place - 1))]) for place in range(1, len(numbers))}
    pairs = st.tuples(st.sampled_from(numbers), st.sampled_from(numbers)).filter(lambda pair: pair[0] != pair[1])
    topology = Topology.of(edges | draw(st.sets(pairs, max_size=8)))
    size = len(numbers)
    counts = draw(st.lists(st.sampled_from([0, 1, 2, 9, 100]), min_size=size * size, max_size=size * size))
    rates = np.array(counts).reshape(size, size)
    np.fill_diagonal(rates, 0)
    rates[0, 1] += 1
    return topology, rates, draw(st.integers(1, 4))


def degrees(topology):
    return {broker: len(topology.neighbours(broker)) for broker in topology.brokers}


def is_connected(topology):
    return nx.is_connected(nx.from_numpy_array(topology.trt))


def hops(topology, rates):
    """All hops of all messages, an exact number; unlike the lab, by networkx."""
    distance = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(topology.trt)))
    return sum(int(rates[one, other]) * distance[one][other] for one, other in np.argwhere(rates))


# -- whole runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=15)
@given(world=worlds())
def test_every_step_keeps_the_overlay_connected_and_the_degrees_within_the_limit(rule, world):
    topology, rates, most_links = world
    collect = sent_and_received if rule == "paper" else handled
    for _ in range(2):
        for broker in topology.brokers:
            step = turn(broker, topology, collect(topology, rates), most_links, rule, asks=3)
            if step is None:
                continue
            after = topology.changed([step.opened], step.closed)
            assert is_connected(after)
            for member, degree in degrees(after).items():
                assert degree <= max(most_links, degrees(topology)[member])
            if rule == "carried" or not step.closed:
                assert hops(after, rates) < hops(topology, rates)
            topology = after


@settings(max_examples=20)
@given(worlds(), st.integers(1, 3))
def test_by_the_rule_carried_an_overlay_comes_to_rest_and_is_no_worse(world, asks):
    topology, rates, most_links = world
    outcome = organise(topology, rates, most_links, "carried", asks)
    assert outcome.rested
    assert outcome.hops == sorted(set(outcome.hops), reverse=True)
    assert outcome.hops[-1] == mean_hops(outcome.topology, rates)
    for broker in topology.brokers:
        counting = handled(outcome.topology, rates)
        assert turn(broker, outcome.topology, counting, most_links, "carried", asks) is None


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=15)
@given(world=worlds())
def test_the_same_overlay_and_traffic_give_the_same_steps(rule, world):
    topology, rates, most_links = world
    first, second = (organise(topology, rates, most_links, rule) for _ in range(2))
    assert first == second


@settings(max_examples=15)
@given(worlds())
def test_what_brokers_count_is_what_passes_them(world):
    topology, rates, _ = world
    routes = {broker: Routes(topology, broker) for broker in topology.brokers}
    counted = {broker: Traffic() for broker in topology.brokers}
    for one, other in np.argwhere(rates):
        at, source, destination = topology.brokers[one], topology.brokers[one], topology.brokers[other]
        path = [at]
        while path[-1] != destination:
            path.append(routes[path[-1]].next_hop(destination))
        for broker in path:
            for _ in range(rates[one, other]):
                counted[broker].count(source, [destination])
    for broker in topology.brokers:
        assert handled(topology, rates)(broker).counts == counted[broker].counts
        own = {pair: count for pair, count in counted[broker].counts.items() if broker in pair}
        assert sent_and_received(topology, rates)(broker).counts == own


# -- single decisions ------------------------------------------------------------------------------------------------


def ring(me, counts, most_links=2, rule="paper"):
    return Organiser(me, Topology.of(RING), Traffic(counts), most_links, rule)


def test_gains_and_loses_are_the_papers():
    """gain = rate * (dist - 1), lose = rate * (dist' - 1), messages of both directions together."""
    organiser = ring(1, {(1, 4): 3, (4, 1): 2, (1, 3): 10, (5, 1): 1, (1, 2): 4, (6, 1): 2, (2, 6): 99})
    assert list(organiser.gains().items()) == [(3, 10), (4, 5 * 2), (5, 1)]
    assert list(organiser.loses().items()) == [(6, 2 * 4), (2, 4 * 4)]
    assert organiser.quota == Quota(8, 6)


@settings(max_examples=20)
@given(worlds())
def test_loses_are_the_longer_paths_without_the_link(world):
    topology, rates, most_links = world
    for me in topology.brokers:
        traffic = sent_and_received(topology, rates)(me)
        expected = {}
        for neighbour in topology.neighbours(me):
            graph = nx.from_numpy_array(topology.changed(closed=[(me, neighbour)]).trt)
            ends = topology.place[me], topology.place[neighbour]
            if nx.has_path(graph, *ends):
                more = nx.shortest_path_length(graph, *ends) - 1
                expected[neighbour] = more * traffic.between(me, neighbour)
            else:
                expected[neighbour] = np.inf
        assert Organiser(me, topology, traffic, most_links).loses() == expected


def test_a_dear_link_that_no_path_uses_is_no_loss():
    topology = Topology({1: {2: 9, 3: 1}, 2: {1: 9, 3: 1}, 3: {1: 1, 2: 1}})
    assert Organiser(1, topology, Traffic({(1, 2): 5, (1, 3): 5}), 2).loses() == {2: 0, 3: 5 * 9}


def test_a_broker_with_room_gives_up_nothing():
    assert ring(1, {(1, 2): 4}, most_links=3).quota == Quota(0, None)


def test_the_only_path_is_never_given_up():
    line = Topology.of([(1, 2), (2, 3), (3, 4)])
    organiser = Organiser(2, line, Traffic({(2, 4): 1_000}), 2)
    assert organiser.loses() == {1: np.inf, 3: np.inf}
    assert list(organiser.requests()) == []


def test_brokers_out_of_reach_are_no_candidates():
    topology = Topology.of([(1, 2)], brokers=[3])
    assert list(Organiser(1, topology, Traffic({(1, 3): 9}), 2).requests()) == []
    assert Organiser(3, topology, Traffic({(1, 3): 9}), 2).loses() == {}


def test_the_largest_gain_is_asked_first_and_only_gains_above_the_quota():
    traffic = {(1, 3): 10, (1, 4): 8, (1, 5): 8, (1, 2): 2, (1, 6): 9}
    assert [(request.candidate, request.gain, request.quota) for request in ring(1, traffic).requests()] == [
        (4, 16, Quota(8, 2)),
        (3, 10, Quota(8, 2)),
    ]


@pytest.mark.parametrize(("gain", "accepted"), [(12, False), (13, True)])
def test_the_gain_must_exceed_both_losses(gain, accepted):
    candidate = ring(4, {(4, 3): 2, (4, 5): 1})
    request = Request(1, 4, gain, Quota(8, 2), Traffic())
    assert candidate.answer(request) == (Step((1, 4), ((1, 2), (4, 5))) if accepted else None)


def test_two_links_that_would_disconnect_together_are_not_both_given_up():
    """Either may go by itself: 1 and 3 would be left with 2, and 4, 5, 6 with each other."""
    traffic = {(1, 3): 1_000, (1, 2): 50, (3, 2): 50}
    asker, candidate = ring(1, traffic), ring(3, traffic)
    request = next(asker.requests())
    assert (request.candidate, request.quota, candidate.quota) == (3, Quota(0, 6), Quota(0, 4))
    assert candidate.answer(request) is None


def test_by_the_rule_carried_what_links_carry_for_others_counts():
    """The link from 1 to 2 may go as far as these two are concerned, but messages from 2 to 6 would go two hops more,
    as ten messages from 1 to 4 would go two hops less."""
    asked = {(1, 4): 10, (4, 3): 1}
    step = Step((1, 4), ((1, 2), (4, 5)))
    for rule, carried, answer in (
        ("paper", 100, step),
        ("carried", 100, None),
        ("carried", 10, None),
        ("carried", 9, step),
    ):
        request = next(ring(1, asked | {(2, 6): carried}, rule=rule).requests())
        assert ring(4, asked, rule=rule).answer(request) == answer


def test_one_message_that_saves_one_hop_is_enough():
    request = next(ring(1, {(1, 3): 1}, most_links=3, rule="carried").requests())
    assert ring(3, {}, most_links=3, rule="carried").answer(request) == Step((1, 3), ())


def test_a_request_of_another_topology_is_refused():
    candidate = ring(4, {}, most_links=3)
    assert candidate.answer(Request(1, 4, 20, Quota(0, None), Traffic({(1, 4): 10}))) is not None
    for stale in (
        Request(5, 4, 20, Quota(0, None), Traffic()),
        Request(9, 4, 20, Quota(0, None), Traffic()),
        Request(1, 4, 20, Quota(0, 3), Traffic()),
    ):
        assert candidate.answer(stale) is None


def test_a_message_that_two_brokers_counted_is_one_and_brokers_that_are_gone_do_not_count():
    both = Traffic({(1, 2): 5, (2, 3): 1}) | Traffic({(1, 2): 5, (9, 1): 7})
    assert both.counts == {(1, 2): 5, (2, 3): 1, (9, 1): 7}
    assert both.matrix(Topology.of([(1, 2), (2, 3)])).tolist() == [[0, 5, 0], [0, 0, 1], [0, 0, 0]]


def test_a_changed_topology_is_another():
    topology = Topology.of(RING)
    assert topology.changed([(1, 4)], [(1, 2), (3, 4)]) == Topology.of([(1, 4), (2, 3), (4, 5), (5, 6), (6, 1)])
    assert topology == Topology.of(RING)
