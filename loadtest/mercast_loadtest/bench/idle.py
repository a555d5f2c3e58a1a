"""Measures what a connection costs that does nothing: memory of a broker with many of them."""

import resource
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic, sleep

from rich.progress import track

from mercast.broker.local import Local
from mercast_loadtest.bench.dialects import Mercast, connect
from mercast_loadtest.bench.load import progress
from mercast_loadtest.bench.processes import cpu_seconds, resident_bytes

SPARE = 256
"""Files that a process has open beside its connections."""

FIRST = 100
"""Connections that bring in what all share, before memory is looked at."""

LEAST = 10 * FIRST

_WATCHED = 3.0
"""Seconds of looking at what all do while they do nothing."""


@dataclass(frozen=True)
class Result:
    connections: int
    wanted: int
    bytes_per_connection: float
    before_bytes: int
    after_bytes: int
    connects_per_second: float
    idle_cpu_percent: float
    """Of one processor, with all connected."""
    note: str
    """Why there were fewer than wanted, if there were."""


def measure(wanted: int) -> Result:
    allowed = raised() - SPARE
    note = f"the limit of open files (ulimit -n) leaves room for {allowed:,}" if allowed < wanted else ""
    with ExitStack() as ends:
        broker = ends.enter_context(Local(1))[1]
        for _ in range(FIRST):
            ends.enter_context(_joined(broker.client))
        before = resident_bytes(broker.pid)
        count, began = min(wanted, allowed) - FIRST, monotonic()
        for _ in track(range(count), "idle: connecting", console=progress, transient=True):
            ends.enter_context(_joined(broker.client))
        seconds = monotonic() - began
        after = resident_bytes(broker.pid)
        busy = _busy(broker.pid)
    return Result(
        connections=count + FIRST,
        wanted=wanted,
        bytes_per_connection=(after - before) / count,
        before_bytes=before,
        after_bytes=after,
        connects_per_second=count / seconds,
        idle_cpu_percent=busy,
        note=note,
    )


def raised() -> int:
    """As many open files as this process, and so the broker that it starts, may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _joined(address: str) -> socket.socket:
    connection = connect(address)
    Mercast().greet(connection, {"name": "idle"})
    return connection


def _busy(pid: int) -> float:
    before = cpu_seconds(pid)
    sleep(_WATCHED)
    return 100 * (cpu_seconds(pid) - before) / _WATCHED
