"""`mercast demo`: many filters against a stream of stock quotes, with the rate as it goes."""

import random
import sys
from collections import Counter, deque
from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.progress import track
from rich.table import Table
from rich.text import Text

from mercast.content import Filter, Value

_BATCH = 64
_LEAST_SECONDS = 0.1
_QUOTES = 20_000


def demo(*, filters: int = 10_000, seconds: float = 10.0, seed: int = 1) -> None:
    """Match a stream of synthetic stock quotes against many filters, and show rate and matches live.

    Parameters
    ----------
    filters
        Subscriptions to match against.
    seconds
        How long to go on.
    seed
        Seed of subscriptions and quotes.
    """
    from mercast.matching import Index
    from mercast.workloads import Stock

    if filters < 1 or not _LEAST_SECONDS <= seconds < float("inf"):
        sys.exit(f"mercast demo: filters must be at least 1, and seconds at least {_LEAST_SECONDS}")
    console = Console()
    stock, rng = Stock(), random.Random(seed)
    subscriptions = [stock.filter(rng) for _ in range(filters)]
    index = Index()
    adding = track(subscriptions, f"adding {filters:,} filters", console=console, transient=True)
    for number, filter in enumerate(adding):
        index.add(number, filter)
    quotes = [stock.event(rng) for _ in range(_QUOTES)]
    index.match(quotes[0])

    show = Show(subscriptions)
    with Live(show, console=console, refresh_per_second=8) as live:
        while show.elapsed < seconds:
            batch = [quotes[rng.randrange(_QUOTES)] for _ in range(_BATCH)]
            show.count(batch, index.match_many(batch))
            if not console.is_terminal and show.elapsed >= show.lines + 1:
                live.console.print(show.line(), highlight=False, soft_wrap=True)
    console.print(show.line() if console.is_terminal else f"\n{show.line()}", highlight=False, soft_wrap=True)


class Show:
    """What was matched so far, and how it looks."""

    def __init__(self, subscriptions: list[Filter]) -> None:
        self._subscriptions = subscriptions
        self._started = monotonic()
        self._quotes = self._matches = self.lines = 0
        self._hits: Counter[int] = Counter()
        self._last: tuple[dict[str, Value], int] = ({}, 0)
        self._recent: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)], maxlen=200)

    @property
    def elapsed(self) -> float:
        return monotonic() - self._started

    def count(self, batch: list[dict[str, Value]], matched: list[list[int]]) -> None:
        self._quotes += len(batch)
        for ids in matched:
            self._matches += len(ids)
            self._hits.update(ids)
        self._last = batch[-1], len(matched[-1])
        self._recent.append((self.elapsed, self._quotes, self._matches))

    def rates(self) -> tuple[float, float]:
        """Quotes and matches a second, over the last batches."""
        (then, quotes, matches), (now, *_) = self._recent[0], self._recent[-1]
        span = max(now - then, 1e-9)
        return (self._quotes - quotes) / span, (self._matches - matches) / span

    def line(self) -> str:
        self.lines += 1
        quotes, matches = self._quotes / self.elapsed, self._matches / self.elapsed
        return (
            f"{self.elapsed:5.1f} s  {self._quotes:,} quotes against {len(self._subscriptions):,} filters: "
            f"{quotes:,.0f} quotes/s, {matches:,.0f} matches/s, {1e6 / quotes:.0f} µs per quote"
        )

    def __rich__(self) -> Group:
        quotes, matches = self.rates()
        figures = Table.grid(padding=(0, 3))
        figures.add_row("elapsed", "quotes/s", "matches/s", "matches per quote", style="dim")
        each = f"{self._matches / max(1, self._quotes):.1f}"
        figures.add_row(f"{self.elapsed:.1f} s", f"[bold green]{quotes:,.0f}", f"[bold]{matches:,.0f}", each)
        busiest = Table(title="busiest filters", title_justify="left", expand=True)
        busiest.add_column("matches", justify="right", width=10)
        busiest.add_column("filter", no_wrap=True)
        by_text: Counter[str] = Counter()
        for number, hits in self._hits.most_common(200):
            by_text[str(self._subscriptions[number])] += hits
        for text, hits in by_text.most_common(6):
            busiest.add_row(f"{hits:,}", Text(text))
        quote, found = self._last
        last = Text(f"last quote: {quote.get('symbol')} at {quote.get('price')}, {found} filters match")
        heading = Text(f"{len(self._subscriptions):,} filters against a stream of stock quotes", style="bold")
        return Group(heading, "", figures, "", last, "", busiest)
