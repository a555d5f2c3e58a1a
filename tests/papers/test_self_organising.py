"""D-DBR, section III-C, Performance Optimization: what running brokers do, sentence by sentence.

The ring of the tests: 1 - 2 - 3 - 4 - 5 - 6 - 1; 1 publishes what 4 wants, at three hops.
"""

import pytest

from mercast.content import Filter
from mercast.lab.organise import mean_hops, random_rates
from mercast.lab.organise_merc import CLUSTERS, SIZE, clusters
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.organise import Organiser, Quota
from mercast.overlay.topology import Topology
from mercast.protocol.effects import OpenLink, Send
from mercast.protocol.messages import Ask, Reply, Update
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

RING = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1)]
CYCLE = 2.0
EACH = 10
"""Events a second of each publisher."""


class Overlay:
    def __init__(self, wants, most_links, links=RING):
        """`wants` are (publisher's broker, subscriber's broker, how many times as much)."""
        settings = Settings(
            timing=Timing(0.2, 3), matcher="scan", organise="carried", organise_every=CYCLE, most_links=most_links
        )
        self.simulator = Simulator(lambda who, life: DDBR(who, life, settings))
        asked = [(of, Advertise(f"p{at}", 1, f"t{at}", Filter())) for of, at, _ in wants]
        asked += [(at, Subscribe(f"s{of}", 1, f"t{at}", Filter())) for of, at, _ in wants]
        self.wants, self.requests = wants, 1
        converge(self.simulator, links, asked)
        self.said = []
        """(when, broker, effect or message), in order."""
        carry_out = self.simulator._carry_out

        def carry(broker, effects):
            for effect in effects:
                for one in effect.messages if isinstance(effect, Send) else (effect,):
                    self.said.append((self.simulator.now, broker, one))
            carry_out(broker, effects)

        self.simulator._carry_out = carry

    def run(self, until):
        while self.simulator.now < until:
            self.requests += 1
            for of, at, times in self.wants:
                for again in range(times):
                    request = self.requests * 1000 + again
                    self.simulator.do(of, Publish(f"p{at}", request, f"t{at}", {}, 0))
            self.simulator.run(self.simulator.now + 1 / EACH)

    def rest(self):
        self.run(20)
        return self

    def links(self):
        return sorted(self.simulator.connected())

    def all_said(self, kind):
        return [(broker, one) for _, broker, one in self.said if isinstance(one, kind)]

    def organising(self, broker):
        return self.simulator.brokers[broker].organising[0]


def test_changes_to_the_overlay_do_not_impact_the_routing_tables_at_the_matching_layer():
    """ "Since content-based matching and destination-based multicasting are decoupled, ..." """
    overlay = Overlay([(1, 4, 1), (2, 5, 1)], 3)
    before = {who: (dict(core.r_srt), set(core.r_prt)) for who, core in overlay.simulator.brokers.items()}
    overlay.rest()
    assert overlay.links() != sorted(tuple(sorted(link)) for link in RING)
    assert {who: (dict(core.r_srt), set(core.r_prt)) for who, core in overlay.simulator.brokers.items()} == before


def test_connections_are_set_up_between_brokers_which_incur_heavy_communication_workload():
    """The basic idea."""
    overlay = Overlay([(1, 4, 3)], 3).rest()
    assert set(overlay.links()) - {tuple(sorted(link)) for link in RING} == {(1, 4)}


def test_collection_each_broker_counts_the_messages_transmitted_between_two_brokers():
    """(1): "the communication rate between any two brokers can be easily obtained" from destinations: by who sends, who
    receives, and who passes on; in a cycle T, which "can be configured"."""
    overlay = Overlay([(1, 4, 1)], 3)
    overlay.run(CYCLE + 0.15)
    counted = {who: dict(overlay.organising(who)._traffic.counts) for who in range(1, 7)}
    events = {pair: count for some in counted.values() for pair, count in some.items()}
    assert set(events) == {(1, 4)}
    assert events[1, 4] == pytest.approx(EACH * CYCLE, abs=1)
    on_the_way = {who for who, some in counted.items() if some}
    assert on_the_way in ({1, 2, 3, 4}, {1, 6, 5, 4})


def test_evaluation_gain_and_lose():
    """(2): gain(i, r) = rate * (dist - 1), lose(i, n) = rate * (dist' - 1), by what a running broker has counted."""
    overlay = Overlay([(1, 4, 1), (1, 2, 2)], 3)
    overlay.run(CYCLE + 0.15)
    traffic = overlay.organising(1)._traffic
    organiser = Organiser(1, Topology.of(RING), traffic, 2)
    assert organiser.gains()[4] == traffic.between(1, 4) * (3 - 1)
    assert organiser.loses() == {6: 0, 2: traffic.between(1, 2) * (5 - 1)}


