"""Measures what taps cost: the chain of chain.py with rows of all events and of a tenth, beside the same without taps.

The machine is not the same from minute to minute, and two equal chains differ, as their memory happens to lie: so there
are several of each kind, all at once, and in each round each of them works for a moment, in an order by chance. They
are compared with all without taps in the same round, and one half of these with the other: so far are equal ones apart.
What rows cost comes late, for they are gathered before they are shipped: each chain works for long enough before it is
measured, and has shipped all before another one works.
Kafka runs on the same machine and takes from its cores, as it would not elsewhere: so the brokers' own processor time
is compared, too.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from operator import truediv
from random import Random
from statistics import mean
from time import sleep
from typing import TypeAlias

from mercast.broker.local import Local
from mercast.kafka import Kafka
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, LINE, WARM_UP
from mercast_loadtest.bench.load import Run, around_brokers, progress

WITHOUT, AGAIN = "without taps", "without taps, again"
SAMPLING = {WITHOUT: 0.0, "all events": 1.0, "a tenth": 0.1, AGAIN: 0.0}
"""By the name of the chains."""
AGAIN_WARM = 1.5
"""Seconds in which a chain finds its memory in the caches again, after the others have worked, and until it ships as
many rows as it writes."""
SHIPPED_WITHIN = 1.6
"""Seconds until nothing is left to be shipped."""

BROKERS = ("1", "2", "3")
_Asked: TypeAlias = Mapping[int, list[str]]


@dataclass(frozen=True)
class Side:
    """A chain, beside those without taps in the same round."""

    events_per_second: float
    ratio: float
    """Mean over rounds and chains of events a second over those without taps in the same round."""
    ratios: list[float]
    """Chain by chain."""
    brokers_ratio: float
    """Likewise, of the brokers' processor time for each event without taps, over that of this chain."""
    brokers_ratios: list[float]
    cpu_us_per_event: dict[str, float]
    rows_shipped: int
    rows_lost: int
    events_lost: int


@dataclass(frozen=True)
class Result:
    events_per_second: float
    """Without taps."""
    cpu_us_per_event: dict[str, float]
    sides: dict[str, Side]
    subscriptions: int
    compression: str


class _Chain:
    """One of several, that works again and again."""

    def __init__(self, stack: ExitStack, options: list[str], kafka: int, contents: list[bytes], asked: _Asked) -> None:
        self._brokers, self._tapped = stack.enter_context(Local(3, LINE, options=options)), bool(options)
        self._ends = stack.enter_context(around_brokers(self._brokers, contents, dict(asked)))
        self._ends.watch("kafka", kafka)
        self._ends.flood(WARM_UP)
        self.runs: list[Run] = []

    def work(self, seconds: float) -> None:
        self._ends.flood(AGAIN_WARM)
        self.runs.append(self._ends.flood(seconds))
        if self._tapped:
            sleep(SHIPPED_WITHIN)

    def counted(self, name: str) -> int:
        brokers = self._brokers.brokers.values() if self._tapped else ()
        return sum(int(broker.metric(f"mercast_tap_rows_{name}_total")) for broker in brokers)


def measure(
    *, subscriptions: int, runs: int, seconds: float, seed: int, chains: int = 2, compression: str = "none"
) -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    asked = {3: [str(filter) for filter in filters]}
    chance = Random(seed)
    with Kafka(tell=progress.print) as kafka, ExitStack() as stack:
        taps = ["--taps", f"kafka://{kafka.address}", "--taps-compression", compression, "--sampling"]
        by_name: dict[str, list[_Chain]] = {name: [] for name in SAMPLING}
        for number in range(chains):
            progress.print(f"taps: starting brokers, {number + 1} of {chains} of each kind")
            for name, share in SAMPLING.items():
                options = [*taps, str(share)] if share else []
                by_name[name].append(_Chain(stack, options, kafka.pid, contents, asked))
        everyone = [chain for some in by_name.values() for chain in some]
        for run in range(1, runs + 1):
            for chain in chance.sample(everyone, len(everyone)):
                chain.work(seconds)
            told = (f"{name} {mean(chain.runs[-1].rate for chain in some):,.0f}" for name, some in by_name.items())
            progress.print(f"taps: round {run} of {runs}, events/s: {', '.join(told)}")
        bare, again = by_name.pop(WITHOUT), by_name.pop(AGAIN)
        sides = {AGAIN: _side(again, bare)} | {name: _side(some, bare + again) for name, some in by_name.items()}
    return Result(mean(_all(bare, _rate)), _cpu(bare), sides, subscriptions, compression)


def _side(chains: list[_Chain], bare: list[_Chain]) -> Side:
    """Of each chain the ratio of all its rounds; of all chains their mean."""
    ratios = [mean(map(truediv, _each(chain, _rate), _rounds(bare, _rate))) for chain in chains]
    brokers_ratios = [mean(map(truediv, _rounds(bare, _brokers_us), _each(chain, _brokers_us))) for chain in chains]
    return Side(
        events_per_second=mean(_all(chains, _rate)),
        ratio=mean(ratios),
        ratios=ratios,
        brokers_ratio=mean(brokers_ratios),
        brokers_ratios=brokers_ratios,
        cpu_us_per_event=_cpu(chains),
        rows_shipped=sum(chain.counted("shipped") for chain in chains),
        rows_lost=sum(chain.counted("lost") for chain in chains),
        events_lost=sum(run.lost for chain in chains for run in chain.runs),
    )


def _rate(run: Run) -> float:
    return run.rate


def _brokers_us(run: Run) -> float:
    return sum(run.cpu_us[name] for name in BROKERS)


def _each(chain: _Chain, of: Callable[[Run], float]) -> list[float]:
    return list(map(of, chain.runs))


def _all(chains: list[_Chain], of: Callable[[Run], float]) -> list[float]:
    return [one for chain in chains for one in _each(chain, of)]


def _rounds(chains: list[_Chain], of: Callable[[Run], float]) -> list[float]:
    """Round by round, the mean of these chains."""
    return [mean(some) for some in zip(*(_each(chain, of) for chain in chains), strict=True)]


def _cpu(chains: list[_Chain]) -> dict[str, float]:
    return {name: mean(run.cpu_us[name] for chain in chains for run in chain.runs) for name in chains[0].runs[0].cpu_us}
