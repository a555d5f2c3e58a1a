"""The local clients of a broker: L-SRT (their advertisements) and L-PRT (their subscriptions)."""

from collections.abc import Sequence

from mercast.content.event import Event
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import Types
from mercast.matching import Content, TypedMatcher
from mercast.protocol.messages import Local, Packet


class Clients:
    def __init__(self, table: TypedMatcher) -> None:
        self.advertisements: dict[Local, Advertisement] = {}
        self.subscriptions: dict[Local, Subscription] = {}
        self._advertisers: dict[str, dict[Local, None]] = {}
        """The advertisements of each client: every publish looks them up."""
        self._without_echo: set[Local] = set()
        self._matcher = table

    def advertise(self, local: Local, advertisement: Advertisement) -> None:
        self.advertisements[local] = advertisement
        self._advertisers.setdefault(local.client, {})[local] = None

    def unadvertise(self, local: Local) -> None:
        del self.advertisements[local]
        del self._advertisers[local.client][local]
        if not self._advertisers[local.client]:
            del self._advertisers[local.client]

    def subscribe(self, local: Local, subscription: Subscription, echo: bool) -> None:
        self.subscriptions[local] = subscription
        self._matcher.add(local, subscription.type, subscription.filter)
        if not echo:
            self._without_echo.add(local)

    def unsubscribe(self, local: Local) -> None:
        del self.subscriptions[local]
        self._matcher.remove(local)
        self._without_echo.discard(local)

    def interested(self, contents: Sequence[Content], packets: Sequence[Packet]) -> list[dict[str, tuple[int, ...]]]:
        """For each event the clients that get it, each with the subscriptions that matched."""
        found = self._matcher.match_many(contents)
        return [self._by_client(ids, packet.event.publisher) for ids, packet in zip(found, packets, strict=True)]

    def _by_client(self, matched: list[Local], publisher: str) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for local in matched:
            client, request = local
            if client != publisher or local not in self._without_echo:
                found[client] = (*found.get(client, ()), request)
        return found

    def advertisements_of(self, client: str) -> list[Local]:
        return list(self._advertisers.get(client, ()))

    def subscriptions_of(self, client: str) -> list[Local]:
        return [local for local in self.subscriptions if local.client == client]

    def may_publish(self, types: Types, event: Event) -> bool | None:
        """Whether the publisher's advertisements allow the event; None if it has none for this type at all."""
        mine = self.advertisements_of(event.publisher)
        lineage = types.lineage(event.type)
        of_type = [self.advertisements[local] for local in mine if self.advertisements[local].type in lineage]
        return any(one.filter.matches(event.attributes) for one in of_type) if of_type else None
