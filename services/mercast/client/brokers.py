"""The brokers that a client knows, and in which order and when it tries them."""

import random
from collections.abc import Iterable

from mercast.client.address import Address, parse
from mercast.client.errors import MercastError

_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0
_DOUBLINGS = 10
_CALM = 10.0
"""Seconds after an attempt from which on the next counts as a first one."""


class Brokers:
    def __init__(self, given: list[Address]) -> None:
        self._given = given
        self._learned: list[Address] = []

    def learn(self, at: Address, others: Iterable[str]) -> None:
        """A broker says where others are."""
        self._learned = _parsed(at, others)

    def at_first(self) -> list[Address]:
        """As the user put them."""
        return list(self._given)

    def again(self, last: Address, preferred: Iterable[str] = ()) -> list[Address]:
        """Any, so that the clients of a lost broker spread over the others; that one comes last."""
        first = _parsed(last, preferred)
        others = [*self._given, *self._learned]
        random.shuffle(first)
        random.shuffle(others)
        return [one for one in dict.fromkeys(first + others) if one != last] + [last]


def _parsed(at: Address, others: Iterable[str]) -> list[Address]:
    """Addresses told by a broker: those speak TLS if it does."""
    parsed = []
    for other in others:
        try:
            parsed.append(parse(other, at.tls))
        except MercastError:
            continue  # a newer broker may know other kinds of address
    return parsed


class Pace:
    """How long to wait before the next attempt. One that was answered counts too: a broker that lets a client in and
    then ends it, or sends it on, is not called without a pause either."""

    def __init__(self) -> None:
        self._attempts, self._last = 0, 0.0

    def wait(self, now: float) -> float:
        """Seconds, before an attempt that is about to be made."""
        if now - self._last > _CALM:
            self._attempts = 0
        return delay(self._attempts)

    def tried(self, now: float) -> None:
        self._attempts, self._last = self._attempts + 1, now


def delay(attempt: int) -> float:
    """Seconds to wait before an attempt, counted from 0. The first comes soon; even then not all at one moment."""
    longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(attempt, _DOUBLINGS))
    return random.uniform(0 if attempt == 0 else longest / 2, longest)
