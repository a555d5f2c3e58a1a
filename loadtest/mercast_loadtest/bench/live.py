"""Results of the live benches, for people."""

from typing import TYPE_CHECKING

from rich.table import Table

from mercast_loadtest.bench import chain, crowd, forward, hop, idle, line, taps
from mercast_loadtest.bench.report import console

if TYPE_CHECKING:  # it needs Spark, the others do not
    from mercast_loadtest.bench import metrics

_MIB = 1024 * 1024


def print_chain(result: chain.Result) -> None:
    table = _table(f"chain: 3 brokers, {result.subscriptions:,} subscriptions, {result.content_bytes} bytes")
    table.add_row("events/s delivered", f"{result.events_per_second:,.0f}")
    table.add_row("bare chain", f"{result.bare_events_per_second:,.0f}")
    table.add_row("[bold]ratio to it", f"[bold]{result.ratio:.3f}{_range(result.ratios)}")
    table.add_row("published, delivered", f"{result.published:,}, {result.delivered:,}")
    table.add_row(
        f"latency at {result.rate:,.0f}/s",
        f"p50 {result.p50_ms:.2f} ms   p95 {result.p95_ms:.2f}   p99 {result.p99_ms:.2f}",
    )
    table.add_row("bare chain", f"p50 {result.bare_p50_ms:.2f} ms")
    table.add_row("µs of CPU per event", _by_name(result.cpu_us_per_event))
    table.add_row("bare chain", _by_name(result.bare_cpu_us_per_event))
    console.print(table)


def print_taps(result: taps.Result) -> None:
    table = _table(
        f"taps to Kafka: 3 brokers, {result.subscriptions:,} subscriptions, compression {result.compression}"
    )
    table.add_row("events/s without taps", f"{result.events_per_second:,.0f}")
    table.add_row("µs of CPU per event", _by_name(result.cpu_us_per_event))
    for name, side in result.sides.items():
        table.add_row(f"{name}, events/s", f"{side.events_per_second:,.0f}")
        table.add_row(f"[bold]{name}, ratio", f"[bold]{side.ratio:.3f}{_range(side.ratios)}")
        table.add_row("of the brokers' CPU", f"{side.brokers_ratio:.3f}{_range(side.brokers_ratios)}")
        table.add_row("µs of CPU per event", _by_name(side.cpu_us_per_event))
        if side.rows_shipped or side.rows_lost:
            table.add_row("rows shipped, lost", f"{side.rows_shipped:,}, {side.rows_lost:,}")
        if side.events_lost:
            table.add_row("[bold]events lost", f"{side.events_lost:,}")
    console.print(table)


