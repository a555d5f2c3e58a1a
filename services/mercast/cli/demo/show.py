"""How it looks: a display that is renewed on a terminal, now and then a line elsewhere; a summary at the end."""

import os
from collections import Counter, deque
from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mercast.broker.local import Broker, Local
from mercast.cli.demo.fault import Fault
from mercast.cli.demo.ledger import PERCENTILES, Ledger, Report
from mercast.cli.demo.load import Load
from mercast.cli.demo.watch import Usage, Watch

REFRESH = 0.5
"""Seconds. Drawing takes some milliseconds, which the events of that moment have to wait."""

_LINE = 2.0
"""Seconds between lines."""

_WINDOW = 4
"""Looks that rates and latency are taken over."""

_NEWS = 4
_MIB = 1024 * 1024
_ABSENT = "–"
_UP = "up"
_NAMES = "latency " + ", ".join(f"p{one}" for one in PERCENTILES)


class Show:
    """`with Show(…) as show`, then `look` again and again."""

    def __init__(self, console: Console, heading: str, mesh: Local, load: Load, watch: Watch) -> None:
        self._console, self._heading = console, heading
        self._mesh, self._load, self._watch = mesh, load, watch
        self.fault: Fault | None = None
        self.began = monotonic()
        self._looks: deque[tuple[float, int, int]] = deque([(self.began, 0, 0)], maxlen=_WINDOW)
        self._figures = (0.0, 0.0, _ABSENT)
        self._news: deque[str] = deque(maxlen=_NEWS)
        self._next_line = _LINE
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> "Show":
        if self._live is None:
            self._print(self._heading)
        else:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def elapsed(self) -> float:
        return monotonic() - self.began

    def tell(self, news: str) -> None:
        line = f"{self.elapsed:5.1f} s  {news}"
        self._news.append(line)
        if self._live is None:
            self._print(line)
        else:
            self._live.update(self._screen(), refresh=True)

    def look(self) -> None:
        """Show how things are now."""
        ledger, now = self._load.ledger, monotonic()
        then, published, delivered = self._looks[0]
        span = now - then
        self._figures = (
            (ledger.published - published) / span,
            (ledger.delivered - delivered) / span,
            latency(ledger, delivered),
        )
        self._looks.append((now, ledger.published, ledger.delivered))
        if self._live is not None:
            self._live.update(self._screen(), refresh=True)
        elif self.elapsed >= self._next_line:
            self._next_line += _LINE
            self._print(self._line())

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _line(self) -> str:
        published, delivered, late = self._figures
        up = sum(self._state(broker) == _UP for broker in self._mesh.brokers)
        return (
            f"{self.elapsed:5.1f} s  published {published:,.0f}/s, delivered {delivered:,.0f}/s, {_NAMES} {late}; "
            f"{up} of {len(self._mesh.brokers)} brokers up"
        )

    def _screen(self) -> Group:
        published, delivered, late = self._figures
        figures = Table.grid(padding=(0, 3))
        figures.add_row("elapsed", "published/s", "delivered/s", _NAMES, style="dim")
        figures.add_row(f"{self.elapsed:.1f} s", f"[bold green]{published:,.0f}", f"[bold green]{delivered:,.0f}", late)
        heading = Text(self._heading, style="bold")
        return Group(
            heading, "", figures, "", self._brokers(), "", *(Text(news, style="yellow") for news in self._news)
        )

    def _brokers(self) -> Table:
        table = Table(box=None, header_style="dim")
        for column in ("broker", "state", "CPU", "memory"):
            table.add_column(column, justify="right" if column in ("CPU", "memory") else "left", min_width=8)
        for column in ("publishers", "subscribers", "linked to"):
            table.add_column(column)
        publishers = Counter(client.broker for client in self._load.publishers)
        subscribers = Counter(client.broker for client in self._load.subscribers)
        for id, broker in self._mesh.brokers.items():
            state = self._state(id)
            links = " ".join(map(str, sorted(self._watch.links.get(id, ())))) or _ABSENT
            crowd = str(publishers[id]), str(subscribers[id])
            style = None if state == _UP else "red"
            table.add_row(str(id), state, *_usage(self._of(broker)), *crowd, links, style=style)
        away = str(publishers[None]), str(subscribers[None])
        table.add_row("this load", "", *_usage(self._watch.usage.get(os.getpid())), *away, "", style="dim")
        return table

    def _state(self, broker: int) -> str:
        return self.fault.state if self.fault is not None and self.fault.victim == broker else _UP

    def _of(self, broker: Broker) -> Usage | None:
        return None if broker.process is None else self._watch.usage.get(broker.process.pid)


def _usage(usage: Usage | None) -> tuple[str, str]:
    if usage is None:
        return _ABSENT, _ABSENT
    return f"{usage.cpu_percent:.0f} %", f"{usage.memory_bytes / _MIB:,.0f} MiB"


def latency(ledger: Ledger, since: int = 0) -> str:
    found = ledger.latency(since)
    return f"{', '.join(f'{one:.1f}' for one in found)} ms" if found else _ABSENT


def summary(
    console: Console, ledger: Ledger, report: Report, fault: Fault | None, began: float, seconds: float
) -> None:
    """`began` is a time of the monotonic clock."""

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    say(
        f"\npublished: {ledger.published:,} events in {seconds:.1f} s ({ledger.published / seconds:,.0f}/s), "
        f"{report.not_accepted:,} not accepted"
    )
    quiet = report.quiet
    say(f"due:       {quiet.due:,} deliveries of {quiet.published:,} events, by every filter tried on every event")
    say(f"delivered: {quiet.delivered:,}")
    for name, count in (("missing", quiet.missing), ("doubled", report.doubled), ("undue", report.undue)):
        say(f"{name + ':':10} [{'bold red' if count else 'green'}]{count:,}[/]")
    if report.missing_times:
        first, last = (report.missing_times[at] / 1e9 - began for at in (0, -1))
        say(f"           missing are deliveries of events that were published from {first:.2f} to {last:.2f} s")
    if fault is not None and fault.window is not None:
        part, lasted = report.fault, (fault.window.end - fault.window.start) / 1e9
        say(
            f"around the fault ({lasted:.1f} s, not counted above but for doubled and undue): "
            f"{part.due:,} due of {part.published:,} events, {part.delivered:,} delivered, {part.missing:,} missing"
        )
    say(f"{_NAMES}: {latency(ledger)}, from the call of publish to the subscriber")
    say("[bold green]as promised" if report.as_promised else "[bold red]not as promised")
