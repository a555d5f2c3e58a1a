"""A broker is restarted: its publisher is back before its links are, by the same name and with the same words; or it is
the only edge of a border, and what waits for it comes before it has heard who is beyond."""

from dataclasses import replace

import pytest
from sim.clusters import backbone
from sim.faults import SETTINGS

from mercast.content import Filter
from mercast.protocol.rows import FIRST, WAITED, Copied, Published
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.sim.links import Link
from mercast.sim.simulator import Simulator

TWO = backbone(clusters=2, internal=2)
ONE = {1: (1,), 2: (1,), 3: (1,)}, [(1, 2), (2, 3)]


def of_slow_links(homes, seed):
    settings = replace(SETTINGS, wait_for_route=3.0, sampling=1.0)
    simulator = Simulator(
        lambda broker, incarnation: MERC(broker, incarnation, replace(settings, clusters=homes[broker])),
        seed,
        lay=lambda *_: Link(simulator.rng.uniform(0.001, 0.03)),
    )
    simulator.validate = True
    return simulator


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("homes", "links", "publisher", "subscribers"),
    [(*TWO, 103, (102, 203)), (*TWO, 100, (102, 203)), (*ONE, 1, (2, 3))],
    ids=["inside", "at an edge", "one cluster"],
)
def test_a_publisher_that_is_back_at_once_reaches_all_as_soon_as_that_is_settled(
    homes, links, publisher, subscribers, seed
):
    simulator = of_slow_links(homes, seed)
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


ONLY_EDGES = backbone(clusters=2, internal=2, edges=1)
OF_THREE = {1: (1,), 2: (2,), 3: (3,), 9: (1, 2, 3)}, [(1, 9), (2, 9), (3, 9)]
CLUSTERS = {
    "of a backbone": (*ONLY_EDGES, 100, 102, (202,), ()),
    "of three clusters": (*OF_THREE, 9, 1, (2, 3), ()),
    "of three clusters, one of them away": (*OF_THREE, 9, 1, (2,), (3,)),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", CLUSTERS)
def test_what_waited_for_the_only_edge_is_carried_when_it_is_back(shape, seed):
    homes, links, edge, publisher, subscribers, away = CLUSTERS[shape]
    simulator = of_slow_links(homes, seed)
    simulator.build(links)
    simulator.run(5)
    simulator.do(publisher, Advertise("p", 1, "quote", Filter()))
    for broker in subscribers:
        simulator.do(broker, Subscribe(f"s{broker}", 1, "quote", Filter()))
    simulator.run(10)
    for broker in (edge, *away):
        simulator.crash(broker)
    simulator.run(11)  # all know that it is gone
    for number in range(50):
        simulator.do(publisher, Publish("p", 2 + number, "quote", {"n": number}, 0))
        simulator.run(simulator.now + 0.01)
    simulator.start(edge)
    simulator.run(simulator.now + 6)
    got = sorted((one.client, one.event.attributes["n"]) for one in simulator.deliveries)
    assert got == [(f"s{broker}", number) for broker in subscribers for number in range(50)]
    assert not any(core.dropped for core in simulator.brokers.values())
    assert not any(len(core.parked) for core in simulator.brokers.values())
    entries_made = sum(row.destinations for _, row in simulator.rows if isinstance(row, Published))
    copies = [row for _, row in simulator.rows if isinstance(row, Copied)]
    entries_made += sum(row.made for row in copies if row.copy in (FIRST, WAITED))
    assert entries_made == sum(row.taken for row in copies if row.copy == FIRST) > len(got)
