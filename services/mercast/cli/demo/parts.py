"""The programs of the demo beside its brokers: commands of mercast as child processes, each with a log.

Each is in a process group of its own: Ctrl-C in a terminal reaches the demo alone, which ends them in their order.
"""

import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

from mercast.processes import end_with_parent

_POLL = 0.05
_TOLD = 2_000
"""Characters of a log in an error."""
_STOP_WITHIN = 20.0


class PartError(Exception):
    """A part of the demo did not do what it is there for; its log says why."""


class Part:
    """`mercast NAME ARGUMENTS`; what it says is in FOLDER/NAME.out, what it complains of in FOLDER/NAME.log."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.name = name
        self.out, self.log = folder / f"{name}.out", folder / f"{name}.log"
        command = [sys.executable, "-m", "mercast", name, *arguments]
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, process_group=0, preexec_fn=end_with_parent
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def check(self) -> None:
        """That it runs."""
        if self.status is not None:
            raise PartError(f"mercast {self.name} has ended with status {self.status}; its log:\n{self.tail()}")

    def wait_for(self, word: str, within: float) -> str:
        """What stands behind the word on its line, once it is said."""
        until = monotonic() + within
        while (told := self.told(word)) is None:
            self.check()
            if monotonic() > until:
                raise PartError(f"mercast {self.name} is not ready after {within:.0f} s; its log:\n{self.tail()}")
            sleep(_POLL)
        return told

    def told(self, word: str) -> str | None:
        lines = self.out.read_text(errors="replace").split("\n")[:-1]  # the last one may not be whole
        return next((line.removeprefix(word).split()[0] for line in lines if line.startswith(word)), None)

    def signal(self, number: signal.Signals) -> None:
        if self.status is None:
            self._process.send_signal(number)

    def wait(self, within: float) -> int:
        """Its status; PartError if it goes on for too long."""
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise PartError(f"mercast {self.name} goes on after {within:.0f} s; its log:\n{self.tail()}") from None

    def stop(self) -> None:
        """By SIGTERM; by SIGKILL if that does not help."""
        if self.status is None:
            self._process.terminate()
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        return (self.log.read_text(errors="replace") or self.out.read_text(errors="replace"))[-_TOLD:]
