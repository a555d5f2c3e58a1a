"""The demo as a user runs it, and whether it has left a process behind: all that it starts bear a mark in their
environment."""

import os
import re
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from mercast.processes import end_with_parent

_MARK = "MERCAST_TEST_MARK"
_POLL, _PATIENCE = 0.1, 60.0


class Demo:
    """A run of it that goes on, with what it has said so far."""

    def __init__(self, command, folder, environment):
        self.mark, self._out = uuid.uuid4().hex, folder / "said"
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment | {_MARK: self.mark},
                cwd=Path(__file__).parents[1], preexec_fn=end_with_parent, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self):
        return self._out.read_text()

    def says(self, what):
        """Waits for it."""
        until = monotonic() + _PATIENCE
        while what not in self.said:
            assert self.process.poll() is None, self.said
            assert monotonic() < until, self.said
            sleep(_POLL)

    def survivors(self):
        """Processes that it has started and that have not ended."""
        found, mark = [], f"{_MARK}={self.mark}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ")[:200]))
            except OSError:  # it has ended
                continue
        return found

    def leaves_nobody(self, within=_PATIENCE):
        until = monotonic() + within
        while self.survivors() and monotonic() < until:
            sleep(_POLL)
        return not self.survivors()


@contextmanager
def running(folder, seconds, *flags, make=False, **environment):
    """In any case, nothing of it is left afterwards."""
    flags = ["--port", "0", "--report", str(folder / "report"), *flags]
    if make:
        command = ["make", "-s", "demo", f"SECONDS={seconds}", f"FLAGS={' '.join(flags)}"]
    else:
        command = [sys.executable, "-m", "mercast", "demo", "--seconds", str(seconds), *flags]
    demo = Demo(command, folder, os.environ | environment)
    try:
        yield demo
    finally:
        for pid, _ in demo.survivors():
            os.kill(pid, signal.SIGKILL)
        demo.process.wait()


def last_lines(text):
    """What a report ends with."""
    return dict(re.findall(r"^(\w+): +([\d,]+)", "\n".join(text.splitlines()[-3:]), re.MULTILINE))
