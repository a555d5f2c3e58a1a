"""Helper processes of a bench: each is a module of this package, told what to do by lines of JSON.

They end with the bench, also if that is killed, or when their time is up.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from mercast.processes import end_with_parent

AT_MOST = 900
"""Seconds that a helper may live."""

_CPU_CLOCK = 2
"""The kind of a process's clock that counts what it ran (CPUCLOCK_SCHED)."""


class Helper:
    """A process; `ask` gives it a command and waits for what came of it."""

    def __init__(self, module: str, **told: Any) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"mercast_loadtest.bench.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=end_with_parent,
        )
        self._say(told)  # too much for a command line, at times

    def __enter__(self) -> "Helper":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, **more: Any) -> Any:
        self._say({"command": command} | more)
        return self.hear()

    def _say(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """What it says next; its first word is that it is ready."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the bench's {self._name} has ended with status {self._process.wait()}")
        return json.loads(line)


# -- in helpers --------------------------------------------------------------------------------------------------------


def begun() -> dict[str, Any]:
    """What it was told at its start."""
    signal.alarm(AT_MOST)
    return next(commands())


def commands() -> Iterator[dict[str, Any]]:
    """Read without a buffer, so that `select` sees what waits."""
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
        while line := stdin.readline():
            yield json.loads(line)


def say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


# -- about processes ---------------------------------------------------------------------------------------------------


def cpu_seconds(pid: int) -> float:
    """What a process has run so far, to the nanosecond."""
    if sys.platform != "linux":
        raise OSError("the processor time of another process is known on Linux only")
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
