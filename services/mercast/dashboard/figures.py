"""Windows of the metrics topic (docs/metrics.md), as they are: of clusters for an hour and more, of brokers the newest.

Where several clusters are looked at together, counts are added up and ratios made of the sums; percentiles cannot be
joined, so the highest of any cluster counts.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil
from typing import Any, TypeAlias

from mercast.dashboard.load import MOST_POINTS, MOST_SERIES, Choice

Row: TypeAlias = dict[str, Any]

WINDOWS = 1_440
"""Of each cluster: two hours, of five seconds each."""

MOST_BROKERS = 2_000

HIGHEST = ("latency_p50_us", "latency_p95_us", "latency_p99_us", "latency_max_us", "clock_offset_us")
SUMS = (
    "published", "receipts", "doubled_receipts", "deliveries", "doubled_deliveries", "entries_made", "entries_reached",
    "dropped", "all_published", "all_delivered", "negative_latencies", "late", "ahead", "tap_lost",
)  # fmt: skip
RATIOS = {"accuracy": "receipts", "completeness": "entries_made", "hops": "receipts", "list_length": "receipts"}
"""By what each is weighed, where several are joined."""

KEPT = (*HIGHEST, *SUMS, *RATIOS)


class Figures:
    def __init__(self) -> None:
        self._clusters: dict[tuple[str, str], dict[int, Row]] = {}
        """By cluster and strategy, windows by their beginning."""
        self._brokers: dict[int, tuple[int, Row]] = {}
        self.unreadable = 0
        """Messages of the taps that Spark set aside."""

    def take(self, row: Mapping[str, Any]) -> None:
        begin, end = _millis(row["window_start"]), _millis(row["window_end"])
        kept = {name: row.get(name) for name in KEPT} | {"begin": begin, "end": end}
        cluster, strategy, broker = row.get("cluster"), row.get("strategy"), row.get("broker")
        if cluster is None or strategy is None:
            self.unreadable += (row.get("malformed") or 0) + (row.get("newer") or 0)
        elif broker is None:
            self._keep((cluster, strategy), begin, kept)
        else:
            self._keep_newest(broker, begin, kept)

    def _keep(self, key: tuple[str, str], begin: int, row: Row) -> None:
        if key not in self._clusters and len(self._clusters) >= MOST_SERIES:
            return
        windows = self._clusters.setdefault(key, {})
        windows[begin] = row
        if len(windows) > WINDOWS:
            del windows[min(windows)]

    def _keep_newest(self, broker: int, begin: int, row: Row) -> None:
        if broker not in self._brokers and len(self._brokers) >= MOST_BROKERS:
            return
        if begin >= self._brokers.get(broker, (0, {}))[0]:
            self._brokers[broker] = begin, row

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Clusters and strategies."""
        return sorted(self._clusters)

    def broker(self, id: int) -> Row | None:
        return self._brokers.get(id, (0, None))[1]

    def newest(self, choice: Choice) -> Row | None:
        """The newest window of any cluster that is looked at."""
        chosen = [windows for key, windows in self._clusters.items() if choice.fits(*key)]
        newest = max((max(windows) for windows in chosen), default=None)
        return None if newest is None else joined(windows[newest] for windows in chosen if newest in windows)

    def history(self, choice: Choice, since: int) -> dict[str, list[Any]]:
        """As columns. Where there are too many windows, every so manieth: a mean of percentiles would be none."""
        by_begin: dict[int, list[Row]] = {}
        for key, windows in self._clusters.items():
            if choice.fits(*key):
                for begin, row in windows.items():
                    if begin >= since:
                        by_begin.setdefault(begin, []).append(row)
        begins = sorted(by_begin)
        step = max(1, ceil(len(begins) / MOST_POINTS))
        rows = [joined(by_begin[begin]) for begin in begins[::-1][::step][::-1]]
        return {name: [row[name] for row in rows] for name in ("begin", "end", "clusters", *KEPT)}


def joined(rows: Iterable[Row]) -> Row:
    """Of several clusters in one window; of one, what it is."""
    some = list(rows)
    if len(some) == 1:
        return some[0] | {"clusters": 1}
    found: Row = {name: max(_present(some, name), default=None) for name in HIGHEST}
    found |= {name: sum(_present(some, name)) for name in SUMS}
    for name, weight in RATIOS.items():
        weighed = [(row[name], row[weight]) for row in some if row[name] is not None and row[weight]]
        total = sum(weight for _, weight in weighed)
        found[name] = sum(value * weight for value, weight in weighed) / total if total else None
    return found | {"begin": some[0]["begin"], "end": some[0]["end"], "clusters": len(some)}


def _present(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _millis(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)
