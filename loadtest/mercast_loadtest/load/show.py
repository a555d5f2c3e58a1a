"""What came of a test: a line while it runs, a table at its end, and the same as JSON."""

import sys
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from mercast_loadtest.load.course import Course, Phase, Pulse
from mercast_loadtest.load.latency import PERCENTILES, Latency

_PLAIN_EVERY = 5.0
"""Seconds between lines where they cannot be written over."""
_SECOND = 1e9


class Live:
    """The line, on standard error."""

    def __init__(self) -> None:
        self._over = sys.stderr.isatty()
        self._told = -_PLAIN_EVERY

    def tell(self, course: Course) -> None:
        if course.phase is Phase.SET_UP:
            line = f"{course.phase}: {len(course.ledger.ready)} of {course.users} users"
        elif course.phase is Phase.RUN:
            line = _line(course.pulse(), course)
        else:
            line = str(course.phase)
        if self._over:
            sys.stderr.write(f"\r\x1b[K{line}")
        elif course.phase is Phase.RUN and course.seconds >= self._told + _PLAIN_EVERY:
            self._told = course.seconds
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._over:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _line(pulse: Pulse, course: Course) -> str:
    tally = course.ledger.tally(course.began)
    parts = [
        f"{pulse.seconds:5.0f} s",
        f"{pulse.published:7,.0f} events/s",
        f"{pulse.delivered:7,.0f} deliveries/s",
        f"p50 {_ms(pulse.p50)}  p99 {_ms(pulse.p99)}",
        f"missing {tally.missing + tally.missing_around_faults:,}",
    ]
    return "  ".join(parts)


# -- the end -----------------------------------------------------------------------------------------------------------


def result(course: Course, about: dict[str, Any]) -> dict[str, Any]:
    """For machines. Times in milliseconds unless a name says otherwise."""
    ledger = course.ledger
    tally = course.finish()
    knee = course.knee()
    found = about | {
        "began": _iso(course.began),
        "ended": _iso(course.ended),
        "seconds": round(course.seconds, 3),
        "users": len(ledger.ready),
        **tally._asdict(),
        "rate": round(tally.published / course.seconds, 1) if course.seconds else 0.0,
        "delivery_rate": round(ledger.arrived / course.seconds, 1) if course.seconds else 0.0,
        "deliveries": ledger.arrived,
        "copies": ledger.copies,
        "completeness": tally.delivered / tally.due if tally.due else None,
        "latency_ms": _percentiles(ledger.latency),
        "publish_ms": _percentiles(ledger.acknowledged),
        "faults": [[_iso(start), _iso(end)] for start, end in ledger.faults.windows(course.ended)],
        "kept": tally.kept and not course.problem,
        "problem": course.problem or None,
    }
    if knee is not None:
        steps = [
            step._asdict() | {"began": _iso(step.began), "ended": _iso(step.ended)}
            for step in getattr(course.shape, "steps", ())
        ]
        found["knee"] = {"rate": knee.rate, "reached": knee.reached, "why": knee.why, "steps": steps}
    return found


def write_json(found: dict[str, Any], place: str) -> None:
    with open(place, "wb") as file:
        file.write(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def show(found: dict[str, Any]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for label, value, more in _rows(found):
        table.add_row(label, value, more)
    console.print(table)
    if "knee" in found:
        console.print(_knee(found["knee"]))
    if found["problem"]:
        console.print(f"[red]{found['problem']}[/]")
    elif not found["due"]:
        console.print("[yellow]nothing was due to anybody: this shows nothing[/]")
    elif found["kept"]:
        console.print("[green]nothing missing, doubled or undue[/]")
    else:
        names = ("missing", "doubled", "undue")
        console.print(f"[red]{', '.join(f'{found[name]:,} {name}' for name in names if found[name])}[/]")


def _rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        ("published", f"{found['published']:,}", f"{found['rate']:,.0f}/s for {found['seconds']:,.1f} s"),
        ("due", f"{found['due']:,}", "deliveries"),
        ("delivered", f"{found['delivered']:,}", f"{found['delivery_rate']:,.0f}/s"),
        ("missing", f"{found['missing']:,}", ""),
        ("doubled", f"{found['doubled']:,}", ""),
        ("undue", f"{found['undue']:,}", ""),
    ]
    asides = {
        "missing_around_faults": "missing around a fault, which is not promised",
        "late": "came later than the patience",
        "not_accepted": "events that no broker has accepted",
        "uncounted": "came as their subscription came or went",
        "strangers": "events of others, not counted",
    }
    rows += [(name.replace("_", " "), f"{found[name]:,}", why) for name, why in asides.items() if found[name]]
    for label, name in (("latency", "latency_ms"), ("publish", "publish_ms")):
        took = found[name]
        first, *others = (f"p{one} {_ms(took[f'p{one}'])}" for one in PERCENTILES)
        rows.append((label, first, "  ".join([*others, f"at most {_ms(took['max'])}"])))
    return rows


def _knee(knee: dict[str, Any]) -> str:
    if not knee["rate"]:
        return f"knee: below the first rate ({knee['why']}); begin lower with --rate"
    if not knee["reached"]:
        return f"knee: not reached; {knee['rate']:,.0f} events/s were held"
    return f"knee: {knee['rate']:,.0f} events/s were held; beyond, {knee['why']}"


def _percentiles(latency: Latency) -> dict[str, float | None]:
    found = {f"p{one}": latency.percentile(one) for one in PERCENTILES} | {"max": latency.longest}
    return {name: None if value is None else round(value, 3) for name, value in found.items()}


def _ms(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "—"
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"  # noqa: PLR2004


def _iso(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / _SECOND, UTC).isoformat(timespec="milliseconds")
