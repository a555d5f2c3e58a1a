"""D-DBR in the simulator: convergence by messages, exact delivery, settling."""

import networkx as nx
import pytest

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Leave, Publish, Subscribe, Unsubscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.settings import Settings
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
    assert overlay.answers[0, "p", 2].value == 4


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
