"""Measures what taps cost: the chain of chain.py with rows of all events and of a tenth, beside the same without taps.

Kafka runs on the same machine, so its own work counts, too.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from mercast.broker.local import Local
from mercast.kafka import Kafka
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, LINE, WARM_UP
from mercast_loadtest.bench.load import Ends, Run, around_brokers, progress

SHARES = (1.0, 0.1)


@dataclass(frozen=True)
class Share:
    sampling: float
    ratio: float
    """Median over the runs of events a second over those without taps."""
    ratios: list[float]
    events_per_second: float
    cpu_ratio: float
    """µs of processor time for each event without taps, over those with them, Kafka's included: what the ratio would be
    on a machine where nothing else runs."""
    cpu_us_per_event: dict[str, float]
    rows_shipped: int
    rows_lost: int


@dataclass(frozen=True)
class Result:
    events_per_second: float
    """Without taps."""
    cpu_us_per_event: dict[str, float]
    shares: list[Share]
    subscriptions: int
    compression: str


def measure(*, subscriptions: int, runs: int, seconds: float, seed: int, compression: str = "none") -> Result:
    filters = quotes.filters(subscriptions, seed)
    contents = quotes.contents(quotes.wanted_events(filters, EVENTS, seed))
    asked = {3: [str(filter) for filter in filters]}
    progress.print("taps: starting Kafka and brokers")
    with ExitStack() as stack:
        kafka = stack.enter_context(Kafka(tell=progress.print))
        chains: dict[float, tuple[Local, Ends]] = {}
        for share in (0.0, *SHARES):
            taps = ["--taps", f"kafka://{kafka.address}", "--taps-compression", compression, "--sampling", str(share)]
            brokers = stack.enter_context(Local(3, LINE, options=taps if share else []))
            ends = stack.enter_context(around_brokers(brokers, contents, asked))
            ends.watch("kafka", kafka.pid)
            ends.flood(WARM_UP)
            chains[share] = brokers, ends
        done: dict[float, list[Run]] = {share: [] for share in chains}
        for run in range(1, runs + 1):
            for share, (_, ends) in chains.items():
                done[share].append(ends.flood(seconds))
            told = ", ".join(f"{share:.0%}: {some[-1].rate:,.0f}" for share, some in done.items())
            progress.print(f"taps: run {run} of {runs}: events/s with rows of {told}")
        shares = [_share(share, done[share], done[0.0], chains[share][0]) for share in SHARES]
    bare = done[0.0]
    return Result(median(run.rate for run in bare), _cpu(bare), shares, subscriptions, compression)


def _share(share: float, runs: list[Run], bare: list[Run], brokers: Local) -> Share:
    ratios = [one.rate / other.rate for one, other in zip(runs, bare, strict=True)]
    cpu, without = _cpu(runs), _cpu(bare)
    shipped, lost = (
        sum(int(broker.metric(f"mercast_tap_rows_{name}_total")) for broker in brokers.brokers.values())
        for name in ("shipped", "lost")
    )
    return Share(
        sampling=share,
        ratio=median(ratios),
        ratios=ratios,
        events_per_second=median(run.rate for run in runs),
        cpu_ratio=sum(without.values()) / sum(cpu.values()),
        cpu_us_per_event=cpu,
        rows_shipped=shipped,
        rows_lost=lost,
    )


def _cpu(runs: list[Run]) -> dict[str, float]:
    return {name: median(run.cpu_us[name] for run in runs) for name in runs[0].cpu_us}
