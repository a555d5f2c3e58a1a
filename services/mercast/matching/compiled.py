"""The inner loop compiled by numba: rows are ORed by the processor's vector unit, candidates decided one by one.

Compiled once and kept on disk where there is a place to write. Importing this without numba is an ImportError.
"""

from typing import Any

import numba
import numpy as np

from mercast.matching.bitmaps import WORD, Bitmaps
from mercast.matching.codes import KINDS
from mercast.matching.coding import Batch
from mercast.matching.fine import LANES, MOST_COLUMNS
from mercast.matching.loops import Found
from mercast.matching.slots import Array

_STRETCH = 512
"""Words that are ORed at a time: their slots, were all of them candidates, must fit into what is found in one go."""

_ROOM = 4 * _STRETCH * WORD
"""Slots found per call of the compiled loop; few, so that they stay in the processor's cache."""

_FULL = np.uint64(2**64 - 1)

_ONES = np.uint64(0x0001_0001_0001_0001)
_TOP = np.uint64(0x8000_8000_8000_8000)
"""The lowest and the top bits of the lanes."""

_OUT, _IN, _EDGE = 0, 1, 2

# The place of a word's lowest bit: this constant shifted left by it differs in the top six bits for each place.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(WORD, np.int64)
for _bit in range(WORD):
    _PLACE[(int(_DE_BRUIJN) << _bit) % 2**64 >> 58] = _bit


class CompiledLoop:
    """As `loops.NumpyLoop`."""

    def __init__(self) -> None:
        self._found = np.empty(_ROOM, np.int32)

    def find(self, bitmaps: Bitmaps, slots: Array, checks: Array, batch: Batch, destinations: int) -> Found:
        seen = np.full(destinations, -1)
        parts: list[Array] = []
        ends = np.empty(len(batch.kinds), np.int64)
        cells = bitmaps.cells
        event = word = total = 0
        while event < len(ends):
            event, word, count = _find(
                event, word, total, batch.kinds, batch.low, batch.high,
                cells.attributes, cells.cells, cells.cuts, cells.row_of,
                bitmaps.excluded, bitmaps.gone[: bitmaps.words], bitmaps.fine.words, bitmaps.fine.decides,
                slots, checks, seen, self._found, ends,
            )  # fmt: skip
            parts.append(self._found[:count].copy())
            total += count
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)), ends.tolist()

    def sort(self, found: Found) -> Array:
        """In place."""
        _sort(found[0], np.array(found[1]))
        return found[0]


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
    event, word, before, kinds, low, high, attributes, cells, cuts, row_of,
    excluded, gone, fine, decides, slots, checks, seen, found, ends,
):  # fmt: skip
    """From this word of this event on, until all is done or `found` is full: where it stopped, the count."""
    count = 0
    rows = np.empty(len(attributes), np.intp)
    lanes = np.empty(fine.shape[2], np.uint64)
    out = np.empty(_STRETCH, np.uint64)
    while event < len(kinds):
        exact = _locate(kinds[event], low[event], high[event], attributes, cells, cuts, row_of, rows, lanes)
        start = count
        while word < len(gone) and count + _STRETCH * WORD <= len(found):
            last = min(word + _STRETCH, len(gone))
            if _exclude(rows, excluded, gone, word, last, out):
                count = _candidates(out, word, last, found, count)
            word = last
        count = _keep_passing(
            start, count, event, kinds[event], low[event], high[event],
            exact, lanes, fine, decides, slots, checks, seen, found,
        )  # fmt: skip
        if word < len(gone):
            break
        ends[event] = before + count
        event, word = event + 1, 0
    return event, word, count


@_compile
def _sort(ids, ends):  # type: ignore[no-untyped-def]
    begin = 0
    for end in ends:
        ids[begin:end].sort()
        begin = end


