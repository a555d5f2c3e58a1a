"""Clusters of several shapes, as {broker: its clusters} and links, and brokers in them."""

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