def test_min_lose_is_zero_if_the_link_number_is_less_than_max_degree():
    """First: else it is the minimal lose of the existing links."""
    overlay = Overlay([(1, 4, 1), (1, 2, 2), (1, 6, 1)], 3)
    overlay.run(CYCLE + 0.15)
    traffic = overlay.organising(1)._traffic
    assert Organiser(1, Topology.of(RING), traffic, 3).quota == Quota(0, None)
    assert Organiser(1, Topology.of(RING), traffic, 2).quota == Quota(traffic.between(1, 6) * 4, 6)


def test_the_candidate_with_the_largest_gain_is_asked():
    """Second and third: "Bi selects the candidate link with the largest gain"; "Bi communicates with Bj"."""
    overlay = Overlay([(1, 4, 3), (1, 3, 4)], 3).rest()
    asks = [ask for broker, ask in overlay.all_said(Ask) if broker == ask.source == 1]
    replies = [reply for broker, reply in overlay.all_said(Reply) if broker == reply.source == 4]
    assert (asks[0].target, asks[0].lose, asks[0].given_up) == (4, 0.0, None)
    assert replies[0].accepted


def test_nobody_is_asked_for_less_than_min_lose():
    """Third: only "if gain(i, j) > MinLose(i)". Both links of 1 serve it better than a new one would."""
    overlay = Overlay([(1, 4, 1), (1, 2, 3), (1, 6, 3)], 2).rest()
    assert [ask for broker, ask in overlay.all_said(Ask) if broker == ask.source == 1] == []


def test_the_link_is_added_and_other_related_links_are_discarded():
    """Finally: both have as many links as they may, and give up one each."""
    overlay = Overlay([(1, 4, 9), (1, 2, 1), (4, 5, 1)], 2).rest()
    assert overlay.links() == [(1, 2), (1, 4), (2, 3), (4, 5), (5, 6)]


def test_links_that_would_cut_somebody_off_together_are_not_discarded():
    """Beyond the paper: without 1 - 6 and 4 - 5, which these two could do without, 5 and 6 would be alone."""
    overlay = Overlay([(1, 4, 9), (1, 2, 1), (4, 3, 1)], 2).rest()
    assert overlay.links() == sorted(tuple(sorted(link)) for link in RING)


def test_all_other_brokers_update_their_trts_and_sprts():
    """(3) Execution: "a topology update message is issued"."""
    overlay = Overlay([(1, 4, 3)], 3).rest()
    updates = [update for broker, update in overlay.all_said(Update) if broker == 1]
    assert any(record.broker == 1 and (4, 1) in record.links for update in updates for record in update.records)
    for who, core in overlay.simulator.brokers.items():
        assert core.state.topology == Topology.of([*RING, (1, 4)])
        assert who == 1 or core.state.routes.next_hop(1) in core.neighbourhood.neighbours


def test_each_broker_does_so_periodically():
    """ "each broker periodically undergoes the following three stages": as the workload varies, so do the links."""
    overlay = Overlay([(1, 4, 3)], 3).rest()
    overlay.wants = [(1, 4, 0)]
    late = len(overlay.said)
    overlay.simulator.do(2, Advertise("q", 1, "u", Filter()))
    overlay.simulator.do(5, Subscribe("r", 1, "u", Filter()))
    for request in range(2, 302):
        overlay.simulator.do(2, Publish("q", request, "u", {}, 0))
        overlay.simulator.run(overlay.simulator.now + 0.05)
    opened = {(broker, one.neighbour) for _, broker, one in overlay.said[late:] if isinstance(one, OpenLink)}
    assert opened == {(2, 5), (5, 2)}


def test_in_clusters_a_message_has_the_hops_of_its_whole_way():
    """From the publisher's broker to its edge, to the other edge, and from there; or straight, within a cluster."""
    rates = random_rates(CLUSTERS * SIZE, 3)
    backbone, *others = networks = clusters(rates, 3)
    apart = [one.topology.distances(one.topology.brokers) for one in networks]

    def hops(one, other):
        (mine, at), (its, to) = divmod(one, SIZE), divmod(other, SIZE)
        if mine == its:
            return apart[1 + mine][at, to]
        return apart[1 + mine][at, 0] + apart[0][mine, its] + apart[1 + its][0, to]

    every = range(CLUSTERS * SIZE)
    assert [len(one.topology.brokers) for one in others] == [SIZE] * CLUSTERS
    assert len(backbone.topology.brokers) == CLUSTERS
    inside = sum(mean_hops(*one) * one.rates.sum() for one in networks)
    assert round(inside) == sum(rates[one, other] * hops(one, other) for one in every for other in every)
