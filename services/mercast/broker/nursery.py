"""Many brokers on one machine, forked from a process that has loaded what all of them need: each is there in a fraction
of the time, and they share that memory. No asyncio.

The other side is cli/nursery.py. The two talk by packets: (flags, log) and the pid that came of it, one after the
other; and of each broker that has ended, its pid and status. Brokers get SIGTERM when that process ends, and it ends
when this side does.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Lock
from time import monotonic

import orjson

from mercast.processes import end_with_parent

PACKET = 1 << 20
_NEVER = float("inf")
PREPARED = "prepared"
_TURN = 0.05
"""Seconds that one thread listens before others may."""


class Nursery:
    """`with Nursery() as nursery: nursery.start(flags, log)`."""

    def __init__(self, prepared: bool = True) -> None:
        """`prepared`: with the compiled matcher, which takes its time to load."""
        self._prepared = prepared
        self._lock = Lock()
        self._ended: dict[int, int] = {}
        """Statuses of brokers that nobody has asked for yet."""

    def __enter__(self) -> "Nursery":
        self._packets, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "mercast.cli.nursery", *([PREPARED] if self._prepared else [])]
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                process_group=0,  # so that Ctrl-C reaches brokers by way of us, when those who use them have ended
                preexec_fn=end_with_parent,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._packets.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, flags: list[str], log: Path) -> "Child":
        """A broker with these flags that writes to this file."""
        log.touch()  # as is expected of one that has been started
        with self._lock:
            self._packets.send(orjson.dumps([flags, str(log)]))
            while (pid := self._hear(None)) is None:
                pass
        return Child(self, pid)

    def status(self, pid: int, within: float) -> int | None:
        """With which a broker has ended; None if it has not within so many seconds."""
        until = monotonic() + within
        while True:
            left = until - monotonic()
            with self._lock:
                if pid in self._ended:
                    return self._ended.pop(pid)
                try:
                    self._hear(min(max(left, 0.0), _TURN))
                except (BlockingIOError, TimeoutError):
                    if left <= 0:
                        return None

    def _hear(self, timeout: float | None) -> int | None:
        """The next packet: the pid of a broker that was started, if it says that."""
        self._packets.settimeout(timeout)
        said = self._packets.recv(PACKET)
        if not said:
            raise OSError("the process that starts brokers has ended")
        pid, status = orjson.loads(said)
        if status is None:
            return int(pid)
        self._ended[pid] = status
        return None


class Child:
    """A broker that was started, as subprocess.Popen would have it."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._look(_NEVER if timeout is None else timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"broker of pid {self.pid}", timeout or 0.0)
        return status

    def _look(self, within: float) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.status(self.pid, within)
        return self.returncode

    def send_signal(self, one: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, one)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
