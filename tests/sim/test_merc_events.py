"""MERC over several clusters: events reach exactly who wants them, by one edge at each border."""

import random

import pytest
from sim.clusters import SHAPES, backbone, start

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Publish, Retire, Subscribe, Unsubscribe
from mercast.routing.destination.ways import Ways


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(1))
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
    simulator.run(simulator.now + 20)  # until in circles, too, all have heard of the best ways
    assert all(not one.missing for one in simulator.settled.values())
    assert len(simulator.settled) == len(wants) + len(publishers)
    expected = []
    for number in range(40):
        broker, price = rng.choice(publishers), rng.randrange(10)
        simulator.do(broker, Publish(f"p{broker}", 2 + number, "quote", {"price": price, "n": number}, 0))
        expected += [(client, number) for client, (_, least) in wants.items() if price >= least]
    simulator.run(simulator.now + 10)
    assert sorted((one.client, one.event.attributes["n"]) for one in simulator.deliveries) == sorted(expected)
    assert not any(core.dropped for core in simulator.brokers.values())


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


RINGS = [([1, 2, 5, 6, 4, 3], [1, 3], 6), ([1, 2, 3, 4, 5, 6], [1, 6], 4)]


def ring(clusters):
    """One broker in each, and an edge between neighbours."""
    homes, links = {cluster: (cluster,) for cluster in clusters}, []
    for one, other in zip(clusters, clusters[1:] + clusters[:1], strict=True):
        edge = 1000 + 10 * one + other
        homes[edge] = one, other
        links += [(one, edge), (other, edge)]
    return homes, links


def random_ring(seed):
    rng = random.Random(seed)
    size = rng.choice([4, 6, 8])
    clusters = rng.sample(range(1, 10), size)
    return clusters, rng.sample(clusters, size // 2), rng.choice(clusters)


@pytest.mark.parametrize(("clusters", "publishers", "subscriber"), [*RINGS, *map(random_ring, range(12))])
def test_in_a_ring_events_go_by_the_way_that_advertisements_came(clusters, publishers, subscriber):
    """Of two ways of one length both ends choose the same, whatever else is advertised."""
    homes, links = ring(clusters)
    simulator = start(homes, links)
    for broker in publishers:
        simulator.do(broker, Advertise("p", 1, "quote", Filter()))
    simulator.do(subscriber, Subscribe("s", 2, "quote", Filter()))
    simulator.run(12)
    for broker in publishers:
        simulator.do(broker, Publish("p", 3, "quote", {"from": broker}, 0))
    simulator.run(20)
    assert sorted(one.event.attributes["from"] for one in simulator.deliveries) == sorted(publishers)


def test_groups_of_edges_that_nothing_is_told_by_any_more_are_forgotten():
    homes, links = backbone(clusters=2, internal=1)
    simulator = start(homes, links)
    simulator.do(102, Advertise("p", 1, "quote", Filter()))
    carriers = simulator.brokers[102].places[0].carriers
    for number in range(5):
        simulator.do(202, Subscribe("s", 2 * number + 1, "quote", Filter()))
        simulator.run(simulator.now + 2)
        assert len(carriers._groups) == len(carriers._numbers) == 1
        simulator.do(202, Unsubscribe("s", 2 * number + 2, 2 * number + 1))
        simulator.run(simulator.now + 2)
        assert not carriers._groups
        assert not carriers._used


def test_an_edge_does_not_look_at_all_advertisements_for_each_event(monkeypatch):
    homes, links = backbone(clusters=2, internal=1, edges=1)
    simulator = start(homes, links)
    simulator.do(201, Subscribe("s", 1, "quote", Filter()))
    for client in range(50):
        simulator.do(101, Advertise(f"p{client}", 1, "quote", Filter()))
    simulator.run(30)
    simulator.validate = False
    looked, of = [], Ways.of
    monkeypatch.setattr(Ways, "of", lambda self, origin: looked.append(origin) or of(self, origin))
    for number in range(20):
        simulator.do(101, Publish("p0", 2 + number, "quote", {}, 0))
        simulator.run(simulator.now + 0.1)
    assert len(simulator.deliveries) == 20
    assert len(looked) <= 20 * 50
