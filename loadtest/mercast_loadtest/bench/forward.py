"""Measures a broker that only passes events on: processor time per event, beside a bare forwarder at the same rate.

Two cases. `same`: all events go to one far broker, so those that follow each other travel together. `varied`: each goes
to some of four far brokers, drawn event by event, so they hardly do.
"""

import random
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from mercast.broker.local import Local
from mercast.content import Filter
from mercast.overlay.split import pack
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, FAR, LINE, WARM_UP
from mercast_loadtest.bench.load import Ends, around_brokers, around_forwarders, progress

MIDDLE = "2"
"""The broker, and the forwarder, that is looked at."""

STAR = ((1, 2), (2, 3), (3, 4), (3, 5), (3, 6))
FAR_BROKERS = (3, 4, 5, 6)

_ALL = Filter()
"""What is subscribed to does not matter at a broker that does not match."""


@dataclass(frozen=True)
class Case:
    cpu_us_per_event: float
    bare_cpu_us_per_event: float
    ratio: float
    """Median over the runs of the one over the other."""
    ratios: list[float]
    p50_ms: float
    """From end to end. Where it is large, the brokers did not keep up, and the figures above are of large batches."""
    expected: int
    """Deliveries, in all runs."""
    lost: int


@dataclass(frozen=True)
class Result:
    rate: float
    content_bytes: int
    same: Case
    varied: Case


def measure(*, runs: int, seconds: float, rate: float, seed: int) -> Result:
    with ExitStack() as ends:
        same = _measured("same", *_same(ends, seed), runs, seconds, rate)
    with ExitStack() as ends:
        varied = _measured("varied", *_varied(ends, seed), runs, seconds, rate)
    return Result(rate, quotes.CONTENT_BYTES, same, varied)


def _measured(case: str, live: Ends, bare: Ends, runs: int, seconds: float, rate: float) -> Case:
    live.steady(WARM_UP, rate)
    bare.steady(WARM_UP, rate)
    ours, theirs, late, expected, lost = [], [], [], 0, 0
    for run in range(1, runs + 1):
        theirs.append(bare.steady(seconds, rate).cpu_us[MIDDLE])
        done = live.steady(seconds, rate)
        ours.append(done.cpu_us[MIDDLE])
        late.append(done.p50_ms)
        expected, lost = expected + done.expected, lost + done.lost
        progress.print(f"forward, {case}: run {run} of {runs}: {ours[-1]:.2f} µs an event, bare {theirs[-1]:.2f}")
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Case(median(ours), median(theirs), median(ratios), ratios, median(late), expected, lost)


def _same(ends: ExitStack, seed: int) -> tuple[Ends, Ends]:
    contents = quotes.contents(quotes.wanted_events([_ALL], EVENTS, seed))
    progress.print("forward, same: starting three brokers and three bare forwarders")
    brokers = ends.enter_context(Local(3, LINE))
    live = ends.enter_context(around_brokers(brokers, contents, {3: [str(_ALL)]}))
    return live, ends.enter_context(around_forwarders(contents, [FAR]))


def _varied(ends: ExitStack, seed: int) -> tuple[Ends, Ends]:
    """A quote has a `region`, whose bits say which of the far brokers want it."""
    rng = random.Random(f"{seed} regions")
    regions = range(1, 1 << len(FAR_BROKERS))
    drawn = rng.choices(regions, k=EVENTS)
    quoted = quotes.wanted_events([_ALL], EVENTS, seed)
    contents = quotes.contents([event | {"region": region} for event, region in zip(quoted, drawn, strict=True)])
    progress.print("forward, varied: starting six brokers and three bare forwarders")
    brokers = ends.enter_context(Local(6, STAR))
    asked = {
        broker: [f"region IN ({', '.join(str(one) for one in regions if one >> bit & 1)})"]
        for bit, broker in enumerate(FAR_BROKERS)
    }
    copies = [region.bit_count() for region in drawn]
    live = ends.enter_context(around_brokers(brokers, contents, asked, copies))
    lists = [pack(broker for bit, broker in enumerate(FAR_BROKERS) if region >> bit & 1) for region in drawn]
    return live, ends.enter_context(around_forwarders(contents, lists))
