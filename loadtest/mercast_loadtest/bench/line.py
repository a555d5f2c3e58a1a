"""Measures D-DBR and MERC beside FBR on a line of brokers: claims A1 to A4 of the papers, live.

All subscriptions are at the far end, events are published at the near one. FBR matches an event at every broker, D-DBR
at the first and the last, MERC also at the edge in the middle, which two clusters share. With the scan, matching is
what costs, as it does in the papers; with the index it hardly is.
"""

from dataclasses import dataclass
from urllib.request import urlopen

from mercast.broker.local import Broker, Local
from mercast.broker.nursery import Nursery
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, WARM_UP
from mercast_loadtest.bench.load import WINDOW, Run, around_brokers, progress

STRATEGIES = ("fbr", "ddbr", "merc")
WINDOWS: dict[str, int] = {"scan": 32, "index": WINDOW}
"""Events on their way at most: by the scan each takes milliseconds."""

SHARE = 0.25
"""Latency is measured at this share of what FBR can carry."""

BUSY = 0.1
"""A broker works on events if it takes this share of the processor time of the one that takes most."""

_MATCHED = "mercast_events_matched_total"


@dataclass(frozen=True)
class Side:
    """One strategy with one matcher."""

    events_per_second: float
    p50_ms: float
    p99_ms: float
    at_rate: float
    """Where latency was measured."""
    cpu_us_per_event: list[float]
    """By broker, along the line, at full speed."""
    cpu_us_in_all: float
    busy: list[int]
    """Brokers that take a good share of the processor time."""
    matches_per_event: list[float]
    """By broker; empty if the brokers do not tell."""
    lost: int


@dataclass(frozen=True)
class Comparison:
    fbr: Side
    ddbr: Side
    merc: Side
    throughput_ratio: float
    """D-DBR over FBR (A1)."""
    latency_ratio: float
    """D-DBR over FBR at the same rate (A2)."""
    cpu_ratio: float
    """FBR over D-DBR, all brokers together."""
    merc_latency_ratio: float
    """MERC over D-DBR at the same rate (A3)."""


@dataclass(frozen=True)
class Result:
    brokers: int
    subscriptions: int
    scan: Comparison
    index: Comparison


def measure(*, brokers: int, subscriptions: int, seconds: float, seed: int) -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    asked = [str(filter) for filter in filters]
    with Nursery() as nursery:
        scan, index = (_compared(matcher, brokers, contents, asked, seconds, nursery) for matcher in ("scan", "index"))
    return Result(brokers, subscriptions, scan, index)


def _compared(
    matcher: str, brokers: int, contents: list[bytes], asked: list[str], seconds: float, nursery: Nursery
) -> Comparison:
    sides: dict[str, Side] = {}
    rate = 0.0
    for strategy in STRATEGIES:
        progress.print(f"line, {matcher}, {strategy}: starting {brokers} brokers")
        make = TwoClusters if strategy == "merc" else Local
        links = [(one, one + 1) for one in range(1, brokers)]
        with (
            make(brokers, links, strategy=strategy, matcher=matcher, nursery=nursery) as line,
            around_brokers(line, contents, {brokers: asked}) as live,
        ):
            live.flood(min(WARM_UP, seconds), WINDOWS[matcher])
            before = _matched(line)
            full = live.flood(seconds, WINDOWS[matcher])
            after = _matched(line)
            rate = rate or SHARE * full.rate
            steady = live.steady(seconds, rate)
        matches = [(many - few) / full.published for many, few in zip(after, before, strict=True)]
        sides[strategy] = _side(full, steady, rate, matches)
        progress.print(
            f"line, {matcher}, {strategy}: {full.rate:,.0f} events/s; p50 {steady.p50_ms:.1f} ms at {rate:,.0f}/s"
        )
    fbr, ddbr, merc = (sides[strategy] for strategy in STRATEGIES)
    return Comparison(
        fbr,
        ddbr,
        merc,
        ddbr.events_per_second / fbr.events_per_second,
        ddbr.p50_ms / fbr.p50_ms,
        fbr.cpu_us_in_all / ddbr.cpu_us_in_all,
        merc.p50_ms / ddbr.p50_ms,
    )


class TwoClusters(Local):
    """A line whose halves are clusters. The broker in the middle is of the second one, and an edge to the first."""

    def _place(self, id: int) -> tuple[int, bool]:
        return (1 if id < self._middle else 2), False

    @property
    def _middle(self) -> int:
        return len(self._ids) // 2 + 1

    def _flags(self, broker: Broker) -> list[str]:
        flags, middle = super()._flags(broker), self._middle
        first = {id: self.brokers[id].peer for id in self._ids if id <= middle}
        second = {id: self.brokers[id].peer for id in self._ids if id >= middle}
        members = [f"{id}={peer}" for id, peer in (first if broker.id < middle else second).items()]
        links = [(one, one + 1) for one in (range(1, middle) if broker.id < middle else range(middle, len(self._ids)))]
        listed = [f"{one}-{other}" for one, other in links]
        if broker.id == middle:
            members += [f"cluster-1/{id}={peer}" for id, peer in first.items()]
            listed += [f"cluster-1/{one}-{one + 1}" for one in range(1, middle)]
            flags += ["--joins", "cluster-1=1"]
        for flag, entries in (("--members", members), ("--links", listed)):
            flags[flags.index(flag) + 1] = ",".join(entries)
        return [*flags, "--cluster", f"cluster-{broker.cluster}", "--cluster-number", str(broker.cluster)]


def _side(full: Run, steady: Run, rate: float, matches: list[float]) -> Side:
    cpu = [value for name, value in full.cpu_us.items() if name.isdigit()]
    busy = [broker for broker, value in enumerate(cpu, 1) if value >= BUSY * max(cpu)]
    lost = full.lost + steady.lost
    return Side(full.rate, steady.p50_ms, steady.p99_ms, rate, cpu, sum(cpu), busy, matches, lost)


def _matched(line: Local) -> list[float]:
    """How many events each broker has matched so far, if it tells."""
    found = []
    for broker in line.brokers.values():
        with urlopen(f"http://{broker.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found += [float(one.split()[1]) for one in lines if one.startswith(_MATCHED)]
    return found
