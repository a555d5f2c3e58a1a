"""TRT, SPRT and the splitting of lists, over random overlays."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercast.limits import Limits
from mercast.overlay.linkstate import LinkState
from mercast.overlay.routes import NO_HOP, Routes
from mercast.overlay.split import BROKER, CARRY, Splitter, pack, unpack
from mercast.overlay.topology import Topology
from mercast.protocol.effects import Send
from mercast.protocol.messages import Record, Update
from mercast.protocol.stimuli import Batch, LinkUp, Received
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.strategies import STRATEGIES


@st.composite
def overlays(draw, connected=True):
    """Brokers with scattered numbers, links of cost 1 to 3, a spanning tree at least."""
    numbers = draw(st.lists(st.integers(0, 2**15 - 1), min_size=2, max_size=14, unique=True))
    links = {number: {} for number in numbers}
    tree = [(numbers[place], numbers[draw(st.integers(0, place - 1))]) for place in range(1, len(numbers))]
    pairs = st.tuples(st.sampled_from(numbers), st.sampled_from(numbers))
    for one, other in (tree if connected else []) + draw(st.lists(pairs, max_size=20)):
        if one != other:
            links[one][other] = links[other][one] = draw(st.integers(1, 3))
    return Topology(links)


def graph_of(topology):
    graph = nx.Graph()
    graph.add_nodes_from(topology.brokers)
    for broker in topology.brokers:
        graph.add_weighted_edges_from(
            (broker, neighbour, cost) for neighbour, cost in topology.neighbours(broker).items()
        )
    return graph


def delivered(topology, source, destinations, rule):
    """Send a list from a source, hop by hop: who received a copy how often, and which entries arrived where."""
    splitters = {broker: Splitter(Routes(topology, broker), rule) for broker in topology.brokers}
    received, arrived = [], []
    waiting = [(source, pack(destinations))]
    while waiting:
        at, entries = waiting.pop()
        for hop, part in splitters[at](entries):
            if hop == at:
                assert {entry & BROKER for entry in unpack(part)} == {at}
                arrived += unpack(part)
            else:
                assert hop in topology.neighbours(at)
                received.append(hop)
                waiting.append((hop, part))
    return received, arrived


@settings(deadline=None)
@given(overlays(connected=False))
def test_next_hops_lie_on_shortest_paths(topology):
    distance = dict(nx.all_pairs_dijkstra_path_length(graph_of(topology)))
    for me in topology.brokers:
        routes = Routes(topology, me)
        assert routes.reachable == distance[me].keys()
        costs = topology.neighbours(me)
        for broker in topology.brokers:
            hop = routes.next_hop(broker)
            if broker == me or broker not in distance[me]:
                assert hop == (me if broker == me else NO_HOP)
            else:
                assert costs[hop] + distance[hop][broker] == distance[me][broker]
        assert routes.next_hop(2**15) == NO_HOP


@pytest.mark.parametrize("rule", ["paper", "covering"])
@settings(max_examples=60, deadline=None)
@given(overlays(), st.data())
def test_every_destination_gets_its_entries_once_and_no_broker_a_second_copy(rule, topology, data):
    source = data.draw(st.sampled_from(topology.brokers))
    entries = st.sampled_from([b | role for b in topology.brokers if b != source for role in (0, CARRY)])
    destinations = data.draw(st.sets(entries))
    received, arrived = delivered(topology, source, destinations, rule)
    assert sorted(arrived) == sorted(destinations)
    assert len(received) == len(set(received))
    assert source not in received


@settings(max_examples=60, deadline=None)
@given(overlays(), st.data())
def test_covering_never_uses_more_next_hops_at_the_source(topology, data):
    source = data.draw(st.sampled_from(topology.brokers))
    destinations = pack(data.draw(st.sets(st.sampled_from(topology.brokers))) - {source})
    routes = Routes(topology, source)
    assert len(Splitter(routes, "covering")(destinations)) <= len(Splitter(routes, "paper")(destinations))


@pytest.mark.parametrize("rule", ["paper", "covering"])
def test_what_has_no_route_is_kept_apart(rule):
    topology = Topology.of([(1, 2), (3, 4)], brokers=[5])
    split = Splitter(Routes(topology, 1), rule)
    assert dict(split(pack([2, 3, 5, 9]))) == {2: pack([2]), NO_HOP: pack([3, 5, 9])}
    assert split(b"") == ()


def test_covering_gives_equal_paths_to_one_next_hop():
    """A square with a tail on each far corner: both far brokers can be reached through either near one."""
    topology = Topology.of([(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4), (1, 5)])
    assert [hop for hop, _ in Splitter(Routes(topology, 0), "covering")(pack([3, 4, 5]))] == [1]


def test_a_link_counts_only_if_both_ends_list_it_and_costs_what_the_dearer_says():
    topology = Topology({1: {2: 3, 3: 1, 1: 1}, 2: {1: 5}, 3: {}})
    assert topology.neighbours(1) == {2: 5}
    assert topology.neighbours(2) == {1: 5}
    assert topology.neighbours(3) == {}


def test_lists_are_sets_of_entries():
    assert list(unpack(pack([3, 1, 3, 1 | CARRY]))) == [1, 3, 1 | CARRY]
    assert pack([3, 1]) == pack([1, 3])


def test_tables_of_a_hundred_brokers_fit_eleven_kilobytes():
    """Section III-D: TRT and SPRT of 100 brokers occupy 11 kB (claim A15)."""
    graph = nx.random_regular_graph(6, 100, seed=1)
    topology = Topology.of(graph.edges)
    sprt = Routes(topology, 0).sprt
    assert topology.trt.nbytes + len(sprt) * sprt.itemsize <= 11_000


def test_no_more_brokers_than_the_limit_are_kept(monkeypatch):
    monkeypatch.setattr("mercast.overlay.linkstate.DEFAULTS", Limits(brokers=3))
    state = LinkState(0, 1)
    news = state.learn([Record(broker, 1, 1, (0,), ((0, 1),)) for broker in range(1, 6)])
    assert [record.broker for record in news] == [1, 2]
    assert state.learn([Record(2, 1, 2, (0,), ())])


def test_splits_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr("mercast.overlay.split.DEFAULTS", Limits(split_bytes=2_000))
    topology = Topology({0: {1: 1}, 1: {0: 1}})
    splitter = Splitter(Routes(topology, 0))
    for entries in combinations(range(20), 3):
        assert splitter(pack(entries)) == Splitter(Routes(topology, 0))(pack(entries))
        assert len(splitter._cache) < 10


@pytest.mark.parametrize("cost", [0, -1, 256])
def test_a_link_that_no_table_can_hold_does_not_come_up(cost):
    core = STRATEGIES["ddbr"](1, 1)
    with pytest.raises(ValueError, match=f"a link to broker 2 of cost {cost}; it may cost 1 to 255"):
        core.handle(0.0, LinkUp(2, 1, cost))
    core.validate()
    core.handle(0.0, LinkUp(2, 1, 255))
    assert core.state.mine.links == ((2, 255),)


def test_a_record_of_more_links_than_there_may_be_is_not_kept():
    state = LinkState(1, 1)
    records = [Record(broker, 1, 1, (0,), ((1, 1),) * links) for broker, links in ((2, 1_024), (3, 1_025))]
    assert state.learn(records) == records[:1]


listed = st.dictionaries(st.integers(0, 9), st.dictionaries(st.integers(0, 11), st.integers(1, 255), max_size=8))


@given(listed)
def test_a_link_counts_if_both_ends_list_it_and_costs_what_the_dearer_says(links):
    """A broker may list itself, and brokers that nobody knows."""
    topology = Topology(links)
    assert topology.brokers == tuple(sorted(links))
    for one in links:
        expected = {
            other: max(cost, links[other][one])
            for other, cost in sorted(links[one].items())
            if other != one and one in links.get(other, {})
        }
        row = topology.trt[topology.place[one]]
        assert topology.neighbours(one) == expected
        assert list(topology.neighbours(one)) == list(expected)
        assert {topology.brokers[at]: int(row[at]) for at in np.flatnonzero(row)} == expected


def test_updates_that_follow_each_other_make_new_routes_once(monkeypatch):
    made = []

    class Counted(Topology):
        def __init__(self, links):
            made.append(len(links))
            super().__init__(links)

    monkeypatch.setattr("mercast.overlay.linkstate.Topology", Counted)
    core = DDBR(1, 1)
    core.handle(0.0, LinkUp(2, 1))
    ring = [Record(id, 1, 1, (0,), tuple(sorted({(id - 1 or 30, 1), (id % 30 + 1, 1)}))) for id in range(2, 31)]
    made.clear()
    together = [Received(2, tuple(Update(b"", 0, (record,)) for record in some)) for some in (ring[:15], ring[15:])]
    effects = core.handle(0.1, Batch(tuple(together)))
    assert made == [30]
    assert len(core.state.reachable) == 29 + 1
    core.handle(0.2, Received(2, (Update(b"", 0, (ring[3],)), Update(b"", 0, (ring[4],)))))
    assert made == [30]  # there was no news
    assert {effect.neighbour for effect in effects if isinstance(effect, Send)} == {2}


def test_who_hears_of_a_link_hears_of_the_life_that_it_leads_to():
    """Broker 3 was restarted: nobody may go by the links of its earlier life, whoever tells of its new ones first."""
    earlier = [
        Record(2, 1, 3, (0,), ((1, 1), (4, 1))),
        Record(3, 1, 2, (0,), ((1, 1),)),
        Record(4, 1, 1, (0,), ((2, 1),)),
    ]
    core = DDBR(1, 1)
    core.handle(0.0, LinkUp(2, 1))
    core.handle(0.1, Received(2, (Update(b"", 0, (*earlier, Record(3, 2, 1, (0,), ((4, 1),)))),)))

    def told(effects):
        """The records of 3 that go with those of 1."""
        sent = [one for effect in effects if isinstance(effect, Send) for one in effect.messages]
        updates = [update.records for update in sent if isinstance(update, Update)]
        return [
            [record.incarnation for record in records if record.broker == 3]
            for records in updates
            if any(record.broker == 1 and 3 in dict(record.links) for record in records)
        ]

    assert told(core.handle(0.2, LinkUp(3, 2))) == [[2], [2]]  # to 2, and all that is known to 3 itself
    assert told(core.handle(0.3, LinkUp(5, 1)))[-1] == [2]  # nothing goes by 3 yet, but it is named
