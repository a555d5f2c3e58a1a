"""MERC, section IV of the first paper: Algorithm 3, the function Forward of edge brokers, line by line.

Two shapes: neighbouring clusters that share an edge (Fig. 9), and a backbone of edges with stub clusters (section IV-C,
Transit-Stub). Edges may be several and clusters may form a cycle, which the paper leaves open.
"""

import pytest
from sim.clusters import SHAPES, shared

from mercast.content import Filter
from mercast.overlay.cluster import place_of
from mercast.overlay.split import CARRY, unpack
from mercast.protocol.messages import Carried, Forward, Local
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.routing.destination.tellings import Telling
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

A, B, BACKBONE = 1, 2, 9
FIG9 = {**dict.fromkeys((11, 12, 13), (A,)), 5: (A, B), **dict.fromkeys((21, 22, 26), (B,))}
FIG9_LINKS = [(11, 12), (12, 13), (12, 5), (5, 21), (21, 22), (22, 26)]
"""Edge broker AB is 5."""

STUBS = {10: (1, BACKBONE), 11: (1,), 20: (2, BACKBONE), 21: (2,), 30: (3, BACKBONE), 31: (3,)}
STUB_LINKS = [(10, 11), (20, 21), (30, 31), (10, 20), (20, 30)]
"""A backbone of one edge for each of three stub clusters."""


class Watched(Simulator):
    """Knows who sent which event to whom, and to which destinations."""

    def __init__(self, make):
        super().__init__(make)
        self.forwards = []

    def _send(self, one, other, messages):
        number = self.brokers[one].clusters[place_of(self.address(one, other))].number
        for message in messages:
            if isinstance(message, Forward):
                self.forwards.append((number, one, other, [*unpack(message.destinations)]))
        super()._send(one, other, messages)


def clusters(homes, links, *asked):
    simulator = Watched(lambda who, nth: MERC(who, nth, Settings(clusters=homes[who], matcher="scan")))
    converge(simulator, links, asked)
    return simulator


def advertise(broker, text=""):
    return broker, Advertise("p", 1, "quote", Filter.parse(text))


def subscribe(broker, text=""):
    return broker, Subscribe("s", 1, "quote", Filter.parse(text))


def publish(simulator, broker, price=1):
    simulator.do(broker, Publish("p", 2, "quote", {"price": price}, 0))
    simulator.run(simulator.now + 5)
    return sorted(one.broker for one in simulator.deliveries)


def table(simulator, broker, cluster, name):
    """R-SRT or R-PRT of a broker in a cluster: {where it was made: who tells of it}."""
    place = next(place for place in simulator.brokers[broker].places if place.number == cluster)
    found = getattr(place, name)
    return {origin[0]: [*found.of(origin)] for origin in found if origin[0] != broker}


# -- section IV-A: routing tables --------------------------------------------------------------------------------------


def test_an_edge_has_tables_for_each_of_its_clusters():
    """IV-A: "an edge broker maintains a group of the other four routing tables for each cluster it belongs to"."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), advertise(21), subscribe(13), subscribe(26))
    edge = simulator.brokers[5]
    assert [place.number for place in edge.places] == [A, B]
    assert [set(place.cluster.state.topology.brokers) for place in edge.places] == [{5, 11, 12, 13}, {5, 21, 22, 26}]
    assert table(simulator, 5, A, "advertisements")[11] == [Telling((), 11)]
    assert table(simulator, 5, B, "advertisements")[21] == [Telling((), 21)]
    assert table(simulator, 5, A, "subscriptions")[13] == [Telling((), 13)]
    assert table(simulator, 5, B, "subscriptions")[26] == [Telling((), 26)]


def test_an_internal_broker_knows_nobody_of_another_cluster():
    """IV: "Each broker only knows the addresses of brokers in clusters it belongs to"."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), subscribe(26))
    for broker in (11, 12, 13):
        core = simulator.brokers[broker]
        assert set(core.state.topology.brokers) == {5, 11, 12, 13}
        assert set(core.exchange.told) == {5, 11, 12, 13} - {broker}


# -- section IV-B: Algorithm 3 -----------------------------------------------------------------------------------------


def test_line_2_the_source_is_replaced_by_the_edge():
    """Line 2: m.sourceID <- localBrokerID; where it was made is kept, and which clusters it has left."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), subscribe(26))
    said = simulator.brokers[26].exchange.said
    assert list(said[5]) == [Carried((11, Local("p", 1)), (A,))]
    said = simulator.brokers[11].exchange.said
    assert list(said[5]) == [Carried((26, Local("s", 1)), (B,))]
    assert not any(items for peer, items in said.items() if peer != 5)


def test_lines_3_to_5_an_advertisement_goes_to_all_brokers_of_other_clusters():
    """Lines 3 to 5: m.destIDList <- IDs of all brokers in other clusters."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11))
    for broker in (21, 22, 26):
        assert table(simulator, broker, B, "advertisements") == {11: [Telling((A,), 5)]}


def test_lines_3_to_5_an_advertisement_crosses_cluster_after_cluster():
    """The same, in a backbone: every edge forwards it on."""
    simulator = clusters(STUBS, STUB_LINKS, advertise(11))
    assert table(simulator, 20, BACKBONE, "advertisements") == {11: [Telling((1,), 10)]}
    assert table(simulator, 21, 2, "advertisements") == {11: [Telling((1, BACKBONE), 20)]}
    assert table(simulator, 31, 3, "advertisements") == {11: [Telling((1, BACKBONE), 30)]}


