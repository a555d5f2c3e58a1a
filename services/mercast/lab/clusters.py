"""The overlays of several clusters that MERC is tried on (D-DBR and MERC, section V-A).

Transit-stub: 10 transit nodes are the edges; each is also in a cluster of its own with 9 internal brokers, and all of
them are the backbone. A broker has 6 links on average. Where they are is not said, and it matters (claim A5):

- `ALIKE`: every cluster, the backbone too, is a connected G(n, m) in which edges are linked like everybody else. 30
  links between the edges, 6 for each, leave 27 for each cluster.
- `ONE_LINK`: as generators of transit-stub networks have it by default, a cluster hangs on its edge by one link.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mercast.content import Filter
from mercast.lab.overlays import Lists
from mercast.lab.worlds import world
from mercast.overlay.cluster import NUMBER
from mercast.overlay.split import Rule
from mercast.protocol.rows import Copied
from mercast.protocol.stimuli import Advertise, Publish, Stimulus, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.sim.networks import Edge, gnm_edges

EDGES, INTERNAL = 10, 90
BACKBONE = 0
"""Its number as a cluster; the others count from 1."""

LINKS = 300
"""So that 100 brokers have 6 on average."""


class Clusters(NamedTuple):
    homes: dict[int, tuple[int, ...]]
    """The clusters of each broker, its home first."""
    links: list[Edge]

    def members(self, cluster: int) -> list[int]:
        return [broker for broker, clusters in self.homes.items() if cluster in clusters]


class Reading(NamedTuple):
    """Where the links of the transit-stub overlay are."""

    name: str
    backbone: int = 30
    """Links between edges; the others are shared out evenly."""
    one_link: bool = False
    """Whether one link alone leads from an edge into its cluster."""
    why: str = ""


ALIKE = Reading(
    "edges linked like others",
    why="where the links are is not said: here edges are linked like others; it was chosen knowing the figures of both "
    "this and one link into each cluster, which stands below",
)
ONE_LINK = Reading(
    "one link into each cluster",
    one_link=True,
    why="the usual reading of transit-stub: all that enters or leaves a cluster shares one link, so its lists are long",
)
SPARSE = Reading(
    "10 links in the backbone", 10, why="edges linked like others, with a backbone that is little more than a tree"
)
DENSE = Reading(
    "40 links in the backbone",
    40,
    why="edges linked like others, with a backbone of nearly all links that there can be",
)


def transit_stub(seed: int, reading: Reading = ALIKE) -> Clusters:
    """Edges come first; each has the next internal brokers in its cluster."""
    size = INTERNAL // EDGES
    each = (LINKS - reading.backbone) // EDGES
    homes: dict[int, tuple[int, ...]] = {edge: (1 + edge, BACKBONE) for edge in range(EDGES)}
    links = gnm_edges(EDGES, reading.backbone, seed)
    for edge in range(EDGES):
        internal = range(EDGES + size * edge, EDGES + size * (edge + 1))
        homes |= dict.fromkeys(internal, (1 + edge,))
        chance = seed * LINKS + edge
        if reading.one_link:
            links += [(edge, internal[0]), *_among(internal, each - 1, chance)]
        else:
            links += _among((edge, *internal), each, chance)
    return Clusters(homes, links)


def _among(brokers: Sequence[int], links: int, seed: int) -> list[Edge]:
    return [(brokers[one], brokers[other]) for one, other in gnm_edges(len(brokers), links, seed)]


def halves(brokers: int) -> Clusters:
    """A line: its first half and its second, both with the broker in the middle (if two are, the second of them)."""
    middle = brokers // 2
    homes: dict[int, tuple[int, ...]] = {at: (1,) if at < middle else (2,) for at in range(brokers)}
    homes[middle] = 2, 1
    return Clusters(homes, [(at, at + 1) for at in range(brokers - 1)])


def everybody(brokers: Sequence[int]) -> list[tuple[int, Stimulus]]:
    """A publisher and a subscriber at every broker; events say in their attributes who wants them."""
    asked: list[tuple[int, Stimulus]] = []
    for broker in brokers:
        asked.append((broker, Advertise("p", 1, "news", Filter())))
        asked.append((broker, Subscribe("s", 2, "news", Filter.parse(wants(broker)))))
    return asked


def wants(broker: int) -> str:
    return f"wanted_by_{broker}"


class Crossing(Lists):
    """Events go through MERC's brokers, whose taps say how long the lists of all messages were."""

    def __init__(self, clusters: Clusters, rule: Rule = "paper") -> None:
        super().__init__(sorted(clusters.homes))
        asked = everybody(self.brokers)
        self._simulator = world(MERC, clusters.links, asked, rule=rule, clusters=clusters.homes, matcher="scan")
        self._requests = 2

    def send(self, source: int, destinations: Sequence[int]) -> None:
        self._requests += 1
        self._simulator.rows.clear()
        self._simulator.do(
            source, Publish("p", self._requests, "news", dict.fromkeys(map(wants, destinations), True), 0)
        )
        self._simulator.run(self._simulator.now + 1)
        for broker, row in self._simulator.rows:
            if isinstance(row, Copied):
                self.count(row.neighbour & NUMBER, broker, row.list_length)
