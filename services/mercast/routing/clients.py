"""The local clients of a broker: L-SRT (their advertisements) and L-PRT (their subscriptions)."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from mercast.content.errors import ContentError
from mercast.content.event import Event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.interests import Interests
from mercast.content.types import Types
from mercast.limits import DEFAULTS
from mercast.matching import Content, TypedMatcher
from mercast.overlay.said import size_of
from mercast.protocol.messages import Local, Packet
from mercast.protocol.stimuli import REQUESTS

Interested: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Clients that get an event, each with the requests of its subscriptions that matched."""

NO_CLIENTS: Interested = ()

_REQUEST_BITS = REQUESTS.stop.bit_length() - 1
_ALL = Filter()

_FEW = 16
"""Events times subscriptions: so few are sooner sorted by client one by one than in arrays."""


def _client_of(number: int) -> int:
    return number >> _REQUEST_BITS


class Clients:
    def __init__(self, table: TypedMatcher) -> None:
        self.advertisements: dict[Local, Advertisement] = {}
        self.subscriptions: Interests[Local, Subscription] = Interests()
        self._advertisers: dict[str, dict[Local, None]] = {}
        """The advertisements of each client: every publish looks them up."""
        self._bytes: dict[str, int] = {}
        """What all these and the subscriptions of each client take, about."""
        self.unrestricted: set[tuple[str, str]] = set()
        """Clients and types that they may publish whatever the attributes: found out by every first event."""
        self.without_echo: set[Local] = set()
        self._matcher = table
        self._subscribers: dict[str, dict[Local, None]] = {}
        """The subscriptions of each client."""
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        """The clients that have any: their numbers, and back."""
        self._next = 0

    def advertise(self, local: Local, advertisement: Advertisement) -> None:
        self.advertisements[local] = advertisement
        self.unrestricted.clear()
        self._advertisers.setdefault(local.client, {})[local] = None
        self._weigh(local.client, size_of(advertisement))

    def unadvertise(self, local: Local) -> None:
        self._weigh(local.client, -size_of(self.advertisements.pop(local)))
        self.unrestricted.clear()
        del self._advertisers[local.client][local]
        if not self._advertisers[local.client]:
            del self._advertisers[local.client]

    def subscribe(self, local: Local, subscription: Subscription, echo: bool) -> None:
        self.subscriptions.put(local, subscription)
        self._weigh(local.client, size_of(subscription))
        if local.client not in self._subscribers:
            self._next += 1
            self._subscribers[local.client], self._numbers[local.client] = {}, self._next
            self._names[self._next] = local.client
        self._subscribers[local.client][local] = None
        self._matcher.add(self._number(local), subscription.type, subscription.filter)
        if not echo:
            self.without_echo.add(local)

    def unsubscribe(self, local: Local) -> None:
        self._weigh(local.client, -size_of(self.subscriptions.drop(local)))
        self._matcher.remove(self._number(local))
        self.without_echo.discard(local)
        del self._subscribers[local.client][local]
        if not self._subscribers[local.client]:
            del self._subscribers[local.client], self._names[self._numbers.pop(local.client)]

    def _weigh(self, client: str, more: int) -> None:
        self._bytes[client] = self._bytes.get(client, 0) + more
        if not self._bytes[client]:
            del self._bytes[client]

    def _number(self, local: Local) -> int:
        """As the matcher knows it: a client's subscriptions lie together, in the order of their requests."""
        return self._numbers[local.client] << _REQUEST_BITS | local.request

    def types_changed(self) -> None:
        self.unrestricted.clear()

    def interested(self, contents: Sequence[Content], packets: Sequence[Packet], own: bool) -> list[Interested]:
        """For each event the clients that get it, each with the subscriptions that matched.

        `own` says that these clients published them; the publisher of another broker's may go by the same name as one.
        """
        if not self.subscriptions:
            return [NO_CLIENTS] * len(packets)
        if len(contents) * len(self.subscriptions) <= _FEW:
            answers = list(map(self._of_clients, self._matcher.match_many(contents)))
        else:
            answers = self._by_client(*self._matcher.numbers_many(contents))
        if not (own and self.without_echo):
            return answers
        return [
            self._without_echoes(some, packet.event.publisher) for some, packet in zip(answers, packets, strict=True)
        ]

    def _by_client(self, numbers: Any, ends: list[int]) -> list[Interested]:
        """What was found for each event, client by client."""
        if not len(numbers):
            return [NO_CLIENTS] * len(ends)
        names, clients, requests = self._names, numbers >> _REQUEST_BITS, (numbers & REQUESTS[-1]).tolist()
        begins = [0, *ends[:-1]]
        firsts, lasts = clients.take(begins, mode="clip").tolist(), clients[np.array(ends) - 1].tolist()
        answers: list[Interested] = []
        for begin, end, first, last in zip(begins, ends, firsts, lasts, strict=True):
            if begin == end:
                answers.append(NO_CLIENTS)
            elif first == last:  # mostly, and quickly
                answers.append(((names[first], tuple(requests[begin:end])),))
            else:
                answers.append(self._of_clients(numbers[begin:end].tolist()))
        return answers

    def _of_clients(self, numbers: Iterable[int]) -> Interested:
        """What was found for one event."""
        runs = groupby(numbers, _client_of)
        return tuple((self._names[client], tuple(number & REQUESTS[-1] for number in run)) for client, run in runs)

    def _without_echoes(self, found: Interested, publisher: str) -> Interested:
        """The publisher gets its own event by those subscriptions only that want it back."""
        without = self.without_echo
        wanted = (
            (client, requests)
            if client != publisher
            else (client, tuple(one for one in requests if Local(client, one) not in without))
            for client, requests in found
        )
        return tuple((client, requests) for client, requests in wanted if requests)

    def check_room(self, client: str, interest: Interest) -> None:
        """ContentError if the client has as many of these as it may, or this would be too large with what it has."""
        table, most, what = (
            (self._subscribers, DEFAULTS.subscriptions, "subscriptions")
            if isinstance(interest, Subscription)
            else (self._advertisers, DEFAULTS.advertisements, "advertisements")
        )
        if len(table.get(client, ())) >= most:
            raise ContentError(f"{client!r} has {most} {what}, and may have no more: take some back")
        size, used, room = size_of(interest), self._bytes.get(client, 0), DEFAULTS.client_bytes
        if used + size > room:
            raise ContentError(
                f"the subscriptions and advertisements of {client!r} take {used} bytes, and this one would take {size}"
                f" more; they may take {room} together: take some back, or write shorter filters"
            )

    def most_of_one(self) -> tuple[int, int, int]:
        """The most subscriptions and the most advertisements that any client has, and the most bytes of both."""
        subscriptions, advertisements = self._subscribers.values(), self._advertisers.values()
        most = max(map(len, subscriptions), default=0), max(map(len, advertisements), default=0)
        return *most, max(self._bytes.values(), default=0)

    def advertisements_of(self, client: str) -> list[Local]:
        return list(self._advertisers.get(client, ()))

    def subscriptions_of(self, client: str) -> list[Local]:
        return list(self._subscribers.get(client, ()))

    def may_publish(self, types: Types, event: Event) -> bool | None:
        """Whether the publisher's advertisements allow the event; None if it has none for this type at all."""
        lineage, allowed = types.lineage(event.type), None
        for local in self._advertisers.get(event.publisher, ()):
            advertisement = self.advertisements[local]
            if advertisement.type in lineage:
                if advertisement.filter == _ALL:
                    self.unrestricted.add((event.publisher, event.type))
                if advertisement.filter.matches(event.attributes):
                    return True
                allowed = False
        return allowed
