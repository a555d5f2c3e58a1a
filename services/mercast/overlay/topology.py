"""TRT, the topology routing table: what it costs to go from each broker to its neighbours (D-DBR, section III-B).

A byte matrix, so that an overlay of a hundred brokers takes ten kilobytes. A link counts only if both ends list it,
and costs what the dearer end says; so the matrix is symmetric, and two brokers with equal records have equal tables.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

Array: TypeAlias = npt.NDArray[Any]
Link: TypeAlias = tuple[int, int]

NO_LINK = 0
NEW_LINK = 1
"""The cost of a link unless something else is said."""

MOST_COST = 255
MOST_BROKERS = 2**15
"""Broker numbers have 15 bits: an entry of a destination list is two bytes, one bit of which is its role."""

UNREACHABLE = np.inf


class Topology:
    def __init__(self, links: Mapping[int, Mapping[int, int]]) -> None:
        """`links` is what each broker lists: its neighbours with their costs."""
        self.brokers = tuple(sorted(links))
        self.place = {broker: place for place, broker in enumerate(self.brokers)}
        """The row of each broker."""
        self.trt = np.zeros((len(self.brokers), len(self.brokers)), np.uint8)
        for broker, listed in links.items():
            for neighbour, cost in listed.items():
                back = links.get(neighbour, {}).get(broker, NO_LINK)
                if back != NO_LINK and neighbour != broker:
                    self.trt[self.place[broker], self.place[neighbour]] = max(cost, back)

    @classmethod
    def of(cls, edges: Iterable[Link], brokers: Iterable[int] = ()) -> "Topology":
        """An overlay of links of cost 1."""
        links: dict[int, dict[int, int]] = {broker: {} for broker in brokers}
        for one, other in edges:
            links.setdefault(one, {})[other] = NEW_LINK
            links.setdefault(other, {})[one] = NEW_LINK
        return cls(links)

    def changed(self, opened: Iterable[Link] = (), closed: Iterable[Link] = ()) -> "Topology":
        """The same brokers with some links of cost 1 more and some links fewer."""
        topology = Topology({})
        topology.brokers, topology.place, topology.trt = self.brokers, self.place, self.trt.copy()
        for links, cost in ((opened, NEW_LINK), (closed, NO_LINK)):
            for one, other in links:
                ends = self.place[one], self.place[other]
                topology.trt[ends] = topology.trt[ends[::-1]] = cost
        return topology

    def neighbours(self, broker: int) -> dict[int, int]:
        """The neighbours of a broker with their costs, ascending."""
        row = self.trt[self.place[broker]]
        return {self.brokers[at]: int(row[at]) for at in np.flatnonzero(row)}

    @cached_property
    def _links(self) -> csr_array:
        """The same for scipy."""
        return csr_array(self.trt, dtype=np.float64)

    def distances(self, sources: Iterable[int]) -> Array:
        """The cost from each source to each broker, a row per source; UNREACHABLE where there is no path."""
        rows = [self.place[broker] for broker in sources]
        costs: Array = dijkstra(self._links, indices=rows)
        return costs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.brokers == other.brokers and bool((self.trt == other.trt).all())

    __hash__ = None  # type: ignore[assignment]
