"""How it looks on a terminal: a display that is renewed. Into a pipe: a plain line now and then."""

from contextlib import AbstractContextManager, nullcontext, suppress

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mercast.cli.demo.figures import Figures
from mercast.cli.demo.page import Page
from mercast.cli.demo.story import Story
from mercast.dashboard.figures import Row

REFRESH = 0.5
_LINE = 5.0
"""Seconds between lines."""
_MS = 1_000
_ABSENT = "–"
_HEADINGS = (
    "brokers", "published/s", "delivered/s", "p50 ms", "p95 ms", "p99 ms", "accuracy", "doubled",
)  # fmt: skip


class Show:
    """`tell` at any time; from `open` to `close`, `look` again and again."""

    def __init__(self, console: Console, story: Story) -> None:
        self._console, self._story = console, story
        self._live: Live | None = None
        self._next_line = 0.0

    def __enter__(self) -> "Show":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell(self, news: str) -> None:
        """A line that stays."""
        self._story.news.append((self._story.now, news))
        self._print(f"{self._story.now:5.1f} s  {news}")

    def open(self, heading: str, page: Page, figures: Figures, clusters: dict[str, list[int]]) -> None:
        self._heading, self._page, self._figures, self._clusters = heading, page, figures, clusters
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # the terminal may have been closed
                live.stop()

    def busy(self, doing: str) -> AbstractContextManager[object]:
        """That something takes a while."""
        return self._console.status(doing) if self._console.is_terminal else nullcontext()

    def look(self, doing: str) -> None:
        if self._live is not None:
            self._live.update(self._screen(doing), refresh=True)
        elif self._story.now >= self._next_line and not self._console.is_terminal:
            self._next_line = self._story.now + _LINE
            self._print(self._line(doing))

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    # -- what is shown -------------------------------------------------------------------------------------------------

    def _line(self, doing: str) -> str:
        page = self._page
        rates = (
            f"published {page.rate('published', page.up):,.0f}/s, delivered {page.rate('delivered', page.up):,.0f}/s"
        )
        figures = self._figures.newest()
        shown = f", latency p50, p95, p99 {', '.join(_latencies(figures))} ms" if figures else ""
        every = sum(map(len, self._clusters.values()))
        return (
            f"{self._story.now:5.1f} s  {doing}: {rates}{shown}; {len(page.up)} of {every} brokers up; {self._memory()}"
        )

    def _screen(self, doing: str) -> RenderableType:
        heading = Text(f"{self._heading}\n", style="bold")
        address = Text.assemble(("the page: ", "dim"), (self._page.url, "bold cyan"))
        foot = Text(
            f"{self._story.now:.0f} s  {doing}; {self._memory()}; Ctrl-C ends the load, audit and report follow"
        )
        return Group("", heading, address, "", self._table(), "", foot)

    def _table(self) -> Table:
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("")
        for heading in _HEADINGS:
            table.add_column(heading, justify="right")
        for name, brokers in self._clusters.items():
            up, dead = self._page.up & {*brokers}, self._page.dead & {*brokers}
            state = f"{len(up)} of {len(brokers)}" + (f", {' '.join(map(str, sorted(dead)))} dead" if dead else "")
            table.add_row(
                name, state, *self._rates(up), *_cells(self._figures.newest(name)), style="red" if dead else ""
            )
        every = sum(map(len, self._clusters.values()))
        up = self._page.up
        table.add_row("all", f"{len(up)} of {every}", *self._rates(up), *_cells(self._figures.newest()), style="bold")
        return table

    def _rates(self, brokers: set[int]) -> list[str]:
        return [f"{self._page.rate(name, brokers):,.0f}" for name in ("published", "delivered")]

    def _memory(self) -> str:
        return f"memory at most {sum(self._story.memory.values()) / 1e9:.1f} GB"


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return [_ABSENT] * len(_HEADINGS[3:])
    return [*_latencies(row), _number(row["accuracy"], 3), f"{row['doubled_deliveries'] + row['doubled_receipts']:,}"]


def _latencies(row: Row) -> list[str]:
    found = (row[f"latency_{name}_us"] for name in ("p50", "p95", "p99"))
    return [_number(None if one is None else one / _MS, 1) for one in found]


def _number(value: float | None, digits: int) -> str:
    return _ABSENT if value is None else f"{value:.{digits}f}"
