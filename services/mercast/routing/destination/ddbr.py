"""D-DBR: destination-based routing (section III, Algorithms 1 and 2).

An event is matched twice: where it is published, to find the brokers that want it, and at each of those, to find their
clients. In between it follows its destination list along shortest paths, and no broker looks inside.
"""

from collections.abc import Iterable
from typing import Any

from mercast.content.interest import Advertisement, Subscription
from mercast.matching import TypedMatcher
from mercast.overlay.exchange import Cause, Key, Request
from mercast.overlay.routes import NO_HOP
from mercast.overlay.seen import Seen
from mercast.overlay.split import pack, unpack
from mercast.protocol.messages import Forward, Packet
from mercast.protocol.rows import Copied
from mercast.routing.clients import Local
from mercast.routing.core import Core
from mercast.routing.settings import Settings


class DDBR(Core):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        self.r_srt: dict[int, dict[Key, Advertisement]] = {}
        """Advertisements by the broker they come from."""
        self.r_prt = TypedMatcher(self.make_matcher)
        """Subscriptions of other brokers; the destination is the broker."""

    def peers(self) -> Iterable[int]:
        return self.state.reachable - {self.me}

    def met(self, peer: int) -> None:
        for local, advertisement in self.clients.advertisements.items():
            self.exchange.tell(peer, local, advertisement, Request(local.client, local.request))

    # -- Algorithm 1, from a local client ----------------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None:
        for peer in self.exchange.told:
            self.exchange.tell(peer, local, advertisement, cause)

    def unadvertised(self, local: Local, cause: Cause) -> None:
        for peer in self.exchange.told:
            self.exchange.untell(peer, local, cause)

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None:
        for peer in self.r_srt:
            if self._wanted_at(peer, subscription):
                self.exchange.tell(peer, local, subscription, cause)

    def unsubscribed(self, local: Local, cause: Cause) -> None:
        for peer in self.exchange.told:
            self.exchange.untell(peer, local, cause)

    def published(self, packet: Packet) -> int:
        event = packet.event
        brokers = self.r_prt.destinations(self.types.lineage(event.type), event.attributes)
        self._multicast(Forward(pack(brokers), 0, packet))
        return len(brokers)

    # -- Algorithm 1, from another broker ----------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(value, Advertisement):
            self.r_srt.setdefault(peer, {})[key] = value
            for local, subscription in self.clients.subscriptions.items():
                if subscription.intersects(self.types, value):
                    self.exchange.tell(peer, local, subscription, cause)
        else:
            self.r_prt.add((peer, key), value.type, value.filter, peer)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(value, Advertisement):
            del self.r_srt[peer][key]
            for local, subscription in self.clients.subscriptions.items():
                if peer in self.exchange.told and not self._wanted_at(peer, subscription):
                    self.exchange.untell(peer, local, cause)
            if not self.r_srt[peer]:
                del self.r_srt[peer]
        else:
            self.r_prt.remove((peer, key))

    def _wanted_at(self, peer: int, subscription: Subscription) -> bool:
        """Match(subscription, R-SRT): whether the peer's clients may publish what it asks for."""
        advertisements = self.r_srt.get(peer, {}).values()
        return any(subscription.intersects(self.types, advertisement) for advertisement in advertisements)

    # -- Algorithm 2 -------------------------------------------------------------------------------------------------

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        if forward.hops > self.hop_limit:
            self.drop(forward.packet, "hop limit")
            return
        self._multicast(forward, neighbour)

    def _multicast(self, forward: Forward, neighbour: int = -1) -> None:
        destinations, hops, packet, _ = forward
        for hop, part in self.split(destinations):
            if hop == self.me:
                self._arrived(forward, neighbour)
            elif hop == NO_HOP:
                self.park(Forward(part, hops, packet))
            else:
                self.send(hop, Forward(part, hops + 1, packet))

    def _arrived(self, forward: Forward, neighbour: int) -> None:
        event = forward.packet.event
        seen = self.seen.see(event.id)
        if seen is Seen.NEW:
            count = self.deliver(forward.packet, forward.hops)
            length = len(unpack(forward.destinations))
            self.tap(Copied(event.id, event.time, neighbour, forward.hops, length, 1, count > 0))
        else:
            self.drop(forward.packet, seen.value)
