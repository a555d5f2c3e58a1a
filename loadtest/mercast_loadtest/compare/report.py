"""What came of a comparison: one entry per strategy, as a table for the terminal, as JSON, and as a page with plots."""

from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from typing import Any, NamedTuple

from mercast.lab.experiment import Figure, Series
from mercast.lab.page import page, place_of, table
from mercast_loadtest.compare.figures import Part, Row, between, counted, measured, within
from mercast_loadtest.compare.rounds import Turn

NOTHING = "—"


class Line(NamedTuple):
    """Of the table."""

    label: str
    place: tuple[str, ...]
    """Where in an entry it is."""
    write: Callable[[Any], str]
    better: int = 0
    """1 if more is better, -1 if less is."""


def _number(digits: int, unit: str = "") -> Callable[[Any], str]:
    return lambda value: f"{value:,.{digits}f}{unit}"


LINES = (
    Line("knee: events/s held", ("knee", "events_per_second"), _number(0), 1),
    Line("knee: deliveries/s", ("knee", "deliveries_per_second"), _number(0), 1),
    Line("latency p50", ("steady", "latency_p50_ms"), _number(1, " ms"), -1),
    Line("latency p95", ("steady", "latency_p95_ms"), _number(1, " ms"), -1),
    Line("latency p99", ("steady", "latency_p99_ms"), _number(1, " ms"), -1),
    Line("events that a broker got twice", ("counted", "doubled_receipts"), _number(0), -1),
    Line("events that a client got twice", ("counted", "doubled_deliveries"), _number(0), -1),
    Line("routing accuracy", ("steady", "accuracy"), lambda value: f"{value:.1%}", 1),
    Line("destination list", ("steady", "list_length"), _number(2)),
    Line("messages per delivery", ("steady", "messages_per_delivery"), _number(2), -1),
    Line("bytes per delivery", ("steady", "bytes_per_delivery"), _number(0), -1),
    Line("processor per broker", ("steady", "cpu_per_broker"), lambda value: f"{value:.1%}", -1),
    Line("missing, by the load", ("load", "missing"), _number(0), -1),
    Line("doubled or undue, by the load", ("load", "wrong"), _number(0), -1),
)


def entry(turn: Turn, rows: Sequence[Row]) -> dict[str, Any]:
    """Of one strategy; `rows` are all of its windows."""
    steady, ramp = Part.of(turn.steady), Part.of(turn.ramp)
    steps = [_step(step, rows) for step in turn.ramp["knee"]["steps"]]
    held = [step for step in steps if step["held"]]
    best = max(held, key=lambda step: step["rate"], default=None)
    loads = (turn.steady, turn.ramp)
    return {
        "brokers": turn.brokers,
        "clusters": turn.clusters,
        "steady": measured(within(rows, steady)),
        "knee": {
            "rate": turn.ramp["knee"]["rate"],
            "reached": turn.ramp["knee"]["reached"],
            "why": turn.ramp["knee"]["why"],
            "events_per_second": best and best["events_per_second"],
            "deliveries_per_second": best and best["deliveries_per_second"],
        },
        "steps": steps,
        "counted": counted(rows),
        "counted_steady": counted(between(rows, steady, _floor(ramp.began, rows))),
        "load": {
            "published": sum(one["published"] for one in loads),
            "copies": sum(one["copies"] for one in loads),
            "missing": sum(one["missing"] for one in loads),
            "wrong": sum(one["doubled"] + one["undue"] for one in loads),
            "steady": turn.steady,
            "ramp": turn.ramp,
        },
    }


def _step(step: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    return {"rate": step["rate"], "held": step["held"], "why": step["why"]} | measured(within(rows, Part.of(step)))


def _floor(moment: datetime, rows: Sequence[Row]) -> datetime:
    """The start of the window that it lies in."""
    return max((row["window_start"] for row in rows if row["window_start"] <= moment), default=moment)


def knee(found: dict[str, Any]) -> str:
    """Of a load's result, in words."""
    if not found["rate"]:
        return f"the ramp's first rate was not held: {found['why']}"
    if not found["reached"]:
        return f"{found['rate']:,.0f} events/s were held, and no knee was reached"
    return f"{found['rate']:,.0f} events/s were held; beyond, {found['why']}"


def kept(entries: dict[str, dict[str, Any]]) -> bool:
    return not any(one["load"]["missing"] or one["load"]["wrong"] for one in entries.values())


# -- the table ---------------------------------------------------------------------------------------------------------


def cells(entries: dict[str, dict[str, Any]]) -> list[tuple[str, list[tuple[str, bool]]]]:
    """A line each: its label, and for each strategy the figure and whether it is the best."""
    lines = []
    for line in LINES:
        values = [_at(one, line.place) for one in entries.values()]
        known = [value for value in values if value is not None]
        best = (max if line.better > 0 else min)(known) if line.better and len(set(known)) > 1 else None
        written = [
            (NOTHING if value is None else line.write(value), value is not None and value == best) for value in values
        ]
        lines.append((line.label, written))
    return lines


def _at(one: dict[str, Any], place: tuple[str, ...]) -> Any:
    for name in place:
        one = one[name]
    return one


# -- the page ----------------------------------------------------------------------------------------------------------

_PLOTS = (
    ("Latency, p95", "latency_p95_ms", "ms"),
    ("Processor per broker", "cpu_per_broker", "share of a processor"),
    ("Bytes between brokers per delivery", "bytes_per_delivery", "bytes"),
    ("Routing accuracy", "accuracy", "interested over all receipts"),
)


def html(entries: dict[str, dict[str, Any]], about: str) -> str:
    figures = [_figure(entries, *plot) for plot in _PLOTS]
    rows = "\n".join(
        f"<tr><td>{escape(label)}</td>"
        + "".join(f'<td class="number{" best" if best else ""}">{escape(text)}</td>' for text, best in written)
        + "</tr>"
        for label, written in cells(entries)
    )
    drawn = "\n".join(place_of(figure, number) for number, figure in enumerate(figures))
    body = f"""<h1>Strategies compared</h1>
<p>{escape(about)}</p>
{table(("", *entries), rows, "compared")}
<p class="again">{_notes(entries)}</p>
<section><h2>As the rate rises</h2>
<div class="figures">{drawn}</div></section>"""
    return page("mercast: strategies compared", body, figures)


def _notes(entries: dict[str, dict[str, Any]]) -> str:
    notes = ["Figures are Spark's, of what brokers told; the best of each line is bold."]
    for name, one in entries.items():
        where = f", {one['clusters']} clusters" if one["clusters"] > 1 else ""
        notes.append(f"{name} ({one['brokers']} brokers{where}): {knee(one['knee'])}.")
    return "<br>".join(map(escape, notes))


def _figure(entries: dict[str, dict[str, Any]], title: str, name: str, unit: str) -> dict[str, Any]:
    series = [
        Series(strategy, [(step["events_per_second"], step[name]) for step in one["steps"] if _drawable(step, name)])
        for strategy, one in entries.items()
    ]
    return Figure(title, "events/s", unit, series).plain()


def _drawable(step: dict[str, Any], name: str) -> bool:
    return step["events_per_second"] is not None and step[name] is not None
