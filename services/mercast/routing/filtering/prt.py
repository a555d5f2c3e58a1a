"""PRT of FBR on overlays with cycles: a copy of a subscription for each tree, each subscription compared once.

Copies of a subscription differ only in their tree and in the neighbour that asked. So the matcher holds one of them,
under a number; which neighbours want an event is then looked up for its own tree.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mercast.content.interest import Subscription
from mercast.matching import Content, TypedMatcher
from mercast.protocol.messages import Note, Origin

Copy: TypeAlias = tuple[int, Origin, Origin]
"""The neighbour that asked, the tree it asked along, and where the subscription was made."""


class PRT:
    def __init__(self, table: TypedMatcher) -> None:
        self._table = table
        self._copies: dict[Copy, tuple[Origin, Subscription]] = {}
        self._numbers: dict[tuple[Origin, Subscription], int] = {}
        """Subscriptions as the matcher has them; the same name may stand for another one while news travels."""
        self._ways: dict[int, dict[Note, tuple[int, ...]]] = {}
        """By subscription and tree, the neighbours that asked."""
        self._next = 0

    def __len__(self) -> int:
        """Copies."""
        return len(self._copies)

    def __iter__(self) -> Iterator[Copy]:
        return iter(self._copies)

    @property
    def distinct(self) -> int:
        """Subscriptions, however many copies there are of each: what an event is compared with."""
        return len(self._numbers)

    def add(self, copy: Copy, subscription: Subscription) -> None:
        peer, tree, origin = copy
        one = self._copies[copy] = origin, subscription
        number = self._numbers.get(one)
        if number is None:
            number = self._numbers[one] = self._next
            self._next += 1
            self._table.add(number, subscription.type, subscription.filter)
            self._ways[number] = {}
        ways = self._ways[number]
        ways[tree] = (*ways.get(tree, ()), peer)

    def remove(self, copy: Copy) -> None:
        peer, tree, _ = copy
        one = self._copies.pop(copy)
        number = self._numbers[one]
        ways = self._ways[number]
        left = tuple(other for other in ways.pop(tree) if other != peer)
        if left:
            ways[tree] = left
        if not ways:
            del self._numbers[one], self._ways[number]
            self._table.remove(number)

    def wanted(self, tree: Note, events: Sequence[Content]) -> list[set[int]]:
        """For each of these events of this tree, the neighbours that want it."""
        matched = self._table.match_many(events)
        return [{peer for number in numbers for peer in self._ways[number].get(tree, ())} for numbers in matched]
