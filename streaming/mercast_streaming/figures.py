"""The figures of windows that have closed, of the sums that the live job keeps of them: plain arithmetic.

A window has a few hundred sums a broker. For those Spark would plan some fifty expressions anew in every batch, which
takes it seconds; to work them out here takes milliseconds. Whatever the order of the sums, the figures are the same.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil, copysign, expm1, floor, fsum
from typing import Any, NamedTuple, TypeAlias

import orjson

from mercast.protocol.rows import FIRST, FURTHER, WAITED

Figures: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[int, str | None, str | None, int | None]
"""Start of the window in microseconds, strategy, cluster, broker; no broker: the whole cluster."""

TICK, DROPS = "tick", "drops"

NUMBERS: dict[str, tuple[str, ...]] = {
    "published": ("destinations", "bytes"),
    "received": ("hops", "list_length", "interested", "taken", "made"),
    "delivered": ("latency",),
    "dropped": (),
    # Of a tick there is a fact for each of its numbers, and for each reason of its drops; which it is, is its `why`.
    TICK: ("number",),
    DROPS: ("count",),
}
"""By kind of fact, what its numbers mean."""

SET_ASIDE = LATE, AHEAD, MALFORMED, NEWER = "late", "ahead", "malformed", "newer"
"""Kinds of facts that are counted only."""
KINDS = (*NUMBERS, *SET_ASIDE)

CELLS = 50
"""Of the latency histogram per factor e. A latency is known to half a cell: 1%."""

PERCENTILES = {"latency_p50_us": 0.5, "latency_p95_us": 0.95, "latency_p99_us": 0.99}

_SECOND = 1_000_000
_LOAD = ("published", "delivered", "forwarded", "matches", "bytes_in", "bytes_out", "bytes_to_clients")
_MEANS = ("clients", "links", "subscriptions")
_PEAKS = ("queued_bytes", "loop_lag_us", "clock_offset_us")
TICKED = (*_LOAD, *_MEANS, *_PEAKS, "cpu_us", "tap_lost")
"""The numbers of a tick."""


_REASON, _REASONS, _OTHERS = 64, 64, "others"
"""Characters of a reason, how many are told, and what the others are called."""


class Sum(NamedTuple):
    """Of the facts of one window that are alike in all of these."""

    window: int
    """When it began, in microseconds."""
    strategy: str | None
    cluster: str | None
    broker: int | None
    kind: str
    copy: int | None
    why: str | None
    cell: int | None
    """Of the latency histogram; below 0 for latencies below 0."""
    many: int
    numbers: list[int | None]
    """Added up."""
    peak: int | None
    """The highest of the first of them."""


def figures(sums: Iterable[Sum], window: int) -> list[Figures]:
    """For each window and broker, and for each window and cluster, with `broker` null. A window has so many seconds."""
    brokers: dict[Key, _Totals] = {}
    for one in sums:
        brokers.setdefault((one.window, one.strategy, one.cluster, one.broker), _Totals()).add(one)
    totals = {key: total for key, total in brokers.items() if key[3] is not None}
    for (start, strategy, cluster, _), total in brokers.items():
        totals.setdefault((start, strategy, cluster, None), _Totals()).merge(total)
    return [_head(key, window) | totals[key].figures() for key in sorted(totals, key=_order)]


def _order(key: Key) -> tuple[Any, ...]:
    start, strategy, cluster, broker = key
    return start, strategy or "", cluster or "", -1 if broker is None else broker


def _head(key: Key, window: int) -> Figures:
    start, strategy, cluster, broker = key
    begins, ends = (datetime.fromtimestamp(at // _SECOND, UTC) for at in (start, start + window * _SECOND))
    return {"window_start": begins, "window_end": ends, "strategy": strategy, "cluster": cluster, "broker": broker}


class _Totals:
    """The sums of a broker, or of a cluster."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int | None]] = Counter()
        """By kind and copy; and by kind alone, with None for the copy."""
        self._numbers: Counter[tuple[str, str, int | None]] = Counter()
        """Likewise, with the name between them."""
        self._cells: Counter[int] = Counter()
        self._ticks: Counter[str] = Counter()
        """By name, how many there were; and of their numbers, what they add up to, the highest, and means by broker."""
        self._ticked: Counter[str] = Counter()
        self._peaks: dict[str, int] = {}
        self._means: dict[str, list[float]] = {}
        self._drops: Counter[str] = Counter()

    def add(self, one: Sum) -> None:
        if one.kind == TICK:
            self._add_ticks(one)
        elif one.kind == DROPS and one.why is not None:
            self._drops[one.why[:_REASON]] += one.numbers[0] or 0
        elif one.kind not in SET_ASIDE or one.why not in TICKED[1:]:  # a tick that was set aside counts once
            self._add_rows(one)

    def _add_ticks(self, one: Sum) -> None:
        name, number = one.why or "", one.numbers[0]
        self._ticks[name] += one.many
        if number is not None:
            self._ticked[name] += number
            if name in _MEANS:
                self._means.setdefault(name, []).append(number / one.many)
        self._rise(name, one.peak)

    def _add_rows(self, one: Sum) -> None:
        for copy in {None, one.copy}:
            self._counts[one.kind, copy] += one.many
            for name, number in zip(NUMBERS.get(one.kind, ()), one.numbers, strict=False):
                self._numbers[one.kind, name, copy] += number or 0
        if one.kind == "delivered" and one.cell is not None:
            self._cells[one.cell] += one.many
            self._rise("latency", one.peak)

    def merge(self, other: "_Totals") -> None:
        for mine, theirs in zip(self._added, other._added, strict=True):
            mine.update(theirs)
        for name, peak in other._peaks.items():
            self._rise(name, peak)
        for name, means in other._means.items():
            self._means.setdefault(name, []).extend(means)

    @property
    def _added(self) -> "tuple[Counter[Any], ...]":
        return self._counts, self._numbers, self._cells, self._ticks, self._ticked, self._drops

    def _rise(self, name: str, peak: int | None) -> None:
        if peak is not None:
            self._peaks[name] = max(peak, self._peaks.get(name, peak))

    def figures(self) -> Figures:
        """Shares and means of nothing are null."""
        count, total, ticked = self._count, self._total, self._ticked
        receipts, doubled = count("received", FIRST), count("received", FURTHER)
        hops, entries = (
            total("received", name, FIRST) + total("received", name, FURTHER) for name in ("hops", "list_length")
        )
        carried = total("received", "made", FIRST) + total("received", "made", WAITED)
        made = total("published", "destinations") + carried
        reached = total("received", "taken", FIRST)
        found = self._percentiles() | {
            "published": count("published"),
            "payload_bytes": total("published", "bytes"),
            "receipts": receipts,
            "doubled_receipts": doubled,
            "deliveries": count("delivered", FIRST),
            "doubled_deliveries": count("delivered", FURTHER),
            "latency_max_us": self._peaks.get("latency"),
            "negative_latencies": sum(many for cell, many in self._cells.items() if cell < 0),
            "accuracy": _share(total("received", "interested", FIRST), receipts),
            "hops": _share(hops, receipts + doubled),
            "list_length": _share(entries, receipts + doubled),
            "entries_made": made,
            "entries_reached": reached,
            "completeness": _share(reached, made),
            "dropped": count("dropped"),
            **{f"all_{name}": ticked[name] for name in _LOAD},
            "all_drops": self._reasons(),
            "matches_per_event": _share(ticked["matches"], ticked["published"]),
            "bytes_per_delivery": _share(ticked["bytes_out"], ticked["delivered"]),
            **{name: self._mean(name) for name in _MEANS},
            **{name: self._peaks.get(name) for name in _PEAKS},
            "cpu_us": ticked["cpu_us"],
            "ticks": self._ticks["published"],
            "tap_lost": ticked["tap_lost"],
            **{kind: count(kind) for kind in SET_ASIDE},
        }
        return {name: _bounded(value) if isinstance(value, int) else value for name, value in found.items()}

    def _count(self, kind: str, copy: int | None = None) -> int:
        return self._counts[kind, copy]

    def _total(self, kind: str, name: str, copy: int | None = None) -> int:
        return self._numbers[kind, name, copy]

    def _mean(self, name: str) -> float | None:
        """Over a broker's ticks; of a cluster, the sum over its brokers."""
        return round(fsum(self._means[name]), 3) if name in self._means else None

    def _reasons(self) -> dict[str, int]:
        """Brokers know few; of nonsense only the largest are told, for a message has an end."""
        largest = sorted(self._drops, key=lambda why: (-self._drops[why], why))
        found = {why: self._drops[why] for why in sorted(largest[:_REASONS])}
        if others := sum(self._drops[why] for why in largest[_REASONS:]):
            found[_OTHERS] = found.get(_OTHERS, 0) + others
        return {why: _bounded(many) for why, many in found.items()}

    def _percentiles(self) -> dict[str, float | None]:
        ranked = sorted(self._cells.items())
        many = self._cells.total()
        return {name: _ranked(ranked, (many - 1) * share) if many else None for name, share in PERCENTILES.items()}


