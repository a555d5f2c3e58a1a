"""Measures the matching index: µs per event beside the yardstick, build, changes, memory.

Index and yardstick take turns on the same events, a batch each, so that a busy machine slows both alike.
"""

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from mercast.content import Filter, Value
from mercast.matching import Index
from mercast.workloads import Workload
from mercast_loadtest.bench.yardstick import Yardstick

CHANGES = 30_000
"""Filters added and removed one at a time; past a quarter of the index, it is laid anew once on the way."""

_console = Console(stderr=True)


@dataclass(frozen=True)
class Spread:
    """µs per event."""

    mean: float
    p50: float
    p99: float

    @classmethod
    def of(cls, microseconds: list[float]) -> "Spread":
        p50, p99 = np.percentile(microseconds, [50, 99]).tolist()
        return cls(float(np.mean(microseconds)), p50, p99)


@dataclass(frozen=True)
class Comparison:
    us_per_event: Spread
    candidates_per_event: float
    ratio: float
    """The index's mean over the yardstick's."""


@dataclass(frozen=True)
class Result:
    us_per_event: Spread
    """In batches, as brokers match; the spread is over batches."""
    one_at_a_time: Spread
    matches_per_event: float
    build_seconds: float
    add_us: float
    """Mean over many changes, laying anew included; with the match that makes it effective, less a match."""
    remove_us: float
    longest_change_ms: float
    memory_bytes: int
    """Growth of the process while the index was built (resident memory); its arrays' size where that is unknown."""
    yardstick: Comparison


def measure(
    workload: Workload, *, filters: int, events: int, batch: int, seed: int, compiled: bool | None = None
) -> Result:
    drawn = [workload.event(random.Random(f"{seed} event {number}")) for number in range(events)]
    index, build_seconds, memory = _built(workload, filters, seed, drawn[0], compiled)
    yardstick = Yardstick(_filters(workload, filters, seed, "yardstick"), filters)

    batches = [drawn[start : start + batch] for start in range(0, events, batch)]
    ours, theirs, matches, candidates = [], [], 0, 0
    index.match_many(batches[0])
    for some in track(batches, "matching", console=_console, transient=True):
        looked_up = [yardstick.cells(event) for event in some]
        seconds, found = _timed(index.match_many, some)
        ours.append(1e6 * seconds / len(some))
        seconds, possible = _timed(list, map(yardstick.match, looked_up))
        theirs.append(1e6 * seconds / len(some))
        matches += sum(map(len, found))
        candidates += sum(map(len, possible))
    single = [1e6 * _timed(index.match, event)[0] for event in drawn]
    mean_us, yardstick_us = Spread.of(ours), Spread.of(theirs)
    add_us, remove_us, longest = _changes(index, workload, filters, seed, drawn[0])
    return Result(
        us_per_event=mean_us,
        one_at_a_time=Spread.of(single),
        matches_per_event=matches / events,
        build_seconds=build_seconds,
        add_us=add_us,
        remove_us=remove_us,
        longest_change_ms=longest,
        memory_bytes=memory,
        yardstick=Comparison(yardstick_us, candidates / events, mean_us.mean / yardstick_us.mean),
    )


def _built(
    workload: Workload, filters: int, seed: int, event: dict[str, Value], compiled: bool | None
) -> tuple[Index, float, int]:
    first = Index(compiled=compiled)  # loads the compiled loop, which is no part of an index's cost
    first.add(0, Filter())
    first.match(event)
    gc.collect()
    before = _resident()
    index = Index(compiled=compiled)
    seconds = 0.0
    for number, filter in enumerate(_filters(workload, filters, seed, "index")):
        started = perf_counter()
        index.add(number, filter)
        seconds += perf_counter() - started
    seconds += _timed(index.match, event)[0]
    gc.collect()
    after = _resident()
    return index, seconds, after - before if after is not None and before is not None else index.nbytes


def _changes(
    index: Index, workload: Workload, filters: int, seed: int, event: dict[str, Value]
) -> tuple[float, float, float]:
    rng = random.Random(f"{seed} change")
    count = min(CHANGES, filters // 4 + 300)
    matching = min(_timed(index.match, event)[0] for _ in range(20))
    adding, removing = [], []
    for number in track(range(filters, filters + count), "changing", console=_console, transient=True):
        filter = workload.filter(rng)
        added, _ = _timed(index.add, number, filter)
        laid, _ = _timed(index.match, event)
        adding.append(added + laid - matching)
        removing.append(_timed(index.remove, number)[0])
    return 1e6 * float(np.mean(adding)), 1e6 * float(np.mean(removing)), 1e3 * max(max(adding), max(removing))


def _filters(workload: Workload, count: int, seed: int, use: str) -> Iterator[Filter]:
    """The same filters for either use, drawn anew so that none is kept."""
    rng = random.Random(f"{seed} filters")
    for _ in track(range(count), f"building the {use}", console=_console, transient=True):
        yield workload.filter(rng)


def _timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    started = perf_counter()
    done = work(*arguments)
    return perf_counter() - started, done


def _resident() -> int | None:
    """Resident memory of this process, where the system tells."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    import resource

    return int(fields[1]) * resource.getpagesize()
