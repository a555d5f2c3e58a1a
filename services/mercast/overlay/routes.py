"""SPRT, the shortest path routing table of one broker: the next hop to every other (D-DBR, section III-B).

Equal paths: each broker has one fixed order of its neighbours, by a hash of (broker, neighbour), and takes the first
that lies on a shortest path. Then no broker gets two copies of a message on a stable overlay: two copies that met again
would have had a common better choice where they parted. Choosing for each destination by itself would not do.
"""

from array import array
from functools import cached_property
from hashlib import blake2b

import numpy as np

from mercast.overlay.topology import UNREACHABLE, Topology

NO_HOP = 0xFFFF


class Routes:
    def __init__(self, topology: Topology, me: int) -> None:
        costs = topology.neighbours(me)
        self.me = me
        self.neighbours = sorted(costs, key=lambda neighbour: preference(me, neighbour))
        """In the order of preference."""
        self.place = topology.place
        distances = topology.distances([me, *self.neighbours])
        self.reachable = frozenset(
            broker for broker, distance in zip(topology.brokers, distances[0], strict=True) if distance != UNREACHABLE
        )
        via = distances[1:] + np.array([[costs[neighbour]] for neighbour in self.neighbours]).reshape(-1, 1)
        self._on_shortest = (via == distances[0]) & np.isfinite(distances[0])
        hops = np.array([*self.neighbours, NO_HOP], np.uint16)
        first = np.vstack([self._on_shortest, np.ones(len(self.place), np.bool_)]).argmax(axis=0)
        self.sprt = array("H", hops[first].tobytes())
        self.sprt[self.place[me]] = me
        """Per broker, the next hop to it: this broker itself for itself, NO_HOP where there is no path."""

    @cached_property
    def choices(self) -> list[int]:
        """Per broker, the neighbours on a shortest path to it: bit k stands for the k-th in the order."""
        masks = np.packbits(self._on_shortest.T, axis=1, bitorder="little")
        return [int.from_bytes(mask.tobytes(), "little") for mask in masks]

    def next_hop(self, broker: int) -> int:
        """The neighbour to send to for this broker; this broker for itself; NO_HOP if there is no path."""
        place = self.place.get(broker)
        return NO_HOP if place is None else self.sprt[place]


def preference(broker: int, neighbour: int) -> bytes:
    """Sorts a broker's neighbours in an order of its own, the same on every machine."""
    return blake2b(b"%d %d" % (broker, neighbour), digest_size=8).digest()


def lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
