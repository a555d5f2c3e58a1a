"""Measures what a connection costs that does nothing: memory of a broker with many of them, and with some by TLS."""

import resource
import socket
import ssl
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import NamedTuple

from rich.progress import track

from mercast.broker.local import Local
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity
from mercast_loadtest.bench.dialects import Mercast, connect
from mercast_loadtest.bench.load import progress
from mercast_loadtest.bench.processes import cpu_seconds, resident_bytes

SPARE = 256
"""Files that a process has open beside its connections."""

FIRST = 100
"""Connections that bring in what all share, before memory is looked at."""

LEAST = 10 * FIRST

BY_TLS = 2_000
"""Connections by TLS at most: each takes many times as long to make."""

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
    tls_bytes_per_connection: float
    note: str
    """Why there were fewer than wanted, if there were."""


def measure(wanted: int) -> Result:
    allowed = raised() - SPARE
    note = f"the limit of open files (ulimit -n) leaves room for {allowed:,}" if allowed < wanted else ""
    count = min(wanted, allowed) - FIRST
    plain = _connected(count)
    with TemporaryDirectory(prefix="mercast-bench-") as folder:
        options, context = _by_tls(Path(folder))
        tls = _connected(min(count, BY_TLS - FIRST), options, context)
    return Result(
        connections=count + FIRST,
        wanted=wanted,
        bytes_per_connection=plain.bytes_each,
        before_bytes=plain.before,
        after_bytes=plain.after,
        connects_per_second=count / plain.seconds,
        idle_cpu_percent=plain.busy,
        tls_bytes_per_connection=tls.bytes_each,
        note=note,
    )


class _Side(NamedTuple):
    many: int
    before: int
    after: int
    seconds: float
    busy: float

    @property
    def bytes_each(self) -> float:
        return (self.after - self.before) / self.many


def _connected(count: int, options: tuple[str, ...] = (), context: ssl.SSLContext | None = None) -> _Side:
    """So many more than the first."""
    with ExitStack() as ends:
        broker = ends.enter_context(Local(1, options=options))[1]
        for _ in range(FIRST):
            ends.enter_context(_joined(broker.client, context))
        before, began = resident_bytes(broker.pid), monotonic()
        doing = f"idle: connecting{' by TLS' if context else ''}"
        for _ in track(range(count), doing, console=progress, transient=True):
            ends.enter_context(_joined(broker.client, context))
        seconds = monotonic() - began
        return _Side(count, before, resident_bytes(broker.pid), seconds, _busy(broker.pid))


def _by_tls(folder: Path) -> tuple[tuple[str, ...], ssl.SSLContext]:
    """What a broker and its clients need for that."""
    make_ca(folder)
    make_certificate(folder, "broker", Identity("default", "broker"), ["127.0.0.1"], days=1)
    options = ("--tls-cert", str(folder / "broker.pem"), "--tls-key", str(folder / "broker.key"))
    return options, ssl.create_default_context(cafile=folder / "ca.pem")


def raised() -> int:
    """As many open files as this process, and so the broker that it starts, may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _joined(address: str, context: ssl.SSLContext | None) -> socket.socket:
    connection = connect(address)
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
    Mercast().greet(connection, {"name": "idle"})
    return connection


def _busy(pid: int) -> float:
    before = cpu_seconds(pid)
    sleep(_WATCHED)
    return 100 * (cpu_seconds(pid) - before) / _WATCHED
