"""Hermes: A Distributed Event-Based Middleware Architecture."""

import random
from dataclasses import replace

import networkx as nx
import pytest

from mercast.content import Filter
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.filtering.fbr import FBR
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator
from mercast.workloads import Zipf

QUIET = Settings(timing=Timing(heart_beat=1_000.0), matcher="scan")
BROKERS = 30


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["tree", "cyclic"])
def test_section_4_4_covering_stores_less_and_delivers_the_same(shape):
    """A subscription is sent on "unless it is already covered by a previous subscription": the tables become smaller,
    and every event takes the same way to the same subscribers."""
    plain, covering = (played(shape, covering) for covering in (False, True))
    assert covering["deliveries"] == plain["deliveries"] != []
    assert covering["forwarded"] == plain["forwarded"] > 0
    assert covering["stored"] < plain["stored"]


def played(shape, covering):
    graph = nx.random_labeled_tree(BROKERS, seed=5) if shape == "tree" else nx.random_regular_graph(4, BROKERS, seed=5)
    workload, rng = Zipf(), random.Random(5)
    simulator = Simulator(lambda *who: FBR(*who, replace(QUIET, covering=covering)))
    publishers = rng.sample(range(BROKERS), 3)
    advertised = [(broker, Advertise("p", 1, "quote", Filter())) for broker in publishers]
    subscribed = [
        (broker, Subscribe("s", number, "quote", workload.filter(rng)))
        for broker in range(BROKERS)
        for number in range(1, 6)
    ]
    converge(simulator, graph.edges, advertised + subscribed)
    before = simulator.messages_sent
    for number in range(100):
        simulator.do(rng.choice(publishers), Publish("p", 2 + number, "quote", workload.event(rng), 0))
    simulator.run(5)
    return {
        "deliveries": sorted((d.broker, d.client, d.event.id, d.subscriptions) for d in simulator.deliveries),
        "forwarded": simulator.messages_sent - before,
        "stored": sum(len(core.prt) for core in simulator.brokers.values()),
    }
