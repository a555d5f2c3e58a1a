"""Brokers on a physical network: what lies beneath the links of the overlay, and what it has to carry.

Messages take the shortest path by latency. A multicast takes the paths from its source to each member, and crosses each
link once (Kyra, section V: "a shortest path tree formed by the merger of the unicast routes"). Link stress is what
crossed each physical link. Overlay links have the narrowest bandwidth of their path each for itself: they do not wait
for one another where their paths meet.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from mercast.sim.links import Link, count_of, size_of
from mercast.sim.networks import LinkClass, Network, PhysicalLink

Array: TypeAlias = npt.NDArray[Any]


def place(brokers: Iterable[int], network: Network, seed: int, among: Iterable[int] | None = None) -> dict[int, int]:
    """Each broker on a router of its own, at random: of all, or among these."""
    wanted, routers = sorted(brokers), sorted(range(network.routers) if among is None else among)
    if len(wanted) > len(routers):
        raise ValueError(f"{len(wanted)} brokers on {len(routers)} routers: each must have one of its own")
    return dict(zip(wanted, random.Random(seed).sample(routers, len(wanted)), strict=True))


def attach(network: Network, at: Mapping[int, int], kind: LinkClass, seed: int) -> tuple[Network, dict[int, int]]:
    """Brokers beside their routers instead of on them, each with a link of its own: the network and the places now."""
    rng = random.Random(seed)
    places = dict(zip(sorted(at), range(network.routers, network.routers + len(at)), strict=True))
    links = [
        PhysicalLink(at[broker], end, rng.uniform(*kind.latency), kind.bandwidth, kind.name)
        for broker, end in places.items()
    ]
    wider = replace(network, routers=network.routers + len(at), links=tuple(sorted([*network.links, *links])))
    return wider, places


class Load(NamedTuple):
    """What crossed the links of a class."""

    links: int
    messages: int
    bytes: int


class Stress:
    """What crossed each physical link, by the place of the link in the network."""

    def __init__(self, network: Network) -> None:
        self._kinds = np.array([link.kind for link in network.links], dtype=object)
        self._latency = np.array([link.latency for link in network.links])
        self.messages = np.zeros(len(network.links), np.int64)
        self.bytes = np.zeros(len(network.links), np.int64)

    def record(self, links: Array, messages: int, size: int) -> None:
        """So many messages, of so many bytes together, crossed these links, each once."""
        self.messages[links] += messages
        self.bytes[links] += size

    def clear(self) -> None:
        self.messages[:] = 0
        self.bytes[:] = 0

    def by_class(self) -> dict[str, Load]:
        chosen = {kind: self._kinds == kind for kind in sorted(set(self._kinds))}
        return {
            kind: Load(int(these.sum()), int(self.messages[these].sum()), int(self.bytes[these].sum()))
            for kind, these in chosen.items()
        }

    def usage(self) -> float:
        """Kyra's network resource usage: the latencies of the links, as often as a message crossed them."""
        return float(self.messages @ self._latency)


class Physical:
    def __init__(self, network: Network, at: Mapping[int, int]) -> None:
        """`at` names the router of each broker."""
        self.network = network
        self.at = dict(sorted(at.items()))
        self.stress = Stress(network)
        self._row = {broker: row for row, broker in enumerate(self.at)}
        self._number = {(link.one, link.other): number for number, link in enumerate(network.links)}
        self._number |= {(other, one): number for (one, other), number in self._number.items()}
        places = list(self.at.values())
        distances, self._before = dijkstra(_matrix(network), directed=False, indices=places, return_predecessors=True)
        self.latencies: Array = distances[:, places]
        """Between brokers, a row and a column for each in ascending order."""

    def latency(self, one: int, other: int) -> float:
        return float(self.latencies[self._row[one], self._row[other]])

    def bandwidth(self, one: int, other: int) -> float:
        """That of the narrowest link on the way."""
        return min((self.network.links[number].bandwidth for number in self.links(one, other)), default=float("inf"))

    def path(self, one: int, other: int) -> list[int]:
        """The routers on the way, both ends included."""
        before, path = self._before[self._row[one]], [self.at[other]]
        while path[-1] != self.at[one]:
            path.append(int(before[path[-1]]))
        return path[::-1]

    def links(self, one: int, other: int) -> Array:
        """The links on the way, by their places in the network."""
        path = self.path(one, other)
        return np.array([self._number[hop] for hop in pairwise(path)], np.intp)

    def tree(self, source: int, group: Iterable[int]) -> Array:
        """The links on the ways from a source to all of a group, ascending."""
        before, reached, links = self._before[self._row[source]], {self.at[source]}, []
        for member in group:
            router = self.at[member]
            while router not in reached:
                reached.add(router)
                links.append(self._number[int(before[router]), router])
                router = int(before[router])
        return np.array(sorted(links), np.intp)

    def unicast(self, one: int, other: int, size: int) -> None:
        """A message of so many bytes goes from one broker to another."""
        self.stress.record(self.links(one, other), 1, size)

    def multicast(self, source: int, group: Iterable[int], size: int) -> None:
        """A message of so many bytes goes from a broker to all of a group, by IP multicast."""
        self.stress.record(self.tree(source, group), 1, size)

    def link(self, one: int, other: int) -> Link:
        """An overlay link over this network, for `Simulator(lay=…)`: what it carries counts as stress."""
        return _Overlaid(self, one, other)


class _Overlaid(Link):
    """Counts what it carries on the links beneath; what noise loses is not counted, what it doubles is, twice."""

    def __init__(self, physical: Physical, one: int, other: int) -> None:
        super().__init__(physical.latency(one, other), physical.bandwidth(one, other))
        self._stress = physical.stress
        self._beneath = physical.links(one, other)

    def arrival(self, now: float, messages: tuple[Any, ...]) -> float:
        self._stress.record(self._beneath, count_of(messages), sum(map(size_of, messages)))
        return super().arrival(now, messages)


def _matrix(network: Network) -> Any:
    ones, others, latencies, _, _ = zip(*network.links, strict=True) if network.links else ((),) * 5
    return coo_array((latencies, (ones, others)), shape=(network.routers, network.routers), dtype=np.float64).tocsr()
