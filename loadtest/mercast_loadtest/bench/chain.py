"""Measures three brokers in a line: events from a client at one end to a client at the other, beside a bare chain.

Every event matches at least one of the subscriptions, and all of them are one client's: each is to arrive once.
"""

from dataclasses import dataclass
from statistics import median

from mercast.broker.local import Local
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.load import WINDOW, around_brokers, around_forwarders, progress

EVENTS = 4_000
"""Different events; they come round again and again."""

LINE = ((1, 2), (2, 3))
FAR = b"\x03\x00"
"""The destination list of all events."""

WARM_UP = 0.5
"""Seconds."""


@dataclass(frozen=True)
class Result:
    events_per_second: float
    bare_events_per_second: float
    ratio: float
    """Median over the runs of the one over the other."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    """At the fixed rate, from when an event was due to be published to when the subscriber has it."""
    bare_p50_ms: float
    rate: float
    subscriptions: int
    content_bytes: int
    window: int
    """Events that were on their way at most."""
    published: int
    delivered: int
    """In all runs."""
    ratios: list[float]
    cpu_us_per_event: dict[str, float]
    """At full speed, by process."""
    bare_cpu_us_per_event: dict[str, float]


def measure(*, subscriptions: int, runs: int, seconds: float, rate: float, seed: int) -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    asked = [str(filter) for filter in filters]
    progress.print("chain: starting three brokers and three bare forwarders")
    with (
        Local(3, LINE) as brokers,
        around_brokers(brokers, contents, {3: asked}) as live,
        around_forwarders(contents, [FAR]) as bare,
    ):
        live.flood(WARM_UP)
        bare.flood(WARM_UP)
        ours, theirs = [], []
        for run in range(1, runs + 1):
            theirs.append(bare.flood(seconds))
            ours.append(live.flood(seconds))
            progress.print(
                f"chain: run {run} of {runs}: {ours[-1].rate:,.0f} events/s, bare {theirs[-1].rate:,.0f}"
                + (f", {ours[-1].lost:,} LOST" if ours[-1].lost else "")
            )
        steady, bare_steady = [], []
        for run in range(1, runs + 1):
            bare_steady.append(bare.steady(seconds, rate))
            steady.append(live.steady(seconds, rate))
            progress.print(f"chain: run {run} of {runs} at {rate:,.0f} events/s: p50 {steady[-1].p50_ms:.2f} ms")
    ratios = [one.rate / other.rate for one, other in zip(ours, theirs, strict=True)]
    return Result(
        events_per_second=median(run.rate for run in ours),
        bare_events_per_second=median(run.rate for run in theirs),
        ratio=median(ratios),
        p50_ms=median(run.p50_ms for run in steady),
        p95_ms=median(run.p95_ms for run in steady),
        p99_ms=median(run.p99_ms for run in steady),
        bare_p50_ms=median(run.p50_ms for run in bare_steady),
        rate=rate,
        subscriptions=subscriptions,
        content_bytes=quotes.CONTENT_BYTES,
        window=WINDOW,
        published=sum(run.published for run in ours + steady),
        delivered=sum(run.delivered for run in ours + steady),
        ratios=ratios,
        cpu_us_per_event={name: median(run.cpu_us[name] for run in ours) for name in ours[0].cpu_us},
        bare_cpu_us_per_event={name: median(run.cpu_us[name] for run in theirs) for name in theirs[0].cpu_us},
    )