def test_lines_6_to_8_a_subscription_goes_to_brokers_with_matching_advertisements():
    """Lines 6 to 8: advs <- Match(m, R-SRTs of other clusters); m.destIDList <- advs.sourceID."""
    simulator = clusters(
        FIG9, FIG9_LINKS, advertise(11, "price < 5"), advertise(12, "price > 5"), subscribe(26, "price = 1")
    )
    assert table(simulator, 11, A, "subscriptions") == {26: [Telling((B,), 5)]}
    assert table(simulator, 12, A, "subscriptions") == {}
    assert table(simulator, 13, A, "subscriptions") == {}


def test_lines_6_to_8_a_subscription_that_nothing_matches_stays():
    simulator = clusters(STUBS, STUB_LINKS, advertise(11, "price < 5"), subscribe(21, "price > 5"))
    assert all(not table(simulator, broker, STUBS[broker][-1], "subscriptions") for broker in (10, 11, 30, 31))


def test_lines_6_to_8_in_a_backbone_it_goes_back_the_way_the_advertisement_came():
    """To the edge that told of it, and to no other cluster."""
    simulator = clusters(STUBS, STUB_LINKS, advertise(11), subscribe(21))
    assert table(simulator, 10, BACKBONE, "subscriptions") == {21: [Telling((2,), 20)]}
    assert table(simulator, 11, 1, "subscriptions") == {21: [Telling((2, BACKBONE), 10)]}
    assert table(simulator, 30, BACKBONE, "subscriptions") == table(simulator, 31, 3, "subscriptions") == {}


def test_lines_9_to_11_an_event_is_matched_again_with_the_other_clusters_subscriptions():
    """Lines 9 to 11 (line 10 says R-SRTs and must mean R-PRTs: it is called subs, and events match subscriptions).

    Fig. 9: from A1 to A3 and AB, and from there to B2 and B6; the list names nobody of another cluster (IV-C)."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), subscribe(13), subscribe(22), subscribe(26))
    assert publish(simulator, 11) == [13, 22, 26]
    assert sorted(simulator.forwards) == [
        (A, 11, 12, [13, CARRY | 5]),
        (A, 12, 5, [CARRY | 5]),
        (A, 12, 13, [13]),
        (B, 5, 21, [22, 26]),
        (B, 21, 22, [22, 26]),
        (B, 22, 26, [26]),
    ]


def test_lines_9_to_11_only_who_matches_there():
    """What a subscriber of another cluster does not want goes no further than the edge that matched it."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), subscribe(22, "price > 5"), subscribe(26, "price < 5"))
    assert publish(simulator, 11, price=1) == [26]
    assert [to for number, *_, to in simulator.forwards if number == B] == [[26]] * 3


def test_line_12_in_a_backbone_an_event_is_matched_at_each_border():
    simulator = clusters(STUBS, STUB_LINKS, advertise(11), subscribe(21), subscribe(31), subscribe(30))
    assert publish(simulator, 11) == [21, 30, 31]
    carried = [(number, to) for number, _, _, to in simulator.forwards]
    assert carried == [
        (1, [CARRY | 10]),
        (BACKBONE, [CARRY | 20, CARRY | 30]),
        (2, [21]),
        (BACKBONE, [CARRY | 30]),
        (3, [31]),
    ]


def test_an_internal_broker_does_as_in_d_dbr():
    """Line 1: if localBroker is an edge broker; else "Function Forward does nothing"."""
    simulator = clusters(FIG9, FIG9_LINKS, advertise(11), subscribe(13))
    assert publish(simulator, 11) == [13]
    assert {number for number, *_ in simulator.forwards} == {A}


# -- beyond the paper: cycles, and several edges -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_broker_gets_an_event_once(shape):
    """IV: "This process is repeated until the event is delivered to all interested brokers in all clusters"."""
    homes, links = SHAPES[shape]
    source = min(homes)
    simulator = clusters(homes, links, advertise(source), *(subscribe(broker) for broker in homes))
    assert publish(simulator, source) == sorted(homes)


def test_in_a_cycle_an_advertisement_comes_the_shorter_way():
    """A cluster keeps one best way: across the fewest clusters, then the lowest; subscriptions follow only that."""
    homes, links = shared(5, 2, cycle=True)
    simulator = clusters(homes, links, advertise(100), subscribe(300))
    crossed = {telling.crossed for telling in table(simulator, 300, 3, "advertisements")[100]}
    assert crossed == {(1, 2), (1, 5, 4)}
    told = {telling.crossed for telling in table(simulator, 100, 1, "subscriptions")[300]}
    assert told == {(3, 2)}
    assert publish(simulator, 100) == [300]
    assert {number for number, *_ in simulator.forwards} == {1, 2, 3}


def test_of_several_edges_one_carries():
    homes, links = SHAPES["backbone"]
    simulator = clusters(homes, links, advertise(102), *(subscribe(broker) for broker in (202, 203, 204, 302)))
    assert publish(simulator, 102) == [202, 203, 204, 302]
    lists = [(number, one, to) for number, one, _, to in simulator.forwards]
    assert len({entry for number, _, to in lists if number == 1 for entry in to if entry & CARRY}) == 1
    assert len({entry for number, _, to in lists if number == 99 for entry in to if entry & CARRY}) == 2
