"""A source and a sink around what is measured: brokers, bare forwarders, nats-server; one run after another."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import numpy as np
from rich.console import Console

from mercast.broker.local import Local
from mercast.overlay.split import ENTRY
from mercast_loadtest.bench import bare
from mercast_loadtest.bench.dialects import Bare, Nats, publish_frames
from mercast_loadtest.bench.frames import Frames
from mercast_loadtest.bench.processes import Helper, cpu_seconds

WINDOW = 4_096
"""Events on their way at most, unless a bench says otherwise: enough to keep all busy at once, and not so many that one
broker waits while another is at a large batch."""

progress = Console(stderr=True, highlight=False)

_POLL = 0.02
_PATIENCE = 3.0
"""Seconds without an arrival after which what is missing is lost."""


@dataclass(frozen=True)
class Run:
    published: int
    expected: int
    delivered: int
    seconds: float
    """From the first publish to the last arrival."""
    cpu_us: dict[str, float]
    """µs of processor time for each event published, by process."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    """From when an event was due to be published to its arrival; nought where nobody looked."""

    @property
    def rate(self) -> float:
        return self.delivered / self.seconds

    @property
    def lost(self) -> int:
        return self.expected - self.delivered


class Ends:
    def __init__(self, source: Helper, sink: Helper, watched: dict[str, int], copies: Sequence[int] = (1,)) -> None:
        self._source, self._sink = source, sink
        self._watched = {"source": source.pid} | watched | {"sink": sink.pid}
        self._copies = np.array(copies)
        """How often each of the frames is to arrive."""

    def watch(self, name: str, pid: int) -> None:
        """Count the processor time of this process, too."""
        self._watched[name] = pid

    def flood(self, seconds: float, window: int = WINDOW) -> Run:
        """As fast as it goes."""
        return self._run("flood", False, seconds=seconds, window=window)

    def steady(self, seconds: float, rate: float) -> Run:
        """At this many events a second."""
        return self._run("steady", True, seconds=seconds, rate=rate)

    def _run(self, command: str, timing: bool, **how: Any) -> Run:
        self._sink.ask("reset", timing=timing)
        before = {name: cpu_seconds(pid) for name, pid in self._watched.items()}
        sent = self._source.ask(command, **how)
        published = sent["published"]
        numbers = np.arange(sent["first"], sent["first"] + published)
        expected = int(self._copies[numbers % len(self._copies)].sum())
        arrived = self._wait_for(expected)
        cpu = {name: 1e6 * (cpu_seconds(pid) - before[name]) / published for name, pid in self._watched.items()}
        late = {quantile: arrived[quantile] for quantile in ("p50_ms", "p95_ms", "p99_ms")}
        return Run(published, expected, arrived["arrived"], arrived["last"] - sent["began"], cpu, **late)

    def _wait_for(self, expected: int) -> dict[str, Any]:
        """Until all have arrived, or no more do."""
        arrived, until = self._sink.ask("report"), monotonic() + _PATIENCE
        while arrived["arrived"] < expected and monotonic() < until:
            sleep(_POLL)
            before, arrived = arrived["arrived"], self._sink.ask("report")
            if arrived["arrived"] > before:
                until = monotonic() + _PATIENCE
        return arrived  # type: ignore[no-any-return]


@contextmanager
def around_brokers(
    brokers: Local,
    contents: list[bytes],
    subscribed: dict[int, list[str]],
    copies: Sequence[int] = (1,),
) -> Iterator[Ends]:
    """Published at the first of the brokers; `subscribed`: filters by the broker where one client asks for them.

    Publishes have receipts, and where each event arrives once, the sink tells how many have: so nothing grows without
    bound.
    """
    connections = [{"address": brokers[at].client, "filters": filters} for at, filters in subscribed.items()]
    watched = {str(broker.id): broker.pid for broker in brokers.brokers.values()}
    with Helper("sink", dialect="mercast", connections=connections) as sink:
        counters, _ = sink.hear()
        frames = Frames.of(*publish_frames(contents))
        heard_from = counters if len(connections) == 1 else None
        with _source("mercast", frames, brokers[1].client, heard_from) as source:
            yield Ends(source, sink, watched, copies)


@contextmanager
def around_forwarders(contents: list[bytes], lists: Sequence[bytes], length: int = 3) -> Iterator[Ends]:
    """A chain of bare forwarders; event by event, the next of the lists."""
    frames = Frames.of([_bare(lists[at % len(lists)], one) for at, one in enumerate(contents)], None)
    with Helper("sink", dialect="bare") as sink:
        counters, events = sink.hear()
        with (
            bare.chain(sorted(set(lists)), events, length) as (address, forwarders),
            _source("bare", frames, address, counters) as source,
        ):
            watched = {str(number): one.pid for number, one in enumerate(forwarders, 1)}
            yield Ends(source, sink, watched)


def _bare(destinations: bytes, content: bytes) -> bytes:
    """A longer list takes a few bytes of the content's place: frames have one length."""
    return Bare.frame(destinations, content[len(destinations) - ENTRY :])


@contextmanager
def around_nats(contents: list[bytes], address: str, pid: int) -> Iterator[Ends]:
    frames = Frames.of([Nats.frame(content) for content in contents], None, after=2)
    with Helper("sink", dialect="nats", connections=[{"address": address}]) as sink:
        counters, _ = sink.hear()
        with _source("nats", frames, address, counters) as source:
            yield Ends(source, sink, {"nats": pid})


@contextmanager
def _source(dialect: str, frames: Frames, address: str, sink: str | None) -> Iterator[Helper]:
    with TemporaryDirectory(prefix="mercast-bench-") as folder:
        file = Path(folder) / "frames.npz"
        frames.save(file)
        with Helper("source", dialect=dialect, frames=str(file), address=address, sink=sink) as source:
            source.hear()
            yield source
