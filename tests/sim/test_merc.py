"""MERC over several clusters: events reach exactly who wants them, by one edge at each border."""

import random

import pytest

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.simulator import Simulator

BACKBONE = 99


def backbone(clusters=3, internal=3, edges=2):
    """{broker: its clusters}, links: each cluster a ring, its edges in the backbone too."""
    homes, links, border = {}, [], []
    for cluster in range(1, clusters + 1):
        mine = [cluster * 100 + number for number in range(internal + edges)]
        links += [(one, other) for one, other in zip(mine, mine[1:] + mine[:1], strict=True) if one != other]
        for broker in mine:
            homes[broker] = (cluster, BACKBONE) if broker in mine[:edges] else (cluster,)
        border.append(mine[:edges])
    for one in range(clusters):
        other = (one + 1) % clusters
        links += [(a, b) for a in border[one] for b in border[other] if (b, a) not in links]
    return homes, links


def shared(chain=3, internal=3, cycle=False):
    """Neighbouring clusters share an edge."""
    homes, links = {}, []
    members = {cluster: [] for cluster in range(1, chain + 1)}
    for cluster in members:
        members[cluster] += [cluster * 100 + number for number in range(internal)]
        homes |= dict.fromkeys(members[cluster], (cluster,))
    pairs = [(one, one + 1) for one in range(1, chain)] + ([(chain, 1)] if cycle else [])
    for number, (one, other) in enumerate(pairs):
        for twin in range(2):
            edge = 1000 + 2 * number + twin
            homes[edge] = (one, other)
            members[one].append(edge)
            members[other].append(edge)
    for mine in members.values():
        links += [(one, other) for one, other in zip(mine, mine[1:] + mine[:1], strict=True)]
    return homes, sorted({tuple(sorted(link)) for link in links})


def start(homes, links, seed=1):
    simulator = Simulator(lambda me, incarnation: MERC(me, incarnation, Settings(clusters=homes[me])), seed=seed)
    simulator.validate = True
    simulator.build(links)
    simulator.run(5)
    return simulator


SHAPES = {
    "backbone": backbone(),
    "one edge each": backbone(edges=1),
    "chain": shared(),
    "cycle": shared(cycle=True),
    "long cycle": shared(5, 2, cycle=True),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
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
