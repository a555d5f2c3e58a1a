"""The inner loop compiled by numba, word by word: a word of 64 slots is left as soon as all of them are excluded.

Compiled once and kept on disk where there is a place to write. Importing this without numba is an ImportError.
"""

from typing import Any

import numba
import numpy as np

from mercast.matching.bitmaps import WORD, Bitmaps
from mercast.matching.codes import KINDS
from mercast.matching.coding import Batch
from mercast.matching.loops import Found
from mercast.matching.slots import Array

_ROOM = 8192
"""Slots found per call of the compiled loop; few, so that they stay in the processor's cache."""

_FULL = np.uint64(2**64 - 1)

_NOTHING_SEEN = np.empty(0, np.int64)

# The place of a word's lowest bit: this constant shifted left by it differs in the top six bits for each place.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(WORD, np.int64)
for _bit in range(WORD):
    _PLACE[(int(_DE_BRUIJN) << _bit) % 2**64 >> 58] = _bit


class CompiledLoop:
    """As `loops.NumpyLoop`."""

    def __init__(self) -> None:
        self._found = np.empty(_ROOM, np.int32)

    def find(self, bitmaps: Bitmaps, slots: Array, checks: Array, batch: Batch, once: bool) -> Found:
        seen = np.full(slots["destination"].max(initial=0) + 1, -1) if once else _NOTHING_SEEN
        parts: list[Array] = []
        ends = np.empty(len(batch.kinds), np.int64)
        event = word = total = 0
        while event < len(ends):
            event, word, count = _find(
                event, word, total, batch.kinds, batch.low, batch.high, bitmaps.attributes, bitmaps.cells,
                bitmaps.cuts, bitmaps.excluded, bitmaps.gone, slots, checks, seen, self._found, ends,
            )  # fmt: skip
            parts.append(self._found[:count].copy())
            total += count
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)), ends.tolist()


def _compile(function: Any) -> Any:
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        return numba.njit(function)


@_compile
def _find(  # type: ignore[no-untyped-def]
    event, word, before, kinds, low, high, attributes, cells, cuts, excluded, gone, slots, checks, seen, found, ends
):
    """From this word of this event on, until all is done or `found` is full: where it stopped, and the count."""
    count = 0
    rows = np.empty(len(attributes), np.int64)
    while event < len(kinds):
        for column in range(len(attributes)):
            attribute = attributes[column]
            rows[column] = _row(cells[column, kinds[event, attribute]], cuts, low[event, attribute])
        start = count
        while word < len(gone) and count + WORD <= len(found):
            out = gone[word]
            for column in range(len(rows)):
                if out == _FULL:
                    break
                out |= excluded[rows[column], word]
            left = ~out
            while left:
                lowest = left & (~left + np.uint64(1))
                left ^= lowest
                found[count] = word * WORD + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                count += 1
            word += 1
        count = _keep_passing(start, count, event, kinds[event], low[event], high[event], slots, checks, seen, found)
        if word == len(gone):
            ends[event] = before + count
            event, word = event + 1, 0
        elif count + WORD > len(found):
            break
    return event, word, count


@_compile
def _row(cell, cuts, code):  # type: ignore[no-untyped-def]
    first, last = cell.first, cell.last
    while first < last:
        middle = (first + last) >> 1
        if cuts[middle] <= code:
            first = middle + 1
        else:
            last = middle
    return cell.base + first - cell.first


@_compile
def _keep_passing(start, count, event, kinds, low, high, slots, checks, seen, found):  # type: ignore[no-untyped-def]
    """Keep the slots that pass their checks; with `seen`, those only whose destination was not yet found."""
    kept = start
    for at in range(start, count):
        slot = slots[found[at]]
        if len(seen) and seen[slot.destination] == event:
            continue
        if _passes(slot, checks, kinds, low, high):
            found[kept] = found[at]
            kept += 1
            if len(seen) and not slot.loose:
                seen[slot.destination] = event
    return kept


@_compile
def _passes(slot, checks, kinds, low, high):  # type: ignore[no-untyped-def]
    at = slot.first
    while at < slot.last:
        attribute = checks[at].key // KINDS
        passed = False
        while at < slot.last and checks[at].key // KINDS == attribute:
            check = checks[at]
            if kinds[attribute] == check.key % KINDS and check.low <= low[attribute] and high[attribute] <= check.high:
                passed = True
            at += 1
        if not passed:
            return False
    return True
