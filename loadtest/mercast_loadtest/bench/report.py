"""Results for people (tables) and for programs (JSON)."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from mercast_loadtest.bench.matching import Result
from mercast_loadtest.bench.simulator import Result as Simulated

if TYPE_CHECKING:
    from mercast_loadtest.bench.audit import Result as Audited  # which needs Spark

console = Console()


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n")


def print_result(name: str, result: Result) -> None:
    table = Table(title=f"matching: {name}", title_justify="left", show_header=False)
    for label, spread in (
        ("µs per event, in batches", result.us_per_event),
        ("µs per event, one at a time", result.one_at_a_time),
        ("plain numpy bitmap AND", result.yardstick.us_per_event),
    ):
        table.add_row(label, f"mean {spread.mean:.1f}   p50 {spread.p50:.1f}   p99 {spread.p99:.1f}")
    table.add_row("[bold]ratio to it", f"[bold]{result.yardstick.ratio:.2f}")
    table.add_row("matches per event", f"{result.matches_per_event:.2f}")
    table.add_row("its candidates per event", f"{result.yardstick.candidates_per_event:.2f}")
    table.add_row("build", f"{result.build_seconds:.2f} s")
    table.add_row("add, remove", f"{result.add_us:.0f} µs, {result.remove_us:.1f} µs")
    table.add_row("longest change", f"{result.longest_change_ms:.1f} ms")
    table.add_row("memory", f"{result.memory_bytes / 1e6:.0f} MB")
    console.print(table)


def print_simulator(result: Simulated) -> None:
    table = Table(title=f"simulator: {result.events:,} events to {result.brokers:,} brokers", title_justify="left")
    table.show_header = False
    table.add_row("hops", f"{result.hops:,}")
    table.add_row("deliveries", f"{result.deliveries:,}")
    table.add_row("set-up", f"{result.setup_seconds:.1f} s")
    table.add_row("simulating", f"{result.seconds:.1f} s")
    table.add_row("µs per hop", f"{result.us_per_hop:.1f}")
    table.add_row("splitting lists alone", f"{result.yardstick_us_per_hop:.1f}")
    table.add_row("[bold]ratio to it", f"[bold]{result.ratio:.1f}")
    console.print(table)


def print_audit(result: "Audited") -> None:
    title = f"audit: {result.subscriptions:,} subscriptions, {result.events:,} events"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_row("pairs that match", f"{result.pairs:,}")
    table.add_row("taps", f"{result.tap_megabytes:,.0f} MB")
    table.add_row("[bold]audit", f"[bold]{result.seconds:.0f} s")
    table.add_row("evaluations a second", f"{result.evaluations_per_second / 1e6:.1f} million")
    table.add_row("memory of Spark", f"{result.memory_megabytes:,.0f} MB")
    table.add_row("found what was wrong, and no more", "yes" if result.exact else "[red]no")
    console.print(table)


def print_table(results: list[dict[str, Any]]) -> None:
    """Two tables, each narrow enough for a log of 80 columns."""
    speed = _table(
        "matching: µs per event, beside a plain numpy bitmap AND", "mean", "p99", "alone", "yardstick", "ratio"
    )
    costs = _table("matching: what it costs", "matches", "build s", "add µs", "remove", "longest ms", "MB")
    for result in results:
        ours, yardstick = result["us_per_event"], result["yardstick"]
        speed.add_row(
            result["name"].removesuffix(" filters"),
            f"{ours['mean']:.1f}",
            f"{ours['p99']:.1f}",
            f"{result['one_at_a_time']['mean']:.1f}",
            f"{yardstick['us_per_event']['mean']:.1f}",
            f"{yardstick['ratio']:.2f}",
        )
        costs.add_row(
            result["name"].removesuffix(" filters"),
            f"{result['matches_per_event']:.1f}",
            f"{result['build_seconds']:.1f}",
            f"{result['add_us']:.0f}",
            f"{result['remove_us']:.1f}",
            f"{result['longest_change_ms']:.0f}",
            f"{result['memory_bytes'] / 1e6:.0f}",
        )
    console.print(speed)
    console.print(costs)


def _table(title: str, *figures: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("workload", no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
