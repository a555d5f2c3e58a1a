"""Self-organising reconfiguration in a network of MERC: every cluster by itself, the backbone too (claim A13).

The paper has no figures of this. The same number of brokers and links, and the same messages, as there for D-DBR: a
message for another cluster goes to the own edge, to the other one, and on from there, so in each of the three clusters
it is one message, from where it enters to where it leaves. Routing accuracy is messages over hops, as within a cluster.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercast.overlay.topology import Array, Topology
from mercast.sim.networks import gnm_edges

CLUSTERS, SIZE = 7, 10
"""Each with one edge."""

BACKBONE_LINKS, LINKS = 7, 14
"""105 in all: 3 for each of 70 brokers on average."""


class Cluster(NamedTuple):
    topology: Topology
    rates: Array
    """Messages between every two of its brokers, in the order of their numbers."""


def clusters(rates: Array, seed: int) -> list[Cluster]:
    """The backbone, and clusters of brokers that follow each other, the first of each its edge."""
    homes = [range(first, first + SIZE) for first in range(0, CLUSTERS * SIZE, SIZE)]
    chances = range(seed * (1 + CLUSTERS), (seed + 1) * (1 + CLUSTERS))
    between = np.array([[rates[one][:, other].sum() for other in homes] for one in homes]) * (
        1 - np.eye(CLUSTERS, dtype=np.int64)
    )
    found = [Cluster(_random([home[0] for home in homes], BACKBONE_LINKS, chances[0]), between)]
    for home, chance in zip(homes, chances[1:], strict=True):
        found.append(Cluster(_random(home, LINKS, chance), _inside(rates, home)))
    return found


def _random(brokers: Sequence[int], links: int, seed: int) -> Topology:
    return Topology.of([(brokers[one], brokers[other]) for one, other in gnm_edges(len(brokers), links, seed)])


def _inside(rates: Array, home: range) -> Array:
    """What its edge sends and receives in a cluster, it also does for all others."""
    inside = rates[home][:, home].copy()
    inside[1:, 0] += rates[home[1:]].sum(axis=1) - rates[home[1:]][:, home].sum(axis=1)
    inside[0, 1:] += rates[:, home[1:]].sum(axis=0) - rates[home][:, home[1:]].sum(axis=0)
    return inside
