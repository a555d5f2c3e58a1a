"""The live metrics on a terminal: the newest closed window of each cluster and of its brokers."""

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

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

    def table(self, brokers: bool = True, width: int = 200) -> Table:
        """As many columns as there is room for. Rows of windows before the newest are dim."""
        newest = max((row["window_start"] for row in self._rows.values()), default=None)
        found = [(_name(row), _cells(row), row["window_start"] != newest) for row in self._chosen(brokers)]
        table = Table(
            title=self._title(), title_justify="left", caption=self._caption(), caption_justify="left",
            box=SIMPLE_HEAD, padding=(0, 0, 0, 1),
        )  # fmt: skip
        columns = ["", *HEADINGS][: _fitting([name for name, _, _ in found], [cells for _, cells, _ in found], width)]
        for heading in columns:
            table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
        for name, cells, dim in found:
            table.add_row(*[name, *cells][: len(columns)], style="dim" if dim else "")
        return table

    def _chosen(self, brokers: bool) -> Iterator[Figures]:
        """Cluster by cluster: the whole, and its busiest brokers."""
        for cluster, strategy in sorted({(cluster, strategy) for strategy, cluster, _ in self._rows}):
            whole = self._rows.get((strategy, cluster, None))
            if whole is not None:
                yield whole
            mine = [row for key, row in self._rows.items() if key[:2] == (strategy, cluster) and key[2] is not None]
            busiest = sorted(mine, key=lambda row: -row["all_delivered"])[:_MOST]
            yield from sorted(busiest, key=lambda row: row["broker"]) if brokers else ()

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


def _name(row: Figures) -> str:
    cluster, broker = row["cluster"], row["broker"]
    return f"[bold]{escape(cluster)}[/] {escape(row['strategy'])}" if broker is None else f"  broker {broker}"


HEADINGS = (
    "events\n/s", "deliveries\n/s", "latency\np50 ms", "\np95", "\np99", "twice\n", "routing\naccuracy",
    "complete-\nness", "drops\n", "CPU\n", "hops\n", "list\nlength", "matches\n/event", "bytes\n/delivery",
)  # fmt: skip
"""The first ones are of most use: where there is no room for all, the last are left out."""


_EDGES, _BETWEEN = 3, 2
"""Characters."""


def _fitting(names: list[str], cells: list[list[str]], width: int) -> int:
    """How many columns."""
    taken = _EDGES + max((len(Text.from_markup(name)) for name in names), default=0)
    for number, heading in enumerate(HEADINGS):
        texts = (*heading.split("\n"), *(row[number] for row in cells))
        taken += _BETWEEN + max(map(len, texts))
        if taken > width:
            return number + 1
    return len(HEADINGS) + 1


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
        f"{sum(row['all_drops'].values()):,}",
        f"{row['cpu_us'] / seconds / 10_000:.0f}%",
        _number(row["hops"], 2),
        _number(row["list_length"], 1),
        _number(row["matches_per_event"], 2),
        _number(row["bytes_per_delivery"], 0),
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
