"""Splitting a destination list by next hop (D-DBR, section III-B: Multicast and ShortestPath).

A list is bytes, two for each entry: 15 bits of broker number, one bit of role. LOCAL: match and deliver there. CARRY:
an edge that takes the event on into its other cluster. A broker may stand in both roles. Lists are kept sorted, so
equal lists are equal bytes and the split of each is worked out once while the topology stays the same.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from mercast.limits import DEFAULTS
from mercast.overlay.routes import NO_HOP, Routes, lowest_bit

LOCAL, CARRY = 0, 0x8000
BROKER = 0x7FFF
ENTRY = 2
"""Bytes of an entry."""

Split: TypeAlias = tuple[tuple[int, bytes], ...]
"""(next hop, its part of the list), the parts disjoint; the broker itself for its own, NO_HOP for what has no route."""

Rule: TypeAlias = Literal["paper", "covering"]

_OVERHEAD = 150
"""Bytes that Python takes for each part of a split that is remembered, besides its entries."""


def pack(entries: Iterable[int]) -> bytes:
    """A destination list of entries (a broker number, with or without CARRY)."""
    return array("H", sorted(set(entries))).tobytes()


def unpack(destinations: bytes) -> "array[int]":
    return array("H", destinations)


class Splitter:
    """The split of one broker's lists over its routes.

    `paper`: every destination goes to the first of its next hops in the broker's order. `covering`: among equal next
    hops the list goes to as few as possible (greedily), which saves messages and still sends no broker a second copy.
    """

    def __init__(self, routes: Routes, rule: Rule = "paper") -> None:
        self.routes = routes
        self._groups = self._paper if rule == "paper" else self._covering
        self._cache: dict[bytes, Split] = {}
        self._bytes = 0

    def __len__(self) -> int:
        """Splits that are remembered."""
        return len(self._cache)

    def __call__(self, destinations: bytes) -> Split:
        split = self._cache.get(destinations)
        if split is None:
            groups = self._groups(unpack(destinations))
            split = tuple((hop, array("H", part).tobytes()) for hop, part in groups.items())
            size = _OVERHEAD * (1 + len(split)) + 2 * len(destinations)
            if self._bytes + size > DEFAULTS.split_bytes:
                self._cache.clear()
                self._bytes = 0
            self._cache[destinations] = split
            self._bytes += size
        return split

    def _paper(self, entries: "array[int]") -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for entry in entries:
            groups.setdefault(self.routes.next_hop(entry & BROKER), []).append(entry)
        return groups

    def _covering(self, entries: "array[int]") -> dict[int, list[int]]:
        """Destinations with the same choice of next hops stay together, so only the distinct choices are weighed."""
        choice_of = [self._choice(entry & BROKER) for entry in entries]
        hop_of = {_NONE: NO_HOP, _MINE: self.routes.me}
        waiting = Counter(choice for choice in choice_of if choice not in hop_of)
        while waiting:
            gain: Counter[int] = Counter()
            for choice, count in waiting.items():
                for bit in _bits(choice):
                    gain[bit] += count
            best = min(gain, key=lambda bit: (-gain[bit], bit))
            for choice in [choice for choice in waiting if choice >> best & 1]:
                hop_of[choice] = self.routes.neighbours[best]
                del waiting[choice]
        groups: dict[int, list[int]] = {}
        for entry, choice in zip(entries, choice_of, strict=True):
            groups.setdefault(hop_of[choice], []).append(entry)
        return groups

    def _choice(self, broker: int) -> int:
        place = self.routes.place.get(broker)
        if place is None:
            return _NONE
        return _MINE if broker == self.routes.me else self.routes.choices[place]


_NONE, _MINE = 0, -1
"""Choices that need no weighing: no next hop, and this broker itself."""


def _bits(mask: int) -> Iterable[int]:
    while mask:
        yield lowest_bit(mask)
        mask &= mask - 1
