"""The live metrics on a terminal: the newest closed window of each cluster and of its brokers."""

from collections.abc import Iterable

from rich.table import Table

from mercast_streaming.figures import Figures

_MS = 1_000
_MOST = 40
"""Brokers that are shown of each cluster; the busiest."""


class Newest:
    """What is on the screen. A cluster or broker of which nothing more comes leaves it after some windows."""

    def __init__(self, windows: int = 12) -> None:
        self._kept = windows
        self._rows: dict[tuple[str, str, int | None], Figures] = {}
        self.problems = 0

    def see(self, rows: Iterable[Figures]) -> None:
        for row in sorted(rows, key=lambda row: row["window_start"]):
            if row["cluster"] is None:
                self.problems += row["malformed"] + row["newer"]
            else:
                self._rows[row["strategy"], row["cluster"], row["broker"]] = row
        if not self._rows:
            return
        newest = max(row["window_start"] for row in self._rows.values())
        for key, row in list(self._rows.items()):
            if newest - row["window_start"] > self._kept * (row["window_end"] - row["window_start"]):
                del self._rows[key]

    def table(self, brokers: bool = True) -> Table:
        table = Table(title=self._title(), title_justify="left", caption=self._caption(), caption_justify="left")
        for heading in ("", "events/s", "deliveries/s", "p50 ms", "p95", "p99", "twice", "accuracy", "complete"):
            table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
        for heading in ("hops", "list", "matches", "bytes", "drops", "CPU"):
            table.add_column(heading, justify="right", no_wrap=True)
        for strategy, cluster in sorted({(strategy, cluster) for strategy, cluster, _ in self._rows}):
            whole = self._rows.get((strategy, cluster, None))
            if whole is not None:
                table.add_row(f"[bold]{cluster}[/] {strategy}", *_cells(whole))
            mine = [row for key, row in self._rows.items() if key[:2] == (strategy, cluster) and key[2] is not None]
            busiest = sorted(mine, key=lambda row: -row["all_delivered"])[:_MOST]
            for row in sorted(busiest, key=lambda row: row["broker"]) if brokers else ():
                table.add_row(f"  broker {row['broker']}", *_cells(row))
            table.add_section()
        return table

    def _title(self) -> str:
        if not self._rows:
            return "no window has closed yet"
        row = max(self._rows.values(), key=lambda row: row["window_start"])
        return f"{row['window_start']:%Y-%m-%d %H:%M:%S} to {row['window_end']:%H:%M:%S} UTC"

    def _caption(self) -> str:
        wholes = [row for (_, _, broker), row in self._rows.items() if broker is None]
        names = ("late", "ahead", "tap_lost", "negative_latencies")
        counts = {name.replace("_", " "): sum(row[name] or 0 for row in wholes) for name in names}
        counts["unreadable messages"] = self.problems
        clocks = [row["clock_offset_us"] for row in wholes if row["clock_offset_us"] is not None]
        bound = [f"clocks differ by at most {max(clocks) / _MS:.1f} ms"] if clocks else []
        return "   ".join([f"{name} {count:,}" for name, count in counts.items() if count] + bound)


def _cells(row: Figures) -> list[str]:
    seconds = (row["window_end"] - row["window_start"]).total_seconds()
    latencies = (row[f"latency_{name}_us"] for name in ("p50", "p95", "p99"))
    return [
        f"{row['all_published'] / seconds:,.0f}",
        f"{row['all_delivered'] / seconds:,.0f}",
        *(_number(None if latency is None else latency / _MS, 2) for latency in latencies),
        f"{row['doubled_receipts'] + row['doubled_deliveries']:,}",
        _number(row["accuracy"], 3),
        _number(row["completeness"], 3),
        _number(row["hops"], 2),
        _number(row["list_length"], 1),
        _number(row["matches_per_event"], 2),
        _number(row["bytes_per_delivery"], 0),
        f"{sum(row['all_drops'].values()):,}",
        f"{row['cpu_us'] / seconds / 10_000:.0f}%",
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
