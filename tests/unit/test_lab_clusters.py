"""Worlds of several clusters for experiments: loaded at once they are those built by messages, and journeys cross
clusters as events do in the simulator."""

import random
from collections import Counter

import pytest

from mercast.content import Filter
from mercast.lab.clusters import BACKBONE, DENSE, ONE_LINK, SPARSE, Clusters, Crossing, halves, transit_stub
from mercast.lab.load import LINK, PAPER, as_counted
from mercast.lab.worlds import world
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.journeys import run, travel
from mercast.sim.simulator import Simulator

THREE = Clusters(
    {
        0: (1, BACKBONE),
        1: (1, BACKBONE),
        2: (2, BACKBONE),
        3: (3, BACKBONE),
        4: (1,),
        5: (1,),
        6: (2,),
        7: (3,),
        8: (3,),
    },
    [(0, 2), (1, 3), (2, 3), (0, 4), (4, 5), (1, 5), (0, 1), (2, 6), (3, 7), (7, 8), (3, 8)],
)
"""The first cluster has two edges, which share the backbone with it: their link lies in their home."""


def clients(brokers, rng):
    for broker in rng.sample(brokers, len(brokers) // 2):
        yield broker, Advertise("p", 1, rng.choice(["red", "blue"]), Filter.parse(f"x > {rng.randint(0, 9)}"))
    for broker in brokers:
        filter = Filter.parse(f"x BETWEEN {rng.randint(0, 5)} AND {rng.randint(5, 9)}")
        yield broker, Subscribe("s", 2, rng.choice(["red", "blue", None]), filter)


def tables(core):
    core.validate()
    said = {peer: items for peer, items in core.exchange.said.items() if items}
    told = {peer: items for peer, items in core.exchange.told.items() if items}
    views = [(one.state.known(), one.state.digest, one.state.routes.sprt) for one in core.clusters]
    places = [
        {origin: table.of(origin) for origin in table}
        for place in core.places
        for table in (place.advertisements, place.subscriptions)
    ]
    return said, told, views, places, [set(place.matcher) for place in core.places]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("clusters", [THREE, halves(2), halves(5)])
def test_loaded_tables_equal_those_built_by_messages(clusters, seed):
    quiet = Timing(heart_beat=1_000.0)
    built, loaded = (
        Simulator(lambda me, number: MERC(me, number, Settings(timing=quiet, clusters=clusters.homes[me])))
        for _ in range(2)
    )
    asked = list(clients(sorted(clusters.homes), random.Random(seed)))
    built.build(clusters.links)
    built.run(10)
    for broker, stimulus in asked:
        built.do(broker, stimulus)
    built.run(40)
    converge(loaded, clusters.links, asked)
    assert {b: tables(core) for b, core in loaded.brokers.items()} == {
        b: tables(core) for b, core in built.brokers.items()
    }
    assert loaded.settled.keys() == built.settled.keys()


def test_journeys_across_clusters_take_as_long_as_in_the_simulator():
    rng = random.Random(4)
    brokers = sorted(THREE.homes)
    asked = [(broker, Advertise("p", 1, "red", Filter())) for broker in brokers]
    for broker in brokers:
        asked += [(broker, Subscribe("s", 2 + n, "red", Filter.parse(f"x > {n}"))) for n in range(1 + broker)]
    events = [(rng.choice(brokers), Publish("p", 50 + n, "red", {"x": rng.randrange(12)}, n)) for n in range(60)]
    simulator, recording = (world(MERC, THREE.links, asked, PAPER, LINK, clusters=THREE.homes) for _ in range(2))
    for number, (broker, publish) in enumerate(events):
        simulator.at(float(number), lambda broker=broker, publish=publish: simulator.do(broker, publish))
    simulator.run(1_000.0)
    slowest, counts = [0.0] * len(events), [0] * len(events)
    for delivery in simulator.deliveries:
        slowest[delivery.event.time] = max(slowest[delivery.event.time], delivery.time - delivery.event.time)
        counts[delivery.event.time] += 1
    load = run([travel(recording.brokers, *event) for event in events], 1.0, as_counted, LINK)
    assert load.deliveries.tolist() == counts != [0] * len(events)
    assert load.slowest == pytest.approx(slowest)


def test_the_transit_stub_overlay_is_the_papers():
    """Section V-A: 10 edges and 90 internal brokers, 6 links on average."""
    for reading in (SPARSE, DENSE, ONE_LINK):
        clusters = transit_stub(3, reading)
        assert len({frozenset(link) for link in clusters.links}) == 300
    assert Counter(len(places) for places in clusters.homes.values()) == {2: 10, 1: 90}
    assert [len(clusters.members(cluster)) for cluster in range(11)] == [10] * 11
    assert transit_stub(3) == transit_stub(3) != transit_stub(4)
    into = [link for link in clusters.links if min(link) < 10 <= max(link)]
    assert into == [(edge, 10 + 9 * edge) for edge in range(10)]


def test_lists_are_those_of_the_messages():
    """A line of five with the edge in the middle: the list of the first cluster names the edge alone."""
    crossing = Crossing(halves(5))
    crossing.send(0, [3, 4])
    assert crossing.lengths == {1: 3, 2: 1}
    assert crossing.by_broker == {0: {1: 1}, 1: {1: 2}, 2: {1: 1, 2: 1}, 3: {1: 1, 2: 1}, 4: {1: 1}}
