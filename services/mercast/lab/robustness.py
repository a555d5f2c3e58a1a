"""Delivery under failures (D-DBR and MERC, section V; figures 23 and 24).

All ordered pairs of brokers count, dead ones too: an event of each broker should reach every other. D-DBR finds any
path that is left. FBR has the trees that were built before the failures: a pair is lost if anything on its path is.

Of MERC the paper gives no figures; it says that an edge is a single point of failure for its cluster. Here MERC's
brokers, those that are left of the transit-stub overlay, publish to each other.
"""

import random
from collections.abc import Iterator
from itertools import pairwise

import networkx as nx
import numpy as np

from mercast.lab.clusters import EDGES, Clusters, everybody, transit_stub, wants
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, holds, within
from mercast.lab.overlays import random_overlay
from mercast.lab.worlds import world
from mercast.overlay.routes import Routes
from mercast.overlay.topology import Topology
from mercast.protocol.stimuli import Publish
from mercast.routing.destination.merc import MERC

BROKERS, DEGREE, FAILED = 100, 6, 0.5


@experiment("A14", "delivery at 50% broker failures and 50% link failures, 100 brokers, degree 6")
def failures(setting: Setting) -> Iterator[Row | Figure]:
    shares = [step / 10 for step in range(10)] if setting.scale == "full" else [0.2, FAILED, 0.8]
    served = _served(setting, shares)
    by_merc = _by_merc(setting, shares)
    for what, figure, ddbr, fbr in (("brokers", 23, 21.8, 8.7), ("links", 24, 86.2, 17.5)):
        series = []
        for place, (name, paper) in enumerate((("D-DBR", ddbr), ("FBR", fbr))):
            ours = {share: 100 * float(np.mean(served[what, share], axis=0)[place]) for share in shares}
            yield within(f"{name}, half of the {what} fail", paper, ours[FAILED], 0.15, "%")
            series.append(Series(name, [(100 * share, mean) for share, mean in ours.items()]))
            series.append(Series(name, [(100 * FAILED, paper)], paper=True))
        merc = {share: 100 * float(np.mean(some)) for (failed, share), some in by_merc.items() if failed == what}
        yield _of_merc(setting, what, by_merc[what, FAILED], 100 * float(np.mean(served[what, FAILED], axis=0)[0]))
        series.append(Series("MERC", [(100 * share, mean) for share, mean in sorted(merc.items())]))
        title = f"Events delivered while {what} fail (Fig. {figure})"
        yield Figure(title, f"% of {what} failed", "% delivered", series)


def _of_merc(setting: Setting, what: str, shares: list[float], ddbr: float) -> Row:
    """Holds if there is less than with D-DBR, since edges are single points of failure."""
    ours = 100 * float(np.mean(shares))
    each = ", ".join(f"{100 * share:.1f}" for share in shares)
    why = f"an edge is a single point of failure: less than D-DBR's {ddbr:.1f}%; overlay by overlay {each}"
    if what == "brokers" and setting.scale == "full":
        clusters = transit_stub(setting.seed)
        dead = set(_chance(setting.seed, 0).sample(range(EDGES, BROKERS), round(FAILED * BROKERS)))
        why += f"; if none of them is an edge, {100 * reached(clusters, dead, set()):.1f}%"
    return holds(f"MERC, half of the {what} fail", "not said", f"{ours:.1f}%", ours < ddbr, why)


def _chance(seed: int, number: int) -> random.Random:
    """What fails in an overlay."""
    return random.Random(seed * 1_000 + number)


def _by_merc(setting: Setting, shares: list[float]) -> dict[tuple[str, float], list[float]]:
    """What MERC delivers, by what fails and which share of it: where half fails on several overlays, else on one."""
    served: dict[tuple[str, float], list[float]] = {}
    for share in shares:
        for number in range(setting.size(5, 1) if share == FAILED else setting.size(1, 0)):
            setting.progress(f"MERC, overlay {number + 1}, {share:.0%} fail")
            clusters, rng = transit_stub(setting.seed + number), _chance(setting.seed, number)
            dead = set(rng.sample(range(BROKERS), round(share * BROKERS)))
            cut = set(rng.sample(clusters.links, round(share * len(clusters.links))))
            served.setdefault(("brokers", share), []).append(reached(clusters, dead, set()))
            served.setdefault(("links", share), []).append(reached(clusters, set(), cut))
    return served


def reached(clusters: Clusters, dead: set[int], cut: set[tuple[int, int]]) -> float:
    """The share of all pairs of which the second gets the event of the first, by MERC's brokers that are left."""
    left = [broker for broker in sorted(clusters.homes) if broker not in dead]
    links = [link for link in clusters.links if link not in cut and not dead & set(link)]
    simulator = world(MERC, links, everybody(left), clusters=clusters.homes, matcher="scan")
    for broker in left:
        simulator.do(broker, Publish("p", 3, "news", dict.fromkeys(map(wants, left), True), 0))
    simulator.run(simulator.now + 10)
    served = len([one for one in simulator.deliveries if one.broker != one.event.id.broker])
    return served / (len(clusters.homes) * (len(clusters.homes) - 1))


def _served(setting: Setting, shares: list[float]) -> dict[tuple[str, float], list[tuple[float, float]]]:
    """What D-DBR and FBR deliver on each of several overlays, by what fails and which share of it."""
    served: dict[tuple[str, float], list[tuple[float, float]]] = {}
    overlays = setting.size(20, 3)
    for number in range(overlays):
        topology = random_overlay(BROKERS, DEGREE, setting.seed + number)
        paths = paths_of(topology)
        links = [(one, other) for one in topology.brokers for other in topology.neighbours(one) if one < other]
        for share in shares:
            setting.progress(f"overlay {number + 1} of {overlays}, {share:.0%} fail")
            rng = _chance(setting.seed, number)
            dead = set(rng.sample(topology.brokers, round(share * BROKERS)))
            cut = set(rng.sample(links, round(share * len(links))))
            served.setdefault(("brokers", share), []).append(delivered(topology, links, paths, dead, set()))
            served.setdefault(("links", share), []).append(delivered(topology, links, paths, set(), cut))
    return served


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
