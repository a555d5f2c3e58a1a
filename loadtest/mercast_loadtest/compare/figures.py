"""What Spark's windows say of one part of a load: all of its windows together, or those of a ramp's steps.

Counts are sums over all windows that touch the part. What is a rate or a mean is taken from the windows that lie
within it, so that setting up and taking down does not count. Percentiles cannot be added up: theirs is the mean over
windows and clusters, by deliveries.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

Row: TypeAlias = dict[str, Any]
"""Of a window, as `mercast_streaming.figures` makes them."""

_MS, _US = 1e-3, 1e6


class Part(NamedTuple):
    """Of a load, as its result tells of it."""

    began: datetime
    ended: datetime

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Part":
        return cls(datetime.fromisoformat(result["began"]), datetime.fromisoformat(result["ended"]))


def within(rows: Iterable[Row], part: Part) -> list[Row]:
    """The windows that lie in it altogether."""
    return [row for row in rows if part.began <= row["window_start"] and row["window_end"] <= part.ended]


def between(rows: Iterable[Row], part: Part, until: datetime | None) -> list[Row]:
    """The windows that touch it, and all that come after it before another one begins."""
    return [row for row in rows if row["window_end"] > part.began and (until is None or row["window_end"] <= until)]


def counted(rows: Iterable[Row]) -> dict[str, int]:
    """What can be compared with what clients have counted."""
    clusters = _clusters(rows)
    names = (
        "published", "deliveries", "doubled_deliveries", "receipts", "doubled_receipts",
        "dropped", "tap_lost", "late", "ahead", "malformed",
    )  # fmt: skip
    return {name: sum(row[name] for row in clusters) for name in names}


def measured(rows: Sequence[Row]) -> dict[str, float | None]:
    """Rates and means."""
    clusters, brokers = _clusters(rows), [row for row in rows if row["broker"] is not None]
    seconds = _seconds(clusters)

    def total(name: str) -> float:
        return float(sum(row[name] for row in clusters))

    def per_delivery(name: str) -> float | None:
        return _ratio(total(name), total("all_delivered"))

    def copies(row: Row) -> int:
        return int(row["receipts"] + row["doubled_receipts"])

    running = sum(row["ticks"] for row in brokers)  # a tick a second
    return {
        "events_per_second": _ratio(total("published"), seconds),
        "deliveries_per_second": _ratio(total("deliveries"), seconds),
        **{
            f"latency_{name}_ms": _mean(clusters, f"latency_{name}_us", _deliveries, _MS)
            for name in ("p50", "p95", "p99")
        },
        "accuracy": _mean(clusters, "accuracy", lambda row: int(row["receipts"])),
        "list_length": _mean(clusters, "list_length", copies) or None,  # others than destination lists have none
        "messages_per_delivery": per_delivery("all_forwarded"),
        "bytes_per_delivery": per_delivery("all_bytes_out"),
        "cpu_per_broker": _ratio(sum(row["cpu_us"] for row in brokers) / _US, running),
    }


def _clusters(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["broker"] is None and row["cluster"] is not None]


def _seconds(clusters: Iterable[Row]) -> float:
    """Of all windows, each once."""
    windows = {row["window_start"]: row["window_end"] for row in clusters}
    return float(sum((end - start).total_seconds() for start, end in windows.items()))


def _deliveries(row: Row) -> int:
    return int(row["deliveries"])


def _mean(rows: Iterable[Row], name: str, weight: Callable[[Row], int], unit: float = 1.0) -> float | None:
    known = [row for row in rows if row[name] is not None]
    return _ratio(sum(row[name] * weight(row) for row in known) * unit, sum(map(weight, known)))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
