"""Measures what taps cost: the chain of chain.py with rows of all events and of a tenth, beside the same without taps.

Two equal chains differ, as their memory happens to lie, and the machine is not the same from minute to minute: so each
round has new ones, those with taps between two without, whose mean they are compared with; the second of these beside
the first shows how far equal ones are apart. Kafka runs on the same machine and takes from its cores, as it would
not elsewhere: so the brokers' own processor time is compared, too.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import mean, median

from mercast.broker.local import Local
from mercast.kafka import Kafka
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, LINE, WARM_UP
from mercast_loadtest.bench.load import Run, around_brokers, progress

WITHOUT, AGAIN = "without taps", "without taps, again"
SAMPLING = {WITHOUT: 0.0, "all events": 1.0, "a tenth": 0.1, AGAIN: 0.0}
"""By the name of the chain, in the order of every other round; the others go the other way about."""

BROKERS = ("1", "2", "3")


@dataclass(frozen=True)
class Side:
    """A chain, beside those without taps in the same round."""

    events_per_second: float
    ratio: float
    """Median over the rounds of events a second over those without taps."""
    ratios: list[float]
    brokers_ratio: float
    """Likewise, of the brokers' processor time for each event without taps, over that of this chain."""
    brokers_ratios: list[float]
    cpu_us_per_event: dict[str, float]
    rows_shipped: int
    rows_lost: int


@dataclass(frozen=True)
class Result:
    events_per_second: float
    """Without taps."""
    cpu_us_per_event: dict[str, float]
    sides: dict[str, Side]
    subscriptions: int
    compression: str


@dataclass(frozen=True)
class _Flood:
    run: Run
    shipped: int
    lost: int

    @property
    def brokers_us(self) -> float:
        return sum(self.run.cpu_us[name] for name in BROKERS)


def measure(*, subscriptions: int, runs: int, seconds: float, seed: int, compression: str = "none") -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    asked = {3: [str(filter) for filter in filters]}
    done: dict[str, list[_Flood]] = {name: [] for name in SAMPLING}
    with Kafka(tell=progress.print) as kafka:
        for run in range(1, runs + 1):
            for name in list(SAMPLING)[:: 1 if run % 2 else -1]:
                taps = ["--taps", f"kafka://{kafka.address}", "--taps-compression", compression]
                options = [*taps, "--sampling", str(SAMPLING[name])] if SAMPLING[name] else []
                done[name].append(_flood(options, kafka.pid, contents, asked, seconds))
            told = ", ".join(f"{name} {floods[-1].run.rate:,.0f}" for name, floods in done.items())
            progress.print(f"taps: round {run} of {runs}, events/s: {told}")
    bare, again = done.pop(WITHOUT), done.pop(AGAIN)
    around = list(zip(bare, again, strict=True))
    sides = {AGAIN: _side(again, [(one,) for one in bare])}
    sides |= {name: _side(floods, around) for name, floods in done.items()}
    return Result(median(one.run.rate for one in bare), _cpu(bare), sides, subscriptions, compression)


def _flood(
    options: list[str], kafka: int, contents: list[bytes], asked: Mapping[int, list[str]], seconds: float
) -> _Flood:
    with ExitStack() as stack:
        brokers = stack.enter_context(Local(3, LINE, options=options))
        ends = stack.enter_context(around_brokers(brokers, contents, dict(asked)))
        ends.watch("kafka", kafka)
        ends.flood(WARM_UP)
        run = ends.flood(seconds)
        counted = (_counted(brokers, name) if options else 0 for name in ("shipped", "lost"))
        return _Flood(run, *counted)


def _counted(brokers: Local, name: str) -> int:
    return sum(int(broker.metric(f"mercast_tap_rows_{name}_total")) for broker in brokers.brokers.values())


def _side(floods: list[_Flood], bare: Sequence[tuple[_Flood, ...]]) -> Side:
    pairs = list(zip(floods, bare, strict=True))
    ratios = [one.run.rate / mean(other.run.rate for other in others) for one, others in pairs]
    brokers_ratios = [mean(other.brokers_us for other in others) / one.brokers_us for one, others in pairs]
    return Side(
        events_per_second=median(one.run.rate for one in floods),
        ratio=median(ratios),
        ratios=ratios,
        brokers_ratio=median(brokers_ratios),
        brokers_ratios=brokers_ratios,
        cpu_us_per_event=_cpu(floods),
        rows_shipped=sum(one.shipped for one in floods),
        rows_lost=sum(one.lost for one in floods),
    )


def _cpu(floods: list[_Flood]) -> dict[str, float]:
    return {name: median(one.run.cpu_us[name] for one in floods) for name in floods[0].run.cpu_us}