def _ranked(cells: list[tuple[int, int]], place: float) -> float:
    """The latency at that place, counted from 0, or between two of them."""
    below, above = floor(place), ceil(place)
    low, passed = None, 0
    for cell, many in cells:
        passed += many
        if low is None and below < passed:
            low = middle(cell)
        if low is not None and above < passed:
            return low + (middle(cell) - low) * (place - below)
    raise ValueError(f"place {place} of {passed}")


def middle(cell: int) -> float:
    """Of a cell of the histogram, in microseconds."""
    return copysign(round(expm1((abs(cell) + 0.5) / CELLS), 1), cell) if cell else 0.0


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _bounded(number: int) -> int:
    """What brokers with nonsense in their rows add up to may need more than 64 bits; a table of Spark has no more."""
    return max(-(2**63), min(number, 2**63 - 1))


# -- as they are written -----------------------------------------------------------------------------------------------

_DOUBLES = {*PERCENTILES, *_MEANS, "accuracy", "hops", "list_length", "completeness", "matches_per_event"}
_TYPES = (
    dict.fromkeys(("window_start", "window_end"), "timestamp")
    | dict.fromkeys(("strategy", "cluster"), "string")
    | dict.fromkeys((*_DOUBLES, "bytes_per_delivery"), "double")
    | {"all_drops": "map<string,bigint>"}
)
SCHEMA = ", ".join(
    f"{name} {_TYPES.get(name, 'bigint')}" for name in (*_head((0, None, None, None), 0), *_Totals().figures())
)
"""Of a table of figures, in Spark's words."""


def as_json(row: Figures) -> str:
    """One JSON object, in a line: the same for the same figures."""
    return orjson.dumps(row, option=orjson.OPT_UTC_Z).decode()


def key_json(row: Figures) -> str:
    """What the row is about: window, strategy, cluster and, if it is not of the whole cluster, broker."""
    names = ("window_start", "window_end", "strategy", "cluster", "broker")
    return as_json({name: row[name] for name in names if row[name] is not None})
