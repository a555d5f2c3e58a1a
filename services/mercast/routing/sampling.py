"""Which events the taps get rows of: a share, by a hash of the event's id, so the same ones at every broker.

The hash of a sequence is a multiple of the golden ratio, of which the fraction is looked at: that spreads the events
that are chosen evenly over those of a broker, however many publish there in turn.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from mercast.content.event import EventId

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_GOLDEN_64 = np.uint64(_GOLDEN)

_origin = itemgetter(0, 1)


class Sampler:
    def __init__(self, share: float) -> None:
        self._all = share >= 1
        self._below = min(int(max(share, 0) * (1 << 64)), _MASK)
        self._below_64 = np.uint64(self._below)

    def __call__(self, event: EventId) -> bool:
        broker, incarnation, sequence = event
        return self._all or sequence * _GOLDEN + _offset(broker, incarnation) & _MASK < self._below

    def among(self, events: Sequence[EventId]) -> Sequence[int]:
        """The places of those that are chosen, ascending."""
        if self._all:
            return range(len(events))
        if not (self._below and events):
            return ()
        sources, incarnations, sequences = zip(*events, strict=True)
        count, source, incarnation = len(sequences), sources[0], incarnations[0]
        if sources.count(source) == count == incarnations.count(incarnation):
            return self._chosen(source, incarnation, sequences)
        places: list[int] = []
        begin = 0
        for (source, incarnation), run in groupby(events, _origin):
            sequences = tuple(sequence for _, _, sequence in run)
            places += [begin + place for place in self._chosen(source, incarnation, sequences)]
            begin += len(sequences)
        return places

    def _chosen(self, source: int, incarnation: int, sequences: tuple[int, ...]) -> list[int]:
        """The same of events of one source and incarnation."""
        first, after = sequences[0], sequences[0] + len(sequences)
        if sequences == tuple(range(first, after)):  # as nearly always
            return self.in_row(EventId(source, incarnation, first), len(sequences))
        return self._below_share(np.array(sequences, np.uint64), source, incarnation)

    def in_row(self, first: EventId, count: int) -> list[int]:
        """The same of events that follow each other."""
        if self._all:
            return list(range(count))
        source, incarnation, sequence = first
        return self._below_share(np.arange(sequence, sequence + count, dtype=np.uint64), source, incarnation)

    def _below_share(self, hashed: "np.ndarray[Any, Any]", source: int, incarnation: int) -> list[int]:
        hashed *= _GOLDEN_64
        hashed += _offset_64(source, incarnation)
        return (hashed < self._below_64).nonzero()[0].tolist()


@lru_cache(maxsize=4096)
def _offset(broker: int, incarnation: int) -> int:
    mixed = (incarnation + (broker << 48)) * _GOLDEN & _MASK
    return (mixed ^ mixed >> 32) * _GOLDEN & _MASK


@lru_cache(maxsize=4096)
def _offset_64(broker: int, incarnation: int) -> np.uint64:
    return np.uint64(_offset(broker, incarnation))
