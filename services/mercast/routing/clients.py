"""The local clients of a broker: L-SRT (their advertisements) and L-PRT (their subscriptions)."""

from collections.abc import Sequence
from typing import TypeAlias

from mercast.content.event import Event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import Types
from mercast.matching import Content, TypedMatcher
from mercast.protocol.messages import Local, Packet

Interested: TypeAlias = dict[str, tuple[int, ...]]
"""Clients that get an event, each with the requests of its subscriptions that matched."""

NO_CLIENTS: Interested = {}


_ALL = Filter()


class Clients:
    def __init__(self, table: TypedMatcher) -> None:
        self.advertisements: dict[Local, Advertisement] = {}
        self.subscriptions: dict[Local, Subscription] = {}
        self._advertisers: dict[str, dict[Local, None]] = {}
        """The advertisements of each client: every publish looks them up."""
        self._unrestricted: set[tuple[str, str]] = set()
        """Clients and types that they may publish whatever the attributes: found out by every first event."""
        self._without_echo: set[Local] = set()
        self._matcher = table
        self._numbers: dict[Local, int] = {}
        """Subscriptions as the matcher knows them: it is fastest with numbers."""
        self._client_of: dict[int, str] = {}
        self._request_of: dict[int, int] = {}
        self._next = 0

    def advertise(self, local: Local, advertisement: Advertisement) -> None:
        self.advertisements[local] = advertisement
        self._unrestricted.clear()
        self._advertisers.setdefault(local.client, {})[local] = None

    def unadvertise(self, local: Local) -> None:
        del self.advertisements[local]
        self._unrestricted.clear()
        del self._advertisers[local.client][local]
        if not self._advertisers[local.client]:
            del self._advertisers[local.client]

    def subscribe(self, local: Local, subscription: Subscription, echo: bool) -> None:
        self.subscriptions[local] = subscription
        self._next += 1
        self._matcher.add(self._next, subscription.type, subscription.filter)
        self._numbers[local] = self._next
        self._client_of[self._next], self._request_of[self._next] = local
        if not echo:
            self._without_echo.add(local)

    def unsubscribe(self, local: Local) -> None:
        del self.subscriptions[local]
        number = self._numbers.pop(local)
        self._matcher.remove(number)
        del self._client_of[number], self._request_of[number]
        self._without_echo.discard(local)

    def types_changed(self) -> None:
        self._unrestricted.clear()

    def interested(self, contents: Sequence[Content], packets: Sequence[Packet], own: bool) -> list[Interested]:
        """For each event the clients that get it, each with the subscriptions that matched.

        `own` says that these clients published them; the publisher of another broker's may go by the same name as one.
        """
        if not self.subscriptions:
            return [NO_CLIENTS] * len(packets)
        found = self._matcher.match_many(contents)
        return [
            self._by_client(numbers, packet.event.publisher if own else None) if numbers else NO_CLIENTS
            for numbers, packet in zip(found, packets, strict=True)
        ]

    def _by_client(self, matched: list[int], publisher: str | None) -> Interested:
        clients = set(map(self._client_of.__getitem__, matched))
        if len(clients) == 1:
            found = {clients.pop(): tuple(map(self._request_of.__getitem__, matched))}
        else:
            found = {}
            for number in matched:
                client = self._client_of[number]
                found[client] = (*found.get(client, ()), self._request_of[number])
        return found if publisher not in found or not self._without_echo else self._without_echoes(found, publisher)

    def _without_echoes(self, found: Interested, publisher: str) -> Interested:
        """The publisher gets its own event by those subscriptions only that want it back."""
        wanted = tuple(one for one in found[publisher] if Local(publisher, one) not in self._without_echo)
        return {
            client: requests if client != publisher else wanted
            for client, requests in found.items()
            if client != publisher or wanted
        }

    def advertisements_of(self, client: str) -> list[Local]:
        return list(self._advertisers.get(client, ()))

    def subscriptions_of(self, client: str) -> list[Local]:
        return [local for local in self.subscriptions if local.client == client]

    def may_publish(self, types: Types, event: Event) -> bool | None:
        """Whether the publisher's advertisements allow the event; None if it has none for this type at all."""
        if (event.publisher, event.type) in self._unrestricted:
            return True
        lineage, allowed = types.lineage(event.type), None
        for local in self._advertisers.get(event.publisher, ()):
            advertisement = self.advertisements[local]
            if advertisement.type in lineage:
                if advertisement.filter == _ALL:
                    self._unrestricted.add((event.publisher, event.type))
                if advertisement.filter.matches(event.attributes):
                    return True
                allowed = False
        return allowed
