"""The inner loop in numpy: from an event's codes to the slots that it passes.

`compiled.py` has the same loop for numba. Loose slots are still to be evaluated by their filters.
"""

from collections.abc import Callable
from itertools import accumulate, chain
from typing import TypeAlias

import numpy as np

from mercast.matching.bitmaps import WORD, Bitmaps
from mercast.matching.codes import KINDS
from mercast.matching.coding import Batch
from mercast.matching.slots import Array

Found: TypeAlias = tuple[Array, list[int]]
"""The slots found, event after event, and where each event's slots end."""

Sort: TypeAlias = Callable[[Found], Array]
"""Ids found, ascending within each event."""

_FULL = ~np.uint64(0)


def events_of(found: Found) -> Array:
    """The event of each slot found."""
    return np.repeat(np.arange(len(found[1])), np.diff(found[1], prepend=0))


def kept(found: Found, which: Array) -> Found:
    return found[0][which], np.append(0, np.cumsum(which))[found[1]].tolist()


def joined(parts: list[Found]) -> Found:
    """What was found for one part of the events after the other."""
    if len(parts) == 1:
        return parts[0]
    ends: list[int] = []
    for _, its_ends in parts:
        before = ends[-1] if ends else 0
        ends += [before + end for end in its_ends]
    return np.concatenate([np.zeros(0, np.int64), *(slots for slots, _ in parts)]), ends


def packed(lists: list[list[int]]) -> Found:
    """Found one by one."""
    return np.array(list(chain.from_iterable(lists)), np.int64), list(accumulate(map(len, lists)))


class NumpyLoop:
    def find(self, bitmaps: Bitmaps, slots: Array, checks: Array, batch: Batch, destinations: int) -> Found:  # noqa: ARG002
        """The slots that pass, event after event; of each of so many destinations one will do, if that is not 0."""
        rows = [
            bitmaps.cells.row_of[bitmaps.cells.find(place, batch.kinds[:, attribute], batch.low[:, attribute])]
            for place, attribute in enumerate(bitmaps.cells.attributes)
        ]
        candidates = [_candidates(bitmaps, [column[event] for column in rows]) for event in range(len(batch.kinds))]
        found = np.concatenate(candidates), np.cumsum([len(some) for some in candidates]).tolist()
        return kept(found, _pass(slots[found[0]], checks, events_of(found), batch))

    def sort(self, found: Found) -> Array:
        """Ids ascending within each event."""
        return found[0][np.lexsort((found[0], events_of(found)))]


def _candidates(bitmaps: Bitmaps, rows: list[int]) -> Array:
    """The slots that no row excludes."""
    excluded = bitmaps.gone.copy()
    for row in rows:
        np.bitwise_or(excluded, bitmaps.excluded[row], out=excluded)
    words = np.flatnonzero(excluded != _FULL)
    bits = np.unpackbits((~excluded[words]).view(np.uint8), bitorder="little")
    word, bit = np.divmod(np.flatnonzero(bits), WORD)
    candidates: Array = words[word] * WORD + bit
    return candidates


def _pass(slots: Array, checks: Array, events: Array, batch: Batch) -> Array:
    """Which of the slots pass all their attributes, each slot against the event beside it."""
    lengths = slots["last"] - slots["first"]
    passed = np.ones(len(slots), np.bool_)
    asking = lengths > 0
    if not asking.any():
        return passed
    slots, events, lengths = slots[asking], events[asking], lengths[asking]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    owner = np.repeat(np.arange(len(slots)), lengths)
    mine = checks[np.arange(lengths.sum()) - starts[owner] + slots["first"][owner]]
    attribute, kind = np.divmod(mine["key"], KINDS)
    at = events[owner], attribute
    one = (batch.kinds[at] == kind) & (mine["low"] <= batch.low[at]) & (batch.high[at] <= mine["high"])
    # A slot's checks lie together by attribute: one of each attribute must pass.
    new = np.ones(len(owner), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (attribute[1:] != attribute[:-1])
    groups = np.flatnonzero(new)
    any_of_attribute = np.logical_or.reduceat(one, groups)
    first_group = np.searchsorted(owner[groups], np.arange(len(slots)))
    passed[asking] = np.logical_and.reduceat(any_of_attribute, first_group)
    return passed
