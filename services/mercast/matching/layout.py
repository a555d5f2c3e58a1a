"""How bitmaps are laid out: which attributes get columns, where their cells meet, in which order slots lie.

Slots that ask for similar values lie side by side, and the most selective columns come first: so where there are many
columns, whole stretches of slots are excluded by the first ones and the others are not looked at.
"""

import numpy as np

from mercast.limits import Limits
from mercast.matching.bitmaps import WORD, Bitmaps
from mercast.matching.cells import Cells, Column
from mercast.matching.codes import BOOL, KINDS, MISSING
from mercast.matching.fine import FINEST
from mercast.matching.slots import Array, owners_of

_CACHE = 16 * 1024 * 1024
"""Rows that fit the processor's cache. More cells would leave fewer candidates, but take longer to look at."""

_LEAST_CELLS, _MOST_CELLS = 64, 256
"""Coarse cells per column and kind, within which the cache decides. The more there are, the slower an addition."""

_RARE = 256
"""An attribute gets a column if at least one slot in so many asks about it; for fewer a row would be mostly empty."""

_MOST_COLUMNS = 256
"""Every event looks at all columns. The attributes asked about most get them; checks decide the others."""

_SORTED_BY = 8
"""Columns that decide which slots are neighbours; with 64 slots to a word, more make no difference."""

_GRAIN = 8
"""Slots are neighbours if their intervals differ by less than this part of their usual width."""


def build(slots: Array, checks: Array, limits: Limits) -> tuple[Bitmaps, Array]:
    """Bitmaps for these slots, and the order in which the slots must be laid (new place -> old place)."""
    places = len(slots) + max(4 * WORD, len(slots) // 4)
    owners = owners_of(slots)
    columns = _columns(owners, checks, len(slots), limits.bitmap_bytes * 8 // places)
    most = _coarse_cells(columns, places, limits)
    cells = Cells(columns, most)
    lay = [_layout(cells, place, column, owners, checks, len(slots)) for place, column in enumerate(columns)]
    best = sorted(range(len(columns)), key=lambda place: (-lay[place][0], place))
    keys = [lay[place][1] for place in best[:_SORTED_BY]]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(slots))
    new_place = np.empty(len(slots), np.intp)
    new_place[order] = np.arange(len(slots))
    columns = [columns[place] for place in best]
    bitmaps = Bitmaps(Cells(columns, most), places)
    bitmaps.fill(columns, new_place[owners], checks, len(slots))
    return bitmaps, order


def _columns(owners: Array, checks: Array, slots: int, rows: int) -> list[Column]:
    """The attributes worth a column, as many as there is memory for at least one cell of each kind."""
    attributes = checks["key"] // KINDS
    new = np.append(True, (owners[1:] != owners[:-1]) | (attributes[1:] != attributes[:-1]))[: len(owners)]
    asked, counts = np.unique(attributes[new], return_counts=True)
    worth = asked[counts * _RARE >= slots]
    most = min(_MOST_COLUMNS, rows // (KINDS + 1))
    worth = worth[np.argsort(-counts[counts * _RARE >= slots], kind="stable")][:most]
    by_attribute = np.argsort(attributes, kind="stable")
    first = np.searchsorted(attributes[by_attribute], worth)
    last = np.searchsorted(attributes[by_attribute], worth, side="right")
    places = [by_attribute[start:stop] for start, stop in zip(first, last, strict=True)]
    return [
        Column(attribute, mine, {kind: _cuts(kind, checks[mine]) for kind in range(KINDS)})
        for attribute, mine in zip(worth.tolist(), places, strict=True)
    ]


def _coarse_cells(columns: list[Column], places: int, limits: Limits) -> int:
    """Coarse cells per column and kind: what the cache holds, unless that is very few; never more than allowed."""
    rows = _CACHE * 8 // places
    cells = max(_LEAST_CELLS, min(_MOST_CELLS, rows // max(1, len(columns))))
    while cells > 1 and sum(column.rows(cells) for column in columns) * places > limits.bitmap_bytes * 8:
        cells //= 2
    return cells


def _cuts(kind: int, checks: Array) -> Array:
    """Where the fine cells of one kind meet: at all bounds, or at evenly many of them where there are too many."""
    if kind == MISSING:
        return np.empty(0)
    if kind == BOOL:
        return np.array([0.5])
    mine = checks[checks["key"] % KINDS == kind]
    with np.errstate(over="ignore"):  # beyond the largest float lies infinity, which is no cut
        bounds = np.concatenate([mine["low"], np.nextafter(mine["high"], np.inf)])
    bounds = np.sort(bounds[np.isfinite(bounds)])
    distinct = np.unique(bounds)
    if len(distinct) < FINEST:
        return distinct
    return np.unique(bounds[np.linspace(0, len(bounds), FINEST, endpoint=False).astype(np.intp)[1:]])


def _layout(cells: Cells, place: int, column: Column, owners: Array, checks: Array, slots: int) -> tuple[float, Array]:
    """How much a column excludes, and a sorting key for its slots: similar intervals get equal keys, others zero."""
    mine = checks[column.checks]
    kinds = mine["key"] % KINDS
    low, high = cells.find(place, kinds, mine["low"]), cells.find(place, kinds, mine["high"])
    of_kind = (cells.cells[place]["last"] - cells.cells[place]["first"] + 1)[kinds]
    owner = owners[column.checks]
    allowed = np.zeros(slots)
    np.add.at(allowed, owner, (high - low + 1) / of_kind)
    asks = np.zeros(slots, np.bool_)
    asks[owner] = True
    excludes = float(np.sum(1 - np.minimum(allowed[asks], 1)))
    grain = max(1, int(np.mean(high - low + 1)) // _GRAIN)
    key = np.zeros(slots, np.intp)
    key[owner] = 1 + (low + high) // 2 // grain
    return excludes, key
