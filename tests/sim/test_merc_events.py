"""MERC over several clusters: events reach exactly who wants them, by one edge at each border."""

import random

import pytest
from sim.clusters import SHAPES, backbone, start

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Publish, Retire, Subscribe


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_events_reach_exactly_who_wants_them_once(shape, seed):
    homes, links = SHAPES[shape]
    simulator = start(homes, links, seed)
    rng = random.Random(seed)
    brokers = sorted(homes)
    wants = {}
    for number in range(12):
        broker, least = rng.choice(brokers), rng.randrange(10)
        wants[f"s{number}"] = broker, least
        simulator.do(broker, Subscribe(f"s{number}", 1, "quote", Filter.parse(f"price >= {least}")))
    publishers = rng.sample(brokers, 5)
    for broker in publishers:
        simulator.do(broker, Advertise(f"p{broker}", 1, "quote", Filter()))
    simulator.run(simulator.now + 10)
    assert all(not one.missing for one in simulator.settled.values())
    assert len(simulator.settled) == len(wants) + len(publishers)
    expected = []
    for number in range(40):
        broker, price = rng.choice(publishers), rng.randrange(10)
        simulator.do(broker, Publish(f"p{broker}", 2 + number, "quote", {"price": price, "n": number}, 0))
        expected += [(client, number) for client, (_, least) in wants.items() if price >= least]
    simulator.run(simulator.now + 10)
    assert sorted((one.client, one.event.attributes["n"]) for one in simulator.deliveries) == sorted(expected)
    if "cycle" not in shape:  # there, an edge may be sent what has come to its cluster by a better way
        assert not any(core.dropped for core in simulator.brokers.values())
    assert {why for core in simulator.brokers.values() for why in core.dropped} <= {"repeat"}


def test_another_edge_carries_what_one_did_before_it_leaves():
    """It goes when its neighbours know; and if there is no other, it carries until then."""
    homes, links = backbone(clusters=2, internal=1)
    simulator = start(homes, links)
    simulator.do(102, Advertise("p", 1, "quote", Filter()))
    simulator.do(202, Subscribe("s", 1, "quote", Filter()))
    simulator.run(8)

    def carried(first):
        """By each edge of the first cluster, of ten events."""
        before = [simulator.brokers[edge].carried for edge in (100, 101)]
        for number in range(10):
            simulator.do(102, Publish("p", first + number, "quote", {"n": first + number}, 0))
        simulator.run(simulator.now + 1)
        return [simulator.brokers[edge].carried - was for edge, was in zip((100, 101), before, strict=True)]

    picked = (100, 101)[carried(10).index(10)]
    other = 201 - picked
    simulator.do(picked, Retire())
    simulator.run(simulator.now + 3)
    assert carried(20)[(100, 101).index(other)] == 10
    simulator.crash(picked)
    simulator.do(other, Retire())
    simulator.run(simulator.now + 3)
    for number in range(30, 40):
        simulator.do(102, Publish("p", number, "quote", {"n": number}, 0))
    simulator.run(simulator.now + 1)
    assert [one.event.attributes["n"] for one in simulator.deliveries] == list(range(10, 40))
