"""One strategy's turn: brokers of its own, a steady load, then a ramp to its knee; both by `mercast load`."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from mercast.broker.local import Local
from mercast.processes import end_with_parent

_GROUPED = "merc"
"""The strategy that knows several clusters."""
_TOLD = 2_000


class LoadError(Exception):
    """A load could not be run, with what it said."""


class Setting(NamedTuple):
    """The same for every strategy."""

    brokers: int
    clusters: int
    """Of MERC; others have one."""
    load: Sequence[str]
    """Flags of `mercast load`, for both."""
    steady: Sequence[str]
    ramp: Sequence[str]


class Turn(NamedTuple):
    strategy: str
    brokers: int
    clusters: int
    steady: dict[str, Any]
    ramp: dict[str, Any]
    """Results of the loads."""


@contextmanager
def brokers_of(strategy: str, setting: Setting, taps: str) -> Iterator[Local]:
    options = ["--taps", taps]
    clusters = setting.clusters if strategy == _GROUPED else 1
    each = setting.brokers // clusters
    edges = min(2, each) if clusters > 1 else 0
    with Local(each, clusters=clusters, edges=edges, strategy=strategy, options=options) as mesh:
        yield mesh


def take(strategy: str, mesh: Local, setting: Setting, pause: float, folder: Path, tell: Callable[[str], None]) -> Turn:
    """`pause` is in seconds, between the two loads, so that no window of Spark's has both."""
    clusters = setting.clusters if strategy == _GROUPED else 1
    results = []
    for name, flags in (("steady", setting.steady), ("ramp", setting.ramp)):
        tell(name)
        place = folder / f"{strategy}-{name}.json"
        addresses = ",".join(broker.client for broker in mesh.brokers.values())
        command = ["load", "--brokers", addresses, "--json", str(place), *setting.load, *flags]
        _run(command, partial(_prefixed, tell, name))
        results.append(json.loads(place.read_text()))
        sleep(pause)
    return Turn(strategy, len(mesh.brokers), clusters, *results)


def _prefixed(tell: Callable[[str], None], name: str, line: str) -> None:
    tell(f"{name} {line}")


def _run(command: Sequence[str], tell: Callable[[str], None]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mercast", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C reaches it by way of us
        preexec_fn=end_with_parent,
    )
    said = ""
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said = (said + line)[-_TOLD:]
            tell(" ".join(line.split()))
        if process.wait() not in (0, 1):
            raise LoadError(said.strip() or f"mercast load ended with status {process.returncode}")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
