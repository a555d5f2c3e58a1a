"""D-DBR: destination-based routing (section III; Algorithm 1 here, Algorithm 2 in routing/lists.py).

An event is matched twice: where it is published, to find the brokers that want it, and at each of those, to find their
clients. In between it follows its destination list along shortest paths, and no broker looks inside.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from mercast.content.interest import Advertisement, Subscription
from mercast.content.interests import Interests
from mercast.matching import Content
from mercast.overlay.exchange import Cause, Key, Request
from mercast.protocol.messages import Local, Packet
from mercast.routing.lists import ListRouting
from mercast.routing.settings import Settings


class DDBR(ListRouting):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        self.r_srt: dict[int, Interests[Key, Advertisement]] = {}
        """Advertisements by the broker they come from."""
        self.r_prt = self.make_table()
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

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        wanted = self.r_prt.destinations_many(contents)
        self.multicast(wanted, packets)
        return [len(brokers) for brokers in wanted]

    # -- Algorithm 1, from another broker ----------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(value, Advertisement):
            self.r_srt.setdefault(peer, Interests()).put(key, value)
            for local, subscription in self.clients.subscriptions.concerning(self.types, value):
                self.exchange.tell(peer, local, subscription, cause)
        else:
            self.r_prt.add((peer, key), value.type, value.filter, peer)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(value, Advertisement):
            self.r_srt[peer].drop(key)
            for local, subscription in self.clients.subscriptions.concerning(self.types, value):
                if peer in self.exchange.told and not self._wanted_at(peer, subscription):
                    self.exchange.untell(peer, local, cause)
            if not self.r_srt[peer]:
                del self.r_srt[peer]
        else:
            self.r_prt.remove((peer, key))

    def types_changed(self, cause: Cause) -> None:
        for peer in self.r_srt:
            for local, subscription in self.clients.subscriptions.items():
                if self._wanted_at(peer, subscription):
                    self.exchange.tell(peer, local, subscription, cause)
                else:
                    self.exchange.untell(peer, local, cause)

    def validate(self) -> None:
        super().validate()
        said = list(self.heard_items())
        advertisements = {(peer, key) for peer, key, value in said if isinstance(value, Advertisement)}
        assert {(peer, key) for peer, table in self.r_srt.items() for key in table} == advertisements
        assert set(self.r_prt) == {(peer, key) for peer, key, _ in said} - advertisements

    def _wanted_at(self, peer: int, subscription: Subscription) -> bool:
        """Match(subscription, R-SRT): whether the peer's clients may publish what it asks for."""
        return peer in self.r_srt and self.r_srt[peer].any_concerning(self.types, subscription)
