"""Which events the taps get rows of: a share, by a hash of the event's id, so the same ones at every broker.

The hash of a sequence is a multiple of the golden ratio, of which the fraction is looked at: that spreads the events
that are chosen evenly over those of a broker, however many publish there in turn.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from mercast.content.event import EventId

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_GOLDEN_64 = np.uint64(_GOLDEN)


class Sampler:
    def __init__(self, share: float) -> None:
        self._all = share >= 1
        self._below = min(int(max(share, 0) * (1 << 64)), _MASK)

    def __call__(self, event: EventId) -> bool:
        broker, incarnation, sequence = event
        return self._all or sequence * _GOLDEN + _offset(broker, incarnation) & _MASK < self._below

    def among(self, events: Sequence[EventId]) -> Sequence[int]:
        """The places of those that are chosen, ascending."""
        if self._all:
            return range(len(events))
        return [place for place, event in enumerate(events) if self(event)]

    def in_row(self, first: EventId, count: int) -> Sequence[int]:
        """The sequences of those that are chosen among so many that follow each other, as they nearly always do."""
        source, incarnation, sequence = first
        end = sequence + count
        if self._all:
            return range(sequence, end)
        sequences: list[int] = []
        for block in range(sequence >> _BLOCK, (end - 1 >> _BLOCK) + 1):
            chosen = _chosen(self._below, source, incarnation, block)
            sequences += chosen[bisect_left(chosen, sequence) : bisect_left(chosen, end)]
        return sequences


_BLOCK = 12
"""Bits of a sequence: so many are judged in one step, and remembered, for few come at a time."""


@lru_cache(maxsize=256)
def _chosen(below: int, source: int, incarnation: int, block: int) -> list[int]:
    """The sequences of a block that are chosen, ascending."""
    sequences = np.arange(block << _BLOCK, block + 1 << _BLOCK, dtype=np.uint64)
    hashed = sequences * _GOLDEN_64 + np.uint64(_offset(source, incarnation))
    return cast("list[int]", sequences[hashed < np.uint64(below)].tolist())


@lru_cache(maxsize=4096)
def _offset(broker: int, incarnation: int) -> int:
    mixed = (incarnation + (broker << 48)) * _GOLDEN & _MASK
    return (mixed ^ mixed >> 32) * _GOLDEN & _MASK