@_inline
def _locate(kinds, low, high, attributes, cells, cuts, row_of, rows, lanes):  # type: ignore[no-untyped-def]
    """The rows and the lanes of an event, and whether the lanes tell all: not so for an int between two floats."""
    exact = True
    lanes[:] = _ONES
    for column in range(len(attributes)):
        attribute = attributes[column]
        fine = _cell(cells[column, kinds[attribute]], cuts, low[attribute])
        rows[column] = row_of[fine]
        if column < MOST_COLUMNS:
            exact = exact and low[attribute] == high[attribute]
            lanes[column // LANES] += np.uint64(2 * (fine - cells[column, 0].base)) << np.uint64(16 * (column % LANES))
    return exact


@_inline
def _cell(cell, cuts, code):  # type: ignore[no-untyped-def]
    """How many cuts are not above the code, by halving; without a branch, which the processor could not foresee."""
    at, left = cell.first, cell.last - cell.first
    while left > 0:
        half = (left + 1) >> 1
        at += half * (cuts[at + half - 1] <= code)
        left -= half
    return cell.base + at - cell.first


@_compile
def _exclude(rows, excluded, gone, first, last, out):  # type: ignore[no-untyped-def]
    """OR the rows over a stretch of words, many at a time; False as soon as all of its slots are excluded."""
    size = last - first
    out[:size] = gone[first:last]
    many = len(rows) // 8 * 8
    for column in range(0, many, 8):
        a, b = excluded[rows[column], first:last], excluded[rows[column + 1], first:last]
        c, d = excluded[rows[column + 2], first:last], excluded[rows[column + 3], first:last]
        e, f = excluded[rows[column + 4], first:last], excluded[rows[column + 5], first:last]
        g, h = excluded[rows[column + 6], first:last], excluded[rows[column + 7], first:last]
        for at in range(size):
            out[at] |= a[at] | b[at] | c[at] | d[at] | e[at] | f[at] | g[at] | h[at]
        if _all_full(out, size):
            return False
    if len(rows) - many >= 4:  # noqa: PLR2004
        a, b = excluded[rows[many], first:last], excluded[rows[many + 1], first:last]
        c, d = excluded[rows[many + 2], first:last], excluded[rows[many + 3], first:last]
        for at in range(size):
            out[at] |= a[at] | b[at] | c[at] | d[at]
        many += 4
    for column in range(many, len(rows)):
        a = excluded[rows[column], first:last]
        for at in range(size):
            out[at] |= a[at]
    return True


@_inline
def _all_full(out, size):  # type: ignore[no-untyped-def]
    common = _FULL
    for at in range(size):
        common &= out[at]
    return common == _FULL


@_inline
def _candidates(out, first, last, found, count):  # type: ignore[no-untyped-def]
    """Append the slots of a stretch that are not excluded."""
    for word in range(first, last):
        left = ~out[word - first]
        while left:
            lowest = left & (~left + np.uint64(1))
            left ^= lowest
            found[count] = word * WORD + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            count += 1
    return count


@_compile
def _keep_passing(  # type: ignore[no-untyped-def]
    start, count, event, kinds, low, high, exact, lanes, fine, decides, slots, checks, seen, found
):
    """Keep the slots that pass; with `seen`, those only whose destination was not yet found."""
    kept = start + _touch(start, count, found, fine)
    for at in range(start, count):
        slot = found[at]
        if len(seen) and seen[slots[slot].destination] == event:
            continue
        where = _place(slot, lanes, fine) if exact else _EDGE
        if where == _OUT:
            continue
        if (where == _IN and decides[slot]) or _passes(slots[slot], checks, kinds, low, high):
            found[kept] = slot
            kept += 1
            if len(seen) and not slots[slot].loose:
                seen[slots[slot].destination] = event
    return kept


@_inline
def _touch(start, count, found, fine):  # type: ignore[no-untyped-def]
    """Look at what will be read next: in a loop this small the processor fetches many slots at once. Answers 0, as the
    top bits are free, so that the look is not optimised away."""
    seen = np.uint64(0)
    for at in range(start, count):
        seen |= fine[found[at], 0, 0] | fine[found[at], 1, fine.shape[2] - 1]
    return np.int64(seen >> np.uint64(63))


@_inline
def _place(slot, lanes, fine):  # type: ignore[no-untyped-def]
    """Where an event lies in what a slot asks for: out in some column, in all of them strictly in, or on an edge."""
    touches = inside = _TOP
    for word in range(len(lanes)):
        lane, first, last = lanes[word], fine[slot, 0, word], fine[slot, 1, word] | _TOP
        touches &= ((lane | _TOP) - first) & (last - lane)
        inside &= (((lane - _ONES) | _TOP) - first) & (last - (lane + _ONES))
    if touches != _TOP:
        return _OUT
    return _IN if inside == _TOP else _EDGE


@_compile
def _passes(slot, checks, kinds, low, high):  # type: ignore[no-untyped-def]
    """For each attribute one check must pass: the last that begins at or below the value, if any."""
    at = slot.first
    while at < slot.last:
        attribute = checks[at].key // KINDS
        key, code = attribute * KINDS + kinds[attribute], low[attribute]
        first, last = at, at + checks[at].run
        at = last
        while last - first > 1:
            middle = (first + last) >> 1
            check = checks[middle]
            if check.key < key or (check.key == key and check.low <= code):
                first = middle
            else:
                last = middle
        check = checks[first]
        if check.key != key or code < check.low or check.high < high[attribute]:
            return False
    return True
