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
from mercast.matching.sure import LANES, NEVER

_ROOM = 16_384
"""Slots found per call of the compiled loop; few, so that they stay in the processor's cache."""

_FULL = np.uint64(2**64 - 1)

_TOP = np.uint64(0x8000_8000_8000_8000)
"""The top bits of the lanes."""

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
        cells = bitmaps.cells
        event = block = total = 0
        while event < len(ends):
            event, block, count = _find(
                event, block, total, batch.kinds, batch.low, batch.high, cells.attributes, cells.cells, cells.cuts,
                bitmaps.excluded, bitmaps.full, bitmaps.gone, bitmaps.gone_full, bitmaps.sure.words,
                slots, checks, seen, self._found, ends,
            )  # fmt: skip
            parts.append(self._found[:count].copy())
            total += count
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)), ends.tolist()


def _compile(function: Any) -> Any:
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        return numba.njit(function)


def _inline(function: Any) -> Any:
    """For the innermost: a call would cost more than what it does."""
    return numba.njit(inline="always")(function)


@_compile
def _find(  # type: ignore[no-untyped-def]
    event, block, before, kinds, low, high, attributes, cells, cuts,
    excluded, full, gone, gone_full, sure, slots, checks, seen, found, ends,
):  # fmt: skip
    """From this block of words of this event on, until all is done or `found` is full: where it stopped, the count."""
    count = 0
    rows = np.empty(len(attributes), np.int64)
    lanes = np.empty(sure.shape[2], np.uint64)
    while event < len(kinds):
        lanes[:] = 0
        for column in range(len(attributes)):
            attribute = attributes[column]
            kind = kinds[event, attribute]
            rows[column] = _row(cells[column, kind], cuts, low[event, attribute])
            if column < LANES * len(lanes):
                exact = low[event, attribute] == high[event, attribute]
                row = rows[column] - cells[column, 0].base if exact else NEVER
                lanes[column // LANES] |= np.uint64(row) << np.uint64(16 * (column % LANES))
        start = count
        while block < len(gone_full) and count + WORD * WORD <= len(found):
            out = gone_full[block]
            for column in range(len(rows)):
                out |= full[rows[column], block]
            left = ~out
            while left:
                lowest = left & (~left + np.uint64(1))
                left ^= lowest
                word = block * WORD + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                count = _candidates(word, rows, excluded, gone, found, count)
            block += 1
        count = _keep_passing(
            start, count, event, kinds[event], low[event], high[event], lanes, sure, slots, checks, seen, found
        )
        if block == len(gone_full):
            ends[event] = before + count
            event, block = event + 1, 0
        elif count + WORD * WORD > len(found):
            break
    return event, block, count


@_inline
def _candidates(word, rows, excluded, gone, found, count):  # type: ignore[no-untyped-def]
    """Append the slots of a word that no row excludes. No early way out: a branch hard to foresee would cost more."""
    out = gone[word]
    for column in range(len(rows)):
        out |= excluded[rows[column], word]
    left = ~out
    while left:
        lowest = left & (~left + np.uint64(1))
        left ^= lowest
        found[count] = word * WORD + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
        count += 1
    return count


@_inline
def _is_sure(slot, lanes, sure):  # type: ignore[no-untyped-def]
    for word in range(len(lanes)):
        at_least = (lanes[word] | _TOP) - sure[slot, 0, word]
        at_most = (sure[slot, 1, word] | _TOP) - lanes[word]
        if at_least & at_most & _TOP != _TOP:
            return False
    return True


@_inline
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
def _keep_passing(start, count, event, kinds, low, high, lanes, sure, slots, checks, seen, found):  # type: ignore[no-untyped-def]
    """Keep the slots that pass their checks; with `seen`, those only whose destination was not yet found."""
    kept = start
    for at in range(start, count):
        slot = found[at]
        if len(seen) and seen[slots[slot].destination] == event:
            continue
        if _is_sure(slot, lanes, sure) or _passes(slots[slot], checks, kinds, low, high):
            found[kept] = slot
            kept += 1
            if len(seen) and not slots[slot].loose:
                seen[slots[slot].destination] = event
    return kept


@_compile
def _passes(slot, checks, kinds, low, high):  # type: ignore[no-untyped-def]
    """For each attribute one check must pass."""
    at = slot.first
    while at < slot.last:
        attribute = checks[at].key // KINDS
        key = attribute * KINDS + kinds[attribute]
        code, passed = low[attribute], False
        while at < slot.last and checks[at].key // KINDS == attribute:
            if checks[at].key == key and checks[at].low <= code and high[attribute] <= checks[at].high:
                passed = True
            at += 1
        if not passed:
            return False
    return True
