"""Who is called what: scenarios name brokers, clients, what these ask for, and events; brokers number them."""

from collections.abc import Iterable
from typing import Any

from scenarios.script import CommandError

from mercast.content.event import EventId


class Names:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._brokers: dict[int, str] = {}
        self._things: dict[tuple[str, int], str] = {}
        self._requests: dict[str, tuple[str, int]] = {}
        self._last_request: dict[str, int] = {}
        self.events: dict[EventId, str] = {}

    # -- brokers -----------------------------------------------------------------------------------------------------

    def add_brokers(self, names: Iterable[str]) -> None:
        """New ones are numbered in the order of their names, so that the order of links does not matter."""
        for name in sorted(set(names) - self._numbers.keys()):
            number = len(self._numbers)
            self._numbers[name], self._brokers[number] = number, name

    def number(self, broker: str) -> int:
        if broker not in self._numbers:
            raise CommandError(f"no broker {broker!r}: `links` names {', '.join(self._numbers) or 'none yet'}")
        return self._numbers[broker]

    def broker(self, number: int) -> str:
        return self._brokers[number]

    def brokers(self, numbers: Iterable[int]) -> str:
        return " ".join(sorted(self._brokers[number] for number in numbers))

    # -- what clients ask for ----------------------------------------------------------------------------------------

    def new(self, client: str, name: str) -> int:
        """The number of a client's new request, which makes something of this name."""
        if name in self._requests:
            raise CommandError(f"{name!r} has been used before: take another name")
        number = self.request(client, name)
        self._requests[name] = client, number
        self._things[client, -number] = f"all of {name}'s type"
        """Publishing without an advertisement makes one, which goes by the negative number."""
        return number

    def request(self, client: str, text: str) -> int:
        """The number of a client's new request, which is spoken of like this."""
        number = self._last_request[client] = self._last_request.get(client, 0) + 1
        self._things[client, number] = text
        return number

    def request_of(self, client: str, name: str) -> int:
        """The number of the request that made a thing of the client's."""
        whose, number = self._requests.get(name, (None, 0))
        if whose != client:
            raise CommandError(f"{client} has nothing that is called {name!r}")
        return number

    def thing(self, asked: Any) -> str:
        """The name of what was asked for: by (client, request), or with its broker before it."""
        broker_or_client, *rest = asked
        return self._things[rest[0]] if isinstance(broker_or_client, int) else self._things[tuple(asked)]
