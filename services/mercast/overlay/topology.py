"""TRT, the topology routing table: what it costs to go from each broker to its neighbours (D-DBR, section III-B).

A byte matrix, so that an overlay of a hundred brokers takes ten kilobytes. A link counts only if both ends list it,
and costs what the dearer end says; so the matrix is symmetric, and two brokers with equal records have equal tables.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
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
        self._links = _mutual(self.brokers, links)
        """The same for scipy."""

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
        topology._links = csr_array(topology.trt, dtype=np.float64)
        return topology

    def without_dear(self) -> "Topology":
        """The same brokers without the links that cost the most: those that are on the way in or out."""
        dear = np.argwhere(self.trt == MOST_COST).tolist()
        return self.changed(closed=[(self.brokers[one], self.brokers[other]) for one, other in dear]) if dear else self

    def neighbours(self, broker: int) -> dict[int, int]:
        """The neighbours of a broker with their costs, ascending."""
        row = slice(*self._links.indptr[self.place[broker] :][:2])
        places, costs = self._links.indices[row].tolist(), self._links.data[row].tolist()
        return {self.brokers[at]: int(cost) for at, cost in zip(places, costs, strict=True)}

    @cached_property
    def trt(self) -> Array:
        links = self._links
        table = np.zeros(links.shape, np.uint8)
        table[np.repeat(np.arange(len(self.brokers)), np.diff(links.indptr)), links.indices] = links.data
        return table

    def distances(self, sources: Iterable[int]) -> Array:
        """The cost from each source to each broker, a row per source; UNREACHABLE where there is no path."""
        rows = [self.place[broker] for broker in sources]
        costs: Array = dijkstra(self._links, indices=rows)
        return costs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.brokers == other.brokers and bool((self.trt == other.trt).all())

    __hash__ = None  # type: ignore[assignment]


def _mutual(brokers: tuple[int, ...], links: Mapping[int, Mapping[int, int]]) -> csr_array:
    """The links that both ends list. Without a loop over them: it is made anew whenever a broker has news."""
    count, numbers = len(brokers), np.array(brokers, np.int64)
    listed = [links[broker] for broker in brokers]
    there = np.fromiter(chain.from_iterable(listed), np.int64)
    costs = np.fromiter(chain.from_iterable(one.values() for one in listed), np.float64)
    here = np.repeat(np.arange(count), [len(one) for one in listed])
    places, known = _find(numbers, there)
    known &= (costs != NO_LINK) & (places != here)
    here, places, costs = here[known], places[known], costs[known]
    order = np.argsort(here * count + places)
    here, places, costs = here[order], places[order], costs[order]
    back, both = _find(here * count + places, places * count + here)
    here, places, costs = here[both], places[both], np.maximum(costs, costs[back])[both]
    return csr_array((costs, places, np.searchsorted(here, np.arange(count + 1))), shape=(count, count))


def _find(ascending: Array, wanted: Array) -> tuple[Array, Array]:
    """Where each of the wanted is, and whether it is there at all."""
    if not len(ascending):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return places, ascending[places] == wanted
