"""Carrying events by destination list: the multicasting layer of D-DBR (Algorithm 2), shared by all who know their
destinations beforehand."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.routes import NO_HOP
from mercast.overlay.split import pack
from mercast.protocol.messages import Forward, Packet
from mercast.routing.core import Core, together

_first = itemgetter(0)
_packed = lru_cache(maxsize=1024)(pack)
"""Lists recur, those of events that follow each other most of all."""


class ListRouting(Core):
    def multicast(
        self, wanted: Iterable[Iterable[int]], packets: Iterable[Packet], hops: int = 0, place: int = 0
    ) -> None:
        """Send events on their way, each to the entries that want it; they have crossed so many links to get here."""
        cluster = self.clusters[place]
        for destinations, run in groupby(zip(map(_packed, map(tuple, wanted)), packets, strict=True), _first):
            self._multicast(cluster, together(destinations, hops, [packet for _, packet in run]), cluster.me)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        cluster = self.clusters[place_of(neighbour)]
        if self.went_too_far(forward.hops, cluster):
            if neighbour != cluster.me:  # else it was parked here, and counted when it came
                self.pass_by(forward, neighbour)
            self._take_in_all()  # rows in the order of what happened: this came last, and is dropped after it came
            self.drop_all((forward,), "hop limit")
        else:
            self._multicast(cluster, forward, neighbour)

    def unsent(self, place: int, forward: Forward) -> None:
        """Their list is split again, over the routes of now."""
        self.forwarded(self.clusters[place].me, forward)

    def _multicast(self, cluster: Cluster, forward: Forward, neighbour: int) -> None:
        hops, packets = forward.hops, forward.packets
        if self.organising:
            self._count(cluster, forward, neighbour)
        split = cluster.neighbourhood.split(forward.destinations)
        astray = hops >= len(cluster.state.reachable)  # no shortest path is so long: views differ along a circle
        if neighbour != cluster.me and all(hop != self.me for hop, _ in split):
            self.pass_by(forward, neighbour)
        for hop, part in split:
            if hop == self.me:
                self.arrived(forward, neighbour)
            elif hop == NO_HOP:
                self.park(cluster.place, Forward(part, hops, packets, forward.note, forward.traced))
            else:
                address = cluster.address(hop)
                if astray or address == neighbour:  # where it came from: that broker sees another overlay
                    self._send_all(cluster, cluster.neighbourhood.agree_with(hop))
                self.send(address, Forward(part, hops + 1, packets, forward.note, forward.traced))

    def _count(self, cluster: Cluster, forward: Forward, neighbour: int) -> None:
        """Events of one list have one source: the broker that made the list. Of those from another cluster nobody here
        knows which edge that was; they count as the last broker's."""
        made_here = neighbour == cluster.me
        if not forward.packets or (made_here and forward.hops):  # which has waited here, and was counted when it came
            return
        source = self.me if made_here else forward.packets[0].event.id.broker
        if source not in cluster.state:
            source = neighbour & NUMBER
        self.organising[cluster.place].count(source, forward.destinations, len(forward.packets))

    def arrived(self, forward: Forward, neighbour: int) -> None:
        """This broker is a destination."""
        self.take_in_soon(forward, neighbour)
