"""The demo as a user runs it, and whether it has left a process behind: all that it starts bear a mark in their
environment."""

import os
import pty
import re
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

_MARK = "MERCAST_TEST_MARK"
_POLL, _PATIENCE = 0.1, 200.0
_ROOT = Path(__file__).parents[1]
_CTRL_C = b"\x03"
_WIDE = {"TERM": "xterm", "COLUMNS": "150", "LINES": "50"}


class Demo:
    """A run that goes on, and what it has said so far."""

    def __init__(self, command, environment):
        """On a terminal of its own."""
        self._mark = uuid.uuid4().hex
        self._terminal, its = pty.openpty()
        self._said = b""
        self.process = subprocess.Popen(
            command, env=environment | {_MARK: self._mark}, cwd=_ROOT, preexec_fn=lambda: os.login_tty(its)
        )
        os.close(its)
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self):
        with suppress(OSError):  # nobody has it open at the other end
            while part := os.read(self._terminal, 65536):
                self._said += part

    @property
    def said(self):
        """Without what moves the cursor."""
        return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", self._said.decode(errors="replace")).replace("\r\n", "\n")

    def says(self, what):
        """Waits for it."""
        until = monotonic() + _PATIENCE
        while what not in self.said:
            assert self.process.poll() is None, self.said
            assert monotonic() < until, self.said
            sleep(_POLL)

    def ctrl_c(self):
        os.write(self._terminal, _CTRL_C)

    def close_terminal(self):
        os.close(self._terminal)

    def ended(self, within=_PATIENCE):
        """Its exit status, when all that it said was read."""
        status = self.process.wait(within)
        self._reading.join(_PATIENCE)
        return status

    def survivors(self):
        """Processes that it has started and that have not ended."""
        found, mark = [], f"{_MARK}={self._mark}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ")[:200]))
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
    demo = Demo(command, os.environ | _WIDE | environment)
    try:
        yield demo
    finally:
        for pid, _ in demo.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        demo.process.wait()


def last_lines(text):
    """What a report ends with."""
    return dict(re.findall(r"^(\w+): +([\d,]+)", "\n".join(text.splitlines()[-3:]), re.MULTILINE))
