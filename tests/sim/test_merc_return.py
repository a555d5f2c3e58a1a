"""A broker is restarted, and its publisher is back before its links are, by the same name and with the same words."""

from dataclasses import replace

import pytest
from sim.clusters import backbone
from sim.faults import SETTINGS

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.sim.links import Link
from mercast.sim.simulator import Simulator

TWO = backbone(clusters=2, internal=2)
ONE = {1: (1,), 2: (1,), 3: (1,)}, [(1, 2), (2, 3)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("homes", "links", "publisher", "subscribers"),
    [(*TWO, 103, (102, 203)), (*TWO, 100, (102, 203)), (*ONE, 1, (2, 3))],
    ids=["inside", "at an edge", "one cluster"],
)
def test_a_publisher_that_is_back_at_once_reaches_all_as_soon_as_that_is_settled(
    homes, links, publisher, subscribers, seed
):
    simulator = Simulator(
        lambda broker, incarnation: MERC(broker, incarnation, replace(SETTINGS, clusters=homes[broker])),
        seed,
        lay=lambda *_: Link(simulator.rng.uniform(0.001, 0.03)),
    )
    simulator.validate = True
    simulator.build(links)
    simulator.run(5)
    advertise = Advertise("p", 1, "quote", Filter())
    simulator.do(publisher, advertise)
    for broker in subscribers:
        simulator.do(broker, Subscribe(f"s{broker}", 1, "quote", Filter()))
    simulator.run(20)
    simulator.crash(publisher)
    simulator.settled.clear()
    simulator.start(publisher)
    simulator.do(publisher, advertise)
    while not simulator.settled:
        simulator.run(simulator.now + 0.001)
    simulator.run(simulator.now + 5)  # there may have been nobody to wait for
    assert not any(settled.missing for settled in simulator.settled.values())
    simulator.deliveries.clear()
    simulator.do(publisher, Publish("p", 2, "quote", {"n": 1}, 0))
    simulator.run(simulator.now + 2)
    assert sorted(one.client for one in simulator.deliveries) == [f"s{broker}" for broker in subscribers]
