"""Carrying events by destination list: the multicasting layer of D-DBR (Algorithm 2), shared by all who know their
destinations beforehand."""

from collections.abc import Iterable

from mercast.overlay.routes import NO_HOP
from mercast.overlay.split import pack
from mercast.protocol.messages import Forward, Packet
from mercast.routing.core import Core


class ListRouting(Core):
    def multicast(self, brokers: Iterable[int], packet: Packet, hops: int = 0) -> None:
        """Send an event on its way to these brokers; it has crossed so many links to get here."""
        self._multicast(Forward(pack(brokers), hops, packet), self.me)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        if forward.hops > self.hop_limit:
            self.drop(forward.packet, "hop limit")
        else:
            self._multicast(forward, neighbour)

    def _multicast(self, forward: Forward, neighbour: int) -> None:
        destinations, hops, packet, note = forward
        split = self.split(destinations)
        if neighbour != self.me and all(hop != self.me for hop, _ in split):
            self.copied(forward, neighbour, interested=False)
        for hop, part in split:
            if hop == self.me:
                self.arrived(forward, neighbour)
            elif hop == NO_HOP:
                self.park(Forward(part, hops, packet, note))
            else:
                self.send(hop, Forward(part, hops + 1, packet, note))

    def arrived(self, forward: Forward, neighbour: int) -> None:
        """This broker is a destination."""
        self.take_in(forward, neighbour)
