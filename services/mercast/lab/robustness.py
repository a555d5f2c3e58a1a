"""Delivery under failures (D-DBR, section V; figures 23 and 24).

All ordered pairs of brokers count, dead ones too: an event of each broker should reach every other. D-DBR finds any
path that is left. FBR has the trees that were built before the failures: a pair is lost if anything on its path is.
"""

import random
from collections.abc import Iterator
from itertools import pairwise

import networkx as nx
import numpy as np

from mercast.lab.experiment import Row, Setting, experiment, within
from mercast.lab.overlays import random_overlay
from mercast.overlay.routes import Routes
from mercast.overlay.topology import Topology

BROKERS, DEGREE, FAILED = 100, 6, 0.5


@experiment("A14", "delivery at 50% broker failures and 50% link failures, 100 brokers, degree 6")
def failures(setting: Setting) -> Iterator[Row]:
    shares: dict[str, list[tuple[float, float]]] = {"brokers": [], "links": []}
    for number in range(setting.size(20, 3)):
        setting.progress(f"overlay {number + 1}")
        topology = random_overlay(BROKERS, DEGREE, setting.seed + number)
        paths = paths_of(topology)
        rng = random.Random(setting.seed * 1_000 + number)
        links = [(one, other) for one in topology.brokers for other in topology.neighbours(one) if one < other]
        dead = set(rng.sample(topology.brokers, round(FAILED * BROKERS)))
        cut = set(rng.sample(links, round(FAILED * len(links))))
        shares["brokers"].append(delivered(topology, links, paths, dead, set()))
        shares["links"].append(delivered(topology, links, paths, set(), cut))
    for what, ddbr, fbr in (("brokers", 21.8, 8.7), ("links", 86.2, 17.5)):
        ours = 100 * np.mean(shares[what], axis=0)
        yield within(f"D-DBR, half of the {what} fail", ddbr, float(ours[0]), 0.15, "%")
        yield within(f"FBR, half of the {what} fail", fbr, float(ours[1]), 0.15, "%")


def paths_of(topology: Topology) -> dict[tuple[int, int], list[int]]:
    """The path of each pair along the trees, both ends included."""
    routes = {broker: Routes(topology, broker) for broker in topology.brokers}
    paths = {}
    for source in topology.brokers:
        for target in topology.brokers:
            path = [source]
            while path[-1] != target:
                path.append(routes[path[-1]].next_hop(target))
            paths[source, target] = path
    return paths


def delivered(
    topology: Topology,
    links: list[tuple[int, int]],
    paths: dict[tuple[int, int], list[int]],
    dead: set[int],
    cut: set[tuple[int, int]],
) -> tuple[float, float]:
    """The shares of pairs that D-DBR and FBR still serve."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(broker for broker in topology.brokers if broker not in dead)
    graph.add_edges_from(link for link in links if link not in cut and not dead & set(link))
    pairs = len(topology.brokers) * (len(topology.brokers) - 1)
    connected = sum(len(part) * (len(part) - 1) for part in nx.connected_components(graph))
    whole = sum(
        len(path) > 1 and all(graph.has_edge(one, other) for one, other in pairwise(path)) for path in paths.values()
    )
    return connected / pairs, whole / pairs
