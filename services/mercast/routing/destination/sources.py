"""By whom events come into a cluster: the brokers that tell of advertisements on ways that count.

Every subscription is compared with advertisements, and of these many say the same, such as those of like publishers:
each thing that is said is kept once, with all who say it, and is compared once.
"""

from collections import Counter
from typing import TypeAlias

from mercast.content.interest import Interest
from mercast.content.interests import Interests
from mercast.content.types import Types
from mercast.protocol.messages import Origin

Source: TypeAlias = tuple[int, Interest]
"""A broker, and what it says of an advertisement."""


class Sources:
    def __init__(self) -> None:
        self._of: dict[Origin, frozenset[Source]] = {}
        """Of each advertisement."""
        self._brokers: dict[Interest, Counter[int]] = {}
        """Who says this, and of how many advertisements."""
        self._all: Interests[Interest, Interest] = Interests()
        self._said: dict[int, Interests[Interest, Interest]] = {}
        """The same interests: all that there are, and those of each broker."""

    def put(self, advertisement: Origin, sources: frozenset[Source]) -> None:
        """From now on its events come by these."""
        before = self._of.pop(advertisement, frozenset())
        if sources:
            self._of[advertisement] = sources
        for broker, interest in sources - before:
            self._add(broker, interest)
        for broker, interest in before - sources:
            self._remove(broker, interest)

    def _add(self, broker: int, interest: Interest) -> None:
        if interest not in self._brokers:
            self._brokers[interest] = Counter()
            self._all.put(interest, interest)
        if not self._brokers[interest][broker]:
            self._said.setdefault(broker, Interests()).put(interest, interest)
        self._brokers[interest][broker] += 1

    def _remove(self, broker: int, interest: Interest) -> None:
        brokers, said = self._brokers[interest], self._said[broker]
        brokers[broker] -= 1
        if not brokers[broker]:
            del brokers[broker]
            said.drop(interest)
        if not said:
            del self._said[broker]
        if not brokers:
            del self._brokers[interest]
            self._all.drop(interest)

    def brokers(self, types: Types, subscription: Interest) -> set[int]:
        """By whom events that concern a subscription may come."""
        return {broker for one, _ in self._all.concerning(types, subscription) for broker in self._brokers[one]}

    def has(self, broker: int, types: Types, subscription: Interest) -> bool:
        """Whether they may come by this one."""
        return broker in self._said and self._said[broker].any_concerning(types, subscription)
