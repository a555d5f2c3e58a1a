"""Latency and who works on a line (D-DBR and MERC, section V-A; figures 11 to 14), each broker its own core.

A publisher at the head, 100 subscribers at the tail, 3,000 events a minute; costs are those of lab/load.py. MERC's line
is two clusters, joined by the broker in the middle. Only events that somebody wants are published: what nobody wants
goes nowhere.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mercast.content import Filter, Value
from mercast.lab.clusters import halves
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, holds, judged, within
from mercast.lab.load import LINK, as_counted, quote
from mercast.lab.worlds import world
from mercast.protocol.stimuli import Advertise, Stimulus, Subscribe
from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.filtering.fbr import FBR
from mercast.sim.journeys import Journey, run, travel
from mercast.workloads import Stock

RATE = 3_000
LONGEST = 10
MOST = 2_000
"""Subscriptions."""

STRATEGIES: dict[str, type[Core]] = {"FBR": FBR, "D-DBR": DDBR, "MERC": MERC}

SLOWER = 1.5
"""Latency of MERC over that of D-DBR with 2,000 subscriptions."""

APART = 3
"""Brokers from which on the first, the middle and the last are three."""

BUSY, IDLE, NEAR = 63, 2, 5
"""CPU of a broker that matches and of one that does not, in percent, and how near is near enough."""


class Workload(NamedTuple):
    filters: list[Filter]
    events: list[dict[str, Value]]


class Travelled(NamedTuple):
    journeys: list[Journey]
    matches: list[float]
    """Per event, of each broker."""


def stock(seed: int, subscriptions: int, events: int) -> Workload:
    rng, workload = random.Random(seed), Stock()
    filters = [workload.filter(rng) for _ in range(subscriptions)]
    return Workload(filters, [wanted(workload, filters, rng) for _ in range(events)])


def wanted(workload: Stock, filters: list[Filter], rng: random.Random) -> dict[str, Value]:
    """An event that one of these filters matches."""
    while True:
        attributes = workload.event(rng)
        if any(filter.matches(attributes) for filter in filters):
            return attributes


def along(strategy: type[Core], length: int, workload: Workload) -> Travelled:
    """All events, from the head of a line to its tail."""
    asked: list[tuple[int, Stimulus]] = [(0, Advertise("p", 1, "quote", Filter()))]
    asked += [
        (length - 1, Subscribe(f"s{number % 100}", number, "quote", filter))
        for number, filter in enumerate(workload.filters, 1)
    ]
    clusters = halves(length)
    brokers = world(strategy, clusters.links, asked, clusters=clusters.homes if strategy is MERC else None).brokers
    before = [core.work.matches for core in brokers.values()]
    journeys = [travel(brokers, 0, quote(number, one)) for number, one in enumerate(workload.events, 1)]
    since = [core.work.matches - old for core, old in zip(brokers.values(), before, strict=True)]
    return Travelled(journeys, [matches / len(journeys) for matches in since])


def latency(travelled: Travelled, link: float = LINK) -> float:
    """Milliseconds, on average."""
    return 1e3 * run(travelled.journeys, 60 / RATE, as_counted, link).latency


# -- A3 ----------------------------------------------------------------------------------------------------------------


@experiment(
    "A3", "latency of MERC over D-DBR: a line of 1 to 10 brokers, 3,000 events a minute, the edge in the middle"
)
def slower(setting: Setting) -> Iterator[Row | Figure]:
    lengths = range(1, LONGEST + 1) if setting.scale == "full" else (1, 3, LONGEST)
    ratios, figures = [], []
    for number, count in zip((11, 12, 13), (100, 800, MOST), strict=True):
        workload = stock(setting.seed, count, setting.size(200, 10))
        lines: dict[str, dict[int, Travelled]] = {name: {} for name in STRATEGIES}
        for length in lengths:
            setting.progress(f"{count:,} subscriptions, {length} brokers")
            for name, strategy in STRATEGIES.items():
                lines[name][length] = along(strategy, length, workload)
        times = over(lines)
        if count == MOST:
            yield within("MERC over D-DBR, 2,000 subscriptions", SLOWER, typical(times), 0.20, "x", told(times, lines))
        yield below(count, lines)
        ratios.append(Series(f"{count:,} subscriptions", list(times.items())))
        series = [Series(name, [(at, latency(one)) for at, one in some.items()]) for name, some in lines.items()]
        figures.append(Figure(f"Fig. {number}: {count:,} subscriptions", "brokers", "mean latency, ms", series))
    yield from figures
    ratios.append(Series(f"{MOST:,} subscriptions", [(APART, SLOWER), (LONGEST, SLOWER)], paper=True))
    yield Figure("Latency of MERC over that of D-DBR", "brokers", "times", ratios)


def over(lines: dict[str, dict[int, Travelled]], link: float = LINK) -> dict[int, float]:
    """MERC's latency over D-DBR's, by length."""
    return {at: latency(merc, link) / latency(lines["D-DBR"][at], link) for at, merc in lines["MERC"].items()}


def typical(times: dict[int, float]) -> float:
    return float(np.mean([one for length, one in times.items() if length >= APART]))


def told(times: dict[int, float], lines: dict[str, dict[int, Travelled]]) -> str:
    each = ", ".join(f"{length}: {one:.2f}" for length, one in times.items())
    quick, slow = (typical(over(lines, link)) for link in (LINK / 10, LINK * 5))
    return (
        f"the mean of lines of {APART} and more (in shorter ones the edge is an end); by brokers {each}; the latency "
        f"of links is not said, here 1 ms: with 0.1 ms {quick:.2f}x, with 5 ms {slow:.2f}x"
    )


def below(count: int, lines: dict[str, dict[int, Travelled]]) -> Row:
    """As the text has it of figures 11 to 13."""
    fbr, ddbr, merc = (latency(some[LONGEST]) for some in lines.values())
    ours = f"D-DBR {ddbr:.1f}, MERC {merc:.1f}, FBR {fbr:.1f} ms"
    return holds(f"{count:,} subscriptions, 10 brokers", "D-DBR and MERC below FBR", ours, ddbr < merc < fbr)


# -- A4 ----------------------------------------------------------------------------------------------------------------


@experiment("A4", "who works on a line of 10 brokers with 2,000 subscriptions at its end, 3,000 events a minute")
def who_works(setting: Setting) -> Iterator[Row | Figure]:
    workload = stock(setting.seed, MOST, setting.size(3_000, 150))
    ends = {0, LONGEST - 1}
    workers = {"FBR": set(range(LONGEST)), "D-DBR": ends, "MERC": {*ends, LONGEST // 2}}
    whom = {"FBR": "all", "D-DBR": "first and last", "MERC": "first, middle and last"}
    series = []
    for name, strategy in STRATEGIES.items():
        setting.progress(f"{name}, {len(workload.events)} events")
        travelled = along(strategy, LONGEST, workload)
        works = [broker in workers[name] for broker in range(LONGEST)]
        shown = ", ".join(f"{figure:g}" for figure in travelled.matches)
        yield judged(f"{name}: matches per event", f"1: {whom[name]}", shown, travelled.matches == works)
        load = run(travelled.journeys, 60 / RATE, as_counted, LINK)
        busy = [100 * load.busy[broker] / load.seconds for broker in range(LONGEST)]
        expected = [BUSY if working else IDLE for working in works]
        near = all(abs(ours - paper) <= NEAR for ours, paper in zip(busy, expected, strict=True))
        others = "" if all(works) else f", the others {IDLE}%"
        told = ", ".join(f"{figure:.0f}" for figure in busy)
        why = f"latency {1e3 * load.latency:.0f} ms"
        yield holds(f"{name}: CPU", f"{BUSY}%: {whom[name]}{others}", f"{told}%", near, why)
        series.append(Series(name, list(enumerate(busy, 1))))
        series.append(Series(name, list(enumerate(expected, 1)), paper=True))
    yield Figure("Fig. 14: who works on a line of 10", "broker", "CPU, %", series)