def print_forward(result: forward.Result) -> None:
    table = Table(
        title=f"forward: µs of CPU per event at a broker on the way, {result.rate:,.0f} events/s", title_justify="left"
    )
    for heading in ("destination lists", "broker", "bare forwarder", "[bold]ratio", "p50 ms", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, case in (("all the same", result.same), ("varied", result.varied)):
        figures = f"{case.cpu_us_per_event:.2f}", f"{case.bare_cpu_us_per_event:.2f}", f"[bold]{case.ratio:.2f}"
        table.add_row(name, *figures, f"{case.p50_ms:.2f}", f"{case.lost:,} of {case.expected:,}")
    console.print(table)


def print_hop(result: hop.Result) -> None:
    table = _table(f"hop: publish, match against {result.subscriptions:,} subscriptions, deliver")
    table.add_row("events/s", f"{result.events_per_second:,.0f}")
    table.add_row("µs of CPU per event", f"{result.cpu_us_per_event:.2f}")
    if result.nats_events_per_second is None:
        table.add_row("nats-server", result.note)
    else:
        table.add_row("nats-server, events/s", f"{result.nats_events_per_second:,.0f}")
        table.add_row("nats-server, µs per event", f"{result.nats_cpu_us_per_event:.2f}")
        table.add_row("[bold]ratio of events/s", f"[bold]{result.ratio:.3f}")
        table.add_row("[bold]ratio of CPU", f"[bold]{result.cpu_ratio:.1f}")
    table.add_row("published, delivered", f"{result.published:,}, {result.delivered:,}")
    for name, each in result.parts_us.items():
        table.add_row(f"µs: {name}", f"{each:.2f}")
    table.add_row("µs: sockets, loop and the rest", f"{result.cpu_us_per_event - result.parts_in_all:.2f}")
    console.print(table)


def print_line(result: line.Result) -> None:
    for matcher, compared in (("scan", result.scan), ("index", result.index)):
        at = f"latency at {compared.fbr.at_rate:,.0f}/s"
        table = Table(
            title=f"line: {result.brokers} brokers, {result.subscriptions:,} subscriptions, {matcher}; {at}",
            title_justify="left",
        )
        for heading in ("", "events/s", "p50 ms", "µs of CPU", "matches", "at work", "lost"):
            table.add_column(heading, justify="right", no_wrap=True)
        sides = {"FBR": compared.fbr, "D-DBR": compared.ddbr, "MERC": compared.merc}
        for name, side in sides.items():
            figures = (f"{figure:,.1f}" for figure in _figures(side))
            table.add_row(name, *figures, f"{sum(side.matches_per_event):.2f}", _listed(side.busy), f"{side.lost:,}")
        for one, other in (("D-DBR", "FBR"), ("MERC", "D-DBR")):
            pairs = zip(_figures(sides[one]), _figures(sides[other]), strict=True)
            table.add_row(f"[bold]{one} / {other}", *(f"[bold]{a / b:.2f}" for a, b in pairs))
        console.print(table)


def _figures(side: line.Side) -> tuple[float, float, float]:
    return side.events_per_second, side.p50_ms, side.cpu_us_in_all


def print_idle(result: idle.Result) -> None:
    table = _table(f"idle: {result.connections:,} connections")
    table.add_row("[bold]memory per connection", f"[bold]{result.bytes_per_connection / 1024:.1f} KiB")
    table.add_row("[bold]by TLS", f"[bold]{result.tls_bytes_per_connection / 1024:.1f} KiB")
    table.add_row("broker before, after", f"{result.before_bytes / _MIB:.0f} MiB, {result.after_bytes / _MIB:.0f} MiB")
    table.add_row("connects per second", f"{result.connects_per_second:,.0f}")
    table.add_row("CPU while all are idle", f"{result.idle_cpu_percent:.1f} %")
    if result.note:
        table.add_row(f"fewer than {result.wanted:,}", result.note)
    console.print(table)


def print_crowd(result: crowd.Result) -> None:
    table = _table(f"crowd: {result.clients:,} clients, {result.publishers:,} of them publish")
    table.add_row("connecting", f"{result.connect_seconds:.1f} s, {result.connects_per_second:,.0f} a second")
    each = f"{result.bytes_per_connection / 1024:.1f} KiB, {result.bytes_per_subscriber / 1024:.1f} KiB"
    table.add_row("[bold]memory of each, subscribed", f"[bold]{each}")
    table.add_row("broker in the end", f"{result.broker_bytes / _MIB:.0f} MiB")
    table.add_row("events/s delivered", f"{result.events_per_second:,.0f}")
    table.add_row("from one connection to one", f"{result.alone_events_per_second:,.0f}")
    table.add_row("[bold]ratio to it", f"[bold]{result.ratio:.3f}")
    table.add_row("published, delivered", f"{result.published:,}, {result.delivered:,}")
    late = f"p50 {result.p50_ms:.2f} ms   p95 {result.p95_ms:.2f}   p99 {result.p99_ms:.2f}"
    table.add_row(f"latency at {result.rate:,.0f}/s", late)
    table.add_row("from one connection to one", f"p50 {result.alone_p50_ms:.2f} ms   p99 {result.alone_p99_ms:.2f}")
    cpu = f"{result.cpu_us_per_event:.2f}, from one to one {result.alone_cpu_us_per_event:.2f}"
    table.add_row("µs of the broker's CPU per event", cpu)
    console.print(table)


def print_metrics(result: "metrics.Result") -> None:
    rows = f"{result.rows:,} tap rows in {result.messages:,} messages"
    table = _table(f"metrics: {rows}, {result.master}, {result.store}")
    table.add_row("rows/s", f"{result.rows_per_second:,.0f}")
    table.add_row("bare count by window", f"{result.bare_rows_per_second:,.0f}")
    table.add_row("[bold]ratio to it", f"[bold]{result.ratio:.3f}{_range(result.ratios)}")
    cpu = f"{result.cpu_s_per_million:.2f}, bare count {result.bare_cpu_s_per_million:.2f}"
    table.add_row("s of CPU per million rows", cpu)
    table.add_row("ratio of CPU", f"{result.cpu_ratio:.3f}{_range(result.cpu_ratios)}")
    table.add_row("rows that the figures count", f"{result.counted:,}")
    delays = f"p50 {result.delay_p50_s:.2f} s   longest {result.delay_max_s:.2f} s"
    table.add_row(f"figures after the watermark, at {result.live_rows_per_second:,.0f}/s", delays)
    table.add_row("windows", f"{result.windows}")
    console.print(table)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", show_header=False)


def _by_name(figures: dict[str, float]) -> str:
    return "   ".join(f"{name} {value:.2f}" for name, value in figures.items())


def _range(figures: list[float]) -> str:
    return f" ({min(figures):.3f} to {max(figures):.3f})" if len(figures) > 1 else ""


def _listed(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))
