"""Measures one broker with thousands of clients: some publish, each of the others wants its share of the events.

The yardstick is a broker with the same filters and events, but two connections: one publishes, one has all the filters.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from mercast.broker.local import Local
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.chain import EVENTS, WARM_UP
from mercast_loadtest.bench.dialects import publish_frames
from mercast_loadtest.bench.frames import Frames
from mercast_loadtest.bench.idle import SPARE, raised
from mercast_loadtest.bench.load import Ends, around_brokers, progress
from mercast_loadtest.bench.processes import Helper, resident_bytes


class TooFewFiles(Exception):  # noqa: N818 - reads better where it is caught
    """The system lets no process have so many connections."""


@dataclass(frozen=True)
class Result:
    clients: int
    publishers: int
    connect_seconds: float
    connects_per_second: float
    bytes_per_connection: float
    bytes_per_subscriber: float
    """With its subscription."""
    events_per_second: float
    alone_events_per_second: float
    ratio: float
    """Median over the runs of the one over the other."""
    cpu_us_per_event: float
    alone_cpu_us_per_event: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    """At the fixed rate, from when an event was due to be published to when its subscriber has it."""
    alone_p50_ms: float
    alone_p99_ms: float
    rate: float
    content_bytes: int
    published: int
    delivered: int
    """In all runs of the crowd."""
    broker_bytes: int
    """Memory of the broker at the end."""


def measure(*, clients: int, publishers: int, runs: int, seconds: float, rate: float, seed: int) -> Result:
    _check_room(clients)
    subscribers = clients - publishers
    filters = [f"desk = {number}" for number in range(subscribers)]
    rng = random.Random(seed)
    contents = quotes.contents([{"desk": rng.randrange(subscribers), "price": rng.random()} for _ in range(EVENTS)])
    progress.print(f"crowd: starting two brokers; {clients:,} clients will connect to the first")
    room = ["--max-clients", str(clients + SPARE)]
    with Local(1, options=room) as brokers, Local(1) as others, _crowd(brokers, filters, contents, publishers) as crowd:
        joined, ends = crowd
        with around_brokers(others, contents, {1: filters}) as alone:
            ends.flood(WARM_UP)
            alone.flood(WARM_UP)
            ours, theirs = [], []
            for run in range(1, runs + 1):
                theirs.append(alone.flood(seconds))
                ours.append(ends.flood(seconds))
                progress.print(
                    f"crowd: run {run} of {runs}: {ours[-1].rate:,.0f} events/s, "
                    f"from one connection to one {theirs[-1].rate:,.0f}"
                    + (f", {ours[-1].lost:,} LOST" if ours[-1].lost else "")
                )
            steady, alone_steady = [], []
            for run in range(1, runs + 1):
                alone_steady.append(alone.steady(seconds, rate))
                steady.append(ends.steady(seconds, rate))
                progress.print(f"crowd: run {run} of {runs} at {rate:,.0f} events/s: p50 {steady[-1].p50_ms:.2f} ms")
        memory = resident_bytes(brokers[1].pid)
    return Result(
        clients=clients,
        publishers=publishers,
        **joined,
        events_per_second=median(run.rate for run in ours),
        alone_events_per_second=median(run.rate for run in theirs),
        ratio=median(one.rate / other.rate for one, other in zip(ours, theirs, strict=True)),
        cpu_us_per_event=median(run.cpu_us["1"] for run in ours),
        alone_cpu_us_per_event=median(run.cpu_us["1"] for run in theirs),
        p50_ms=median(run.p50_ms for run in steady),
        p95_ms=median(run.p95_ms for run in steady),
        p99_ms=median(run.p99_ms for run in steady),
        alone_p50_ms=median(run.p50_ms for run in alone_steady),
        alone_p99_ms=median(run.p99_ms for run in alone_steady),
        rate=rate,
        content_bytes=quotes.CONTENT_BYTES,
        published=sum(run.published for run in ours + steady),
        delivered=sum(run.delivered for run in ours + steady),
        broker_bytes=memory,
    )


def _check_room(clients: int) -> None:
    needed, allowed = clients + SPARE, raised()
    if allowed < needed:
        raise TooFewFiles(
            f"{clients:,} connections need {needed:,} open files, and this system allows {allowed:,} to a process: "
            f"raise the hard limit (ulimit -Hn), or ask for at most {allowed - SPARE:,} clients"
        )


@contextmanager
def _crowd(
    brokers: Local, filters: list[str], contents: list[bytes], publishers: int
) -> Iterator[tuple[dict[str, float], Ends]]:
    """All connected and settled: what that took, and the two ends of the load."""
    broker = brokers[1]
    with TemporaryDirectory(prefix="mercast-bench-") as folder:
        file = Path(folder) / "frames.npz"
        Frames.of(*publish_frames(contents)).save(file)
        with (
            Helper("crowd_sink", address=broker.client, filters=filters) as sink,
            Helper("crowd_source", address=broker.client, frames=str(file), publishers=publishers) as source,
        ):
            sink.hear()
            source.hear()
            before = resident_bytes(broker.pid)
            readers: dict[str, Any] = sink.ask("connect")
            connected = resident_bytes(broker.pid)
            sink.ask("subscribe")
            subscribed = resident_bytes(broker.pid)
            writers: dict[str, Any] = source.ask("connect")
            seconds = readers["seconds"] + writers["seconds"]
            count = len(filters) + publishers
            progress.print(f"crowd: {count:,} clients are connected; connecting took {seconds:.1f} s")
            joined = {
                "connect_seconds": seconds,
                "connects_per_second": count / seconds,
                "bytes_per_connection": (connected - before) / len(filters),
                "bytes_per_subscriber": (subscribed - before) / len(filters),
            }
            yield joined, Ends(source, sink, {"1": broker.pid})
