"""Static hash: the subscriptions to a type are kept by one broker, its owner, and events of the type go there first.

The owner is the reachable broker with the highest hash of (type, broker), so the loss of one moves only its own types.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

from mercast.content.interest import Advertisement, Subscription
from mercast.matching import Content
from mercast.overlay.exchange import NOBODY, Cause, Key
from mercast.overlay.split import pack
from mercast.protocol.messages import Forward, Local, Packet
from mercast.routing.core import together
from mercast.routing.lists import ListRouting
from mercast.routing.settings import Settings

TO_OWNER = "to the owner"


class StaticHash(ListRouting):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        self.kept = self.make_table()
        """Subscriptions of other brokers to types that this one owns; the destination is the broker."""

    def peers(self) -> Iterable[int]:
        return self.state.reachable - {self.me}

    def owner(self, type: str) -> int:
        def height(broker: int) -> bytes:
            return blake2b(f"{type} {broker}".encode(), digest_size=8).digest()

        return max(self.state.reachable, key=height)

    def keepers(self, subscription: Subscription) -> set[int]:
        """Who must know a subscription: the owners of its type and of the subtypes; of any type, everybody."""
        if subscription.type is None:
            return set(self.peers())
        below = self.types.below(subscription.type)
        return {self.owner(type) for type in (subscription.type, *below)} - {self.me}

    # -- clients -----------------------------------------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None:
        """Nobody needs to know: events find the owner by their type."""

    def unadvertised(self, local: Local, cause: Cause) -> None:
        """As above."""

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None:
        for peer in sorted(self.keepers(subscription)):
            self.exchange.tell(peer, local, subscription, cause)

    def unsubscribed(self, local: Local, cause: Cause) -> None:
        for peer in self.exchange.told:
            self.exchange.untell(peer, local, cause)

    def overlay_changed(self) -> None:
        self._tell_keepers(NOBODY)

    def types_changed(self, cause: Cause) -> None:
        self._tell_keepers(cause)

    def _tell_keepers(self, cause: Cause) -> None:
        """Owners may have changed."""
        for local, subscription in self.clients.subscriptions.items():
            keepers = self.keepers(subscription)
            for peer in self.exchange.told:
                if peer in keepers:
                    self.exchange.tell(peer, local, subscription, cause)
                else:
                    self.exchange.untell(peer, local, cause)

    # -- other brokers -----------------------------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:  # noqa: ARG002
        self.kept.add((peer, key), value.type, value.filter, peer)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:  # noqa: ARG002
        self.kept.remove((peer, key))

    def validate(self) -> None:
        super().validate()
        assert set(self.kept) == {(peer, key) for peer, key, _ in self.heard_items()}

    # -- events ------------------------------------------------------------------------------------------------------

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:  # noqa: ARG002
        counts: list[int] = []
        for owner, of_owner in groupby(packets, lambda packet: self.owner(packet.event.type)):
            run = list(of_owner)
            if owner == self.me:
                counts += map(len, self._spread(run, 0))
            else:
                self._multicast(self.clusters[0], together(pack([owner]), 0, run, TO_OWNER), self.me)
                counts += [1] * len(run)
        return counts

    def arrived(self, forward: Forward, neighbour: int) -> None:
        if forward.note == TO_OWNER:
            self.note_made(forward.packets, self._spread(forward.packets, forward.hops))
        super().arrived(forward, neighbour)

    def _spread(self, packets: Sequence[Packet], hops: int) -> list[list[int]]:
        """From the owner to those who want the events; the publisher's broker has delivered them already."""
        everyone = zip(packets, self.kept.destinations_many(self.contents(packets)), strict=True)
        wanted = [[broker for broker in brokers if broker != packet.event.id.broker] for packet, brokers in everyone]
        self.multicast(wanted, packets, hops)
        return wanted
