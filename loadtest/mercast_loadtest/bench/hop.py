"""Measures one broker: publish, match, deliver, beside nats-server with the same events on one subject.

nats-server matches a subject where the broker matches content against all subscriptions; else both do the same: read an
event, find its one subscriber, write it.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from mercast.broker.local import Local
from mercast_loadtest.bench import nats, parts, quotes
from mercast_loadtest.bench.chain import EVENTS, WARM_UP
from mercast_loadtest.bench.load import Run, around_brokers, around_nats, progress


@dataclass(frozen=True)
class Result:
    events_per_second: float
    cpu_us_per_event: float
    nats_events_per_second: float | None
    nats_cpu_us_per_event: float | None
    ratio: float | None
    """Of events per second, median over the runs."""
    cpu_ratio: float | None
    subscriptions: int
    content_bytes: int
    published: int
    delivered: int
    parts_us: dict[str, float]
    """Where the broker's time goes, without sockets and loop (bench/parts.py)."""
    note: str
    """Why there is nothing of nats-server, if there is not."""

    @property
    def parts_in_all(self) -> float:
        return sum(each for name, each in self.parts_us.items() if name != parts.WITHIN)


def measure(*, subscriptions: int, runs: int, seconds: float, seed: int) -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    program = nats.find()
    progress.print(f"hop: starting a broker and {'nats-server' if program else 'nothing beside it'}")
    ours: list[Run] = []
    theirs: list[Run] = []
    with ExitStack() as ends:
        brokers = ends.enter_context(Local(1))
        asked = [str(filter) for filter in filters]
        live = ends.enter_context(around_brokers(brokers, contents, {1: asked}))
        live.flood(WARM_UP)
        if program:
            other = ends.enter_context(around_nats(contents, *ends.enter_context(nats.server(program))))
            other.flood(WARM_UP)
        for run in range(1, runs + 1):
            if program:
                theirs.append(other.flood(seconds))
            ours.append(live.flood(seconds))
            progress.print(f"hop: run {run} of {runs}: {_said(ours[-1], '1')}" + _beside(theirs))
    return Result(
        events_per_second=median(run.rate for run in ours),
        cpu_us_per_event=median(run.cpu_us["1"] for run in ours),
        nats_events_per_second=median(run.rate for run in theirs) if theirs else None,
        nats_cpu_us_per_event=median(run.cpu_us["nats"] for run in theirs) if theirs else None,
        ratio=median(one.rate / other.rate for one, other in zip(ours, theirs, strict=True)) if theirs else None,
        cpu_ratio=median(a.cpu_us["1"] / b.cpu_us["nats"] for a, b in zip(ours, theirs, strict=True))
        if theirs
        else None,
        subscriptions=subscriptions,
        content_bytes=quotes.CONTENT_BYTES,
        published=sum(run.published for run in ours),
        delivered=sum(run.delivered for run in ours),
        parts_us=parts.measure(filters, contents),
        note="" if program else nats.MISSING,
    )


def _said(run: Run, process: str) -> str:
    return f"{run.rate:,.0f} events/s, {run.cpu_us[process]:.1f} µs of CPU each"


def _beside(theirs: list[Run]) -> str:
    return f"; nats-server {_said(theirs[-1], 'nats')}" if theirs else ""
