"""Physical networks from seeds: routers, and links with latency, bandwidth and class; always connected.

networkx draws the graphs it knows. Where chance alone would leave routers apart, a rule that each generator names joins
them; what cannot be had at all is refused with a ValueError. The same arguments give the same network.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

Array: TypeAlias = npt.NDArray[Any]
Edge: TypeAlias = tuple[int, int]

_ATTEMPTS = 1_000
"""Graphs that are drawn until one is connected."""


@dataclass(frozen=True)
class LinkClass:
    """Links of one sort."""

    name: str
    latency: tuple[float, float] = (0.01, 0.01)
    """Seconds: that of each link is drawn evenly between the two."""
    bandwidth: float = math.inf
    """Bytes per second, each way."""

    def __post_init__(self) -> None:
        low, high = self.latency
        if not 0 < low <= high < math.inf:
            raise ValueError(f"latency of {self.name} links: {low} to {high} s, must ascend from above 0")
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth of {self.name} links: {self.bandwidth}, must be above 0")


PLAIN = LinkClass("plain")


class PhysicalLink(NamedTuple):
    one: int
    other: int
    """The higher of its routers."""
    latency: float
    bandwidth: float
    kind: str
    """The name of its class."""


@dataclass(frozen=True)
class Network:
    """Routers are numbered from 0; those of transit domains come first."""

    routers: int
    links: tuple[PhysicalLink, ...]
    """Ascending by their routers."""
    domains: tuple[range, ...] = ()
    """The routers of each domain, transit domains first; none where there is no such division."""
    transit: int = 0
    """How many routers belong to transit domains."""

    def __post_init__(self) -> None:
        graph = nx.Graph([(link.one, link.other) for link in self.links])
        graph.add_nodes_from(range(self.routers))
        if self.routers < 1 or len(graph) > self.routers or not nx.is_connected(graph):
            raise ValueError(f"the links do not connect the routers 0 to {self.routers - 1} and no others")
        if graph.number_of_edges() < len(self.links) or any(link.one >= link.other for link in self.links):
            raise ValueError("two routers have one link at most, named from the lower to the higher")
        if not all(link.latency > 0 and link.bandwidth > 0 for link in self.links):
            raise ValueError("latency and bandwidth of links must be above 0")


# -- flat networks ---------------------------------------------------------------------------------------------------


def line(routers: int, kind: LinkClass = PLAIN, seed: int = 0) -> Network:
    _at_least(1, routers, "routers")
    return _network(routers, [(nx.path_graph(routers).edges, kind)], random.Random(seed))


def gnm(routers: int, links: int, seed: int, kind: LinkClass = PLAIN) -> Network:
    """A random network of so many links."""
    return _network(routers, [(gnm_edges(routers, links, seed), kind)], random.Random(seed))


def gnm_edges(nodes: int, links: int, seed: int) -> list[Edge]:
    """Connected G(n, m): the first that is, of random graphs with so many nodes and links.

    With so few links that this would take too long (by the theorem of Erdős and Rényi, a graph is connected with a
    probability near exp(−n·exp(−2m/n))), a random tree, and the other links at random.
    """
    _at_least(1, nodes, "nodes")
    _within(links, nodes - 1, math.comb(nodes, 2), f"links between {nodes} nodes")
    if math.exp(-nodes * math.exp(-2 * links / nodes)) * _ATTEMPTS > 1:
        graph = _first_connected(lambda attempt: nx.gnm_random_graph(nodes, links, seed=attempt), seed)
        if graph is not None:
            return list(graph.edges)
    return _links_inside([range(nodes)], links, "", random.Random(seed))


def regular(routers: int, degree: int, seed: int, kind: LinkClass = PLAIN) -> Network:
    """Every router has so many links: the first random network of this sort that is connected."""
    _at_least(1, routers, "routers")
    if not min(2, routers - 1) <= degree < routers or routers * degree % 2:
        raise ValueError(f"no connected network of {routers} routers with {degree} links each exists")
    graph = _first_connected(lambda attempt: nx.random_regular_graph(degree, routers, seed=attempt), seed)
    if graph is None:
        raise ValueError(f"no connected network of {routers} routers with {degree} links each was found")
    return _network(routers, [(graph.edges, kind)], random.Random(seed))


def waxman(routers: int, seed: int, kind: LinkClass = PLAIN, beta: float = 0.4, alpha: float = 0.1) -> Network:
    """Routers on a square, linked by chance: beta · exp(−distance / (alpha · longest distance)).

    Parts that chance left apart are joined by the shortest links that do it. Latency follows distance, from the lower
    end of its class beside each other to the higher end along the diagonal.
    """
    _at_least(2, routers, "routers")
    if not 0 < beta <= 1 or not alpha > 0:
        raise ValueError(f"beta {beta}, alpha {alpha}: must be above 0, and beta at most 1")
    graph = nx.waxman_graph(routers, beta, alpha, seed=seed)
    apart = squareform(pdist([graph.nodes[router]["pos"] for router in range(routers)]))
    edges = _ascending([*graph.edges, *_joining(nx.to_numpy_array(graph, range(routers)) > 0, apart)])
    low, high = kind.latency
    latency = low + (high - low) * apart / math.sqrt(2)
    links = (PhysicalLink(one, other, float(latency[one, other]), kind.bandwidth, kind.name) for one, other in edges)
    return Network(routers, tuple(links))


def _joining(linked: Array, apart: Array) -> list[Edge]:
    """A shortest spanning tree in which links that exist cost almost nothing (nothing at all would mean no link)."""
    almost_nothing = 1e-9
    costs = csr_array(np.where(linked, 0, apart) + almost_nothing)  # of a dense matrix, scipy drops what is near zero
    ones, others = minimum_spanning_tree(costs).nonzero()
    return list(zip(ones.tolist(), others.tolist(), strict=True))


# -- transit-stub ----------------------------------------------------------------------------------------------------


class Links(NamedTuple):
    """So many links of a class, all domains together."""

    number: int
    kind: LinkClass


@dataclass(frozen=True)
class TransitStub:
    """Stub domains hang on the routers of transit domains, which are linked with each other (Zegura et al.; GT-ITM)."""

    transit_domains: int
    transit_routers: float
    """Per transit domain, on average."""
    stub_domains: float
    """Per transit router, on average."""
    stub_routers: float
    """Per stub domain, on average."""
    between: Links
    """Between transit domains, at most one for two domains."""
    transit: Links
    """Inside transit domains."""
    access: Links
    """From stub domains to transit routers: one each to the router it hangs on; more make some multi-homed."""
    stub: Links
    """Inside stub domains."""
    spread: float = 0.0
    """Sizes differ from their average by up to this share of it; totals stay what the averages make them."""


def transit_stub(shape: TransitStub, seed: int) -> Network:
    """A random tree connects each domain, and one the transit domains; the other links of a class are anywhere."""
    _at_least(1, shape.transit_domains, "transit domains")
    rng = random.Random(seed)
    sizes = _sizes(shape.transit_domains, shape.transit_routers, shape.spread, "routers in a transit domain", rng)
    transit = _numbered(sizes, 0)
    routers = sum(sizes)
    stubs = _sizes(routers, shape.stub_domains, shape.spread, "stub domains on a transit router", rng, least=0)
    hosts = [router for router, count in enumerate(stubs) for _ in range(count)]
    stub = _numbered(_sizes(len(hosts), shape.stub_routers, shape.spread, "routers in a stub domain", rng), routers)
    roads = _links_inside([range(len(transit))], shape.between.number, "between transit domains", rng)
    between = [(rng.choice(transit[one]), rng.choice(transit[other])) for one, other in roads]
    edges = [
        (between, shape.between.kind),
        (_links_inside(transit, shape.transit.number, "inside transit domains", rng), shape.transit.kind),
        (_access(hosts, stub, routers, shape.access.number, rng), shape.access.kind),
        (_links_inside(stub, shape.stub.number, "inside stub domains", rng), shape.stub.kind),
    ]
    return _network(routers + sum(map(len, stub)), edges, rng, (*transit, *stub), routers)


def _sizes(count: int, average: float, spread: float, what: str, rng: random.Random, least: int = 1) -> list[int]:
    """So many whole numbers around an average, whose sum is what the average makes it."""
    if average < least or not 0 <= spread <= 1:
        raise ValueError(f"{what}: {average} on average, spread {spread}; must be at least {least}, from 0 to 1")
    low, high = max(least, math.floor(average * (1 - spread))), math.ceil(average * (1 + spread))
    sizes = [rng.randint(low, high) for _ in range(count)]
    missing = round(count * average) - sum(sizes)
    while missing:
        chosen, step = rng.randrange(count), 1 if missing > 0 else -1
        if low <= sizes[chosen] + step <= high:
            sizes[chosen] += step
            missing -= step
    return sizes


def _numbered(sizes: Iterable[int], first: int) -> list[range]:
    domains = []
    for size in sizes:
        domains.append(range(first, first + size))
        first += size
    return domains


def _access(hosts: Sequence[int], stub: Sequence[range], transit: int, count: int, rng: random.Random) -> list[Edge]:
    """A link from a router of each stub domain to its host, and more from anywhere to anywhere."""
    own = [(host, rng.choice(domain)) for host, domain in zip(hosts, stub, strict=True)]
    possible = product(range(transit), (router for domain in stub for router in domain))
    return _and_more(own, possible, count, "from stub domains to transit routers", rng)


# -- what they share -------------------------------------------------------------------------------------------------


def _network(
    routers: int,
    edges: Iterable[tuple[Iterable[Edge], LinkClass]],
    rng: random.Random,
    domains: tuple[range, ...] = (),
    transit: int = 0,
) -> Network:
    links = [
        PhysicalLink(one, other, rng.uniform(*kind.latency), kind.bandwidth, kind.name)
        for some, kind in edges
        for one, other in _ascending(some)
    ]
    return Network(routers, tuple(sorted(links)), domains, transit)


def _ascending(edges: Iterable[Edge]) -> list[Edge]:
    return sorted({(min(edge), max(edge)) for edge in edges})


def _first_connected(draw: Callable[[int], "nx.Graph[int]"], seed: int) -> "nx.Graph[int] | None":
    graphs = (draw(seed * _ATTEMPTS + attempt) for attempt in range(_ATTEMPTS))
    return next((graph for graph in graphs if nx.is_connected(graph)), None)


def _links_inside(domains: Sequence[range], count: int, where: str, rng: random.Random) -> list[Edge]:
    """A random tree in each domain, and more links in any of them."""
    trees = [
        (domain[one], domain[other])
        for domain in domains
        for one, other in _ascending(nx.random_labeled_tree(len(domain), seed=rng).edges)
    ]
    return _and_more(trees, (pair for domain in domains for pair in combinations(domain, 2)), count, where, rng)


def _and_more(needed: list[Edge], possible: Iterable[Edge], count: int, where: str, rng: random.Random) -> list[Edge]:
    """The links that are needed, and others of the possible ones up to the count; all named from the lower end."""
    taken = set(needed)
    others = [edge for edge in possible if edge not in taken]
    _within(count, len(needed), len(needed) + len(others), f"links {where}")
    return needed + rng.sample(others, count - len(needed))


def _at_least(least: int, number: int, what: str) -> None:
    if number < least:
        raise ValueError(f"{number} {what}: must be at least {least}")


def _within(count: int, least: int, most: int, what: str) -> None:
    if not least <= count <= most:
        raise ValueError(f"{count} {what}: must be {least} to {most}")
