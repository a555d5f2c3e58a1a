"""Many brokers on one machine, forked from a process that has loaded what all of them need: each is there in a fraction
of the time, and they share that memory. No asyncio.

The two sides talk by packets: (flags, log) and the pid that came of it, one after the other; and of each broker that
has ended, its pid and status. Brokers get SIGTERM when the nursery ends, and it ends when its other side does.
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

_PACKET = 1 << 20
_NEVER = float("inf")
_PREPARED = "prepared"
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
            command = [sys.executable, "-m", "mercast.broker.nursery", *([_PREPARED] if self._prepared else [])]
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), preexec_fn=end_with_parent)
        return self

    def __exit__(self, *_: object) -> None:
        self._packets.close()
        self._process.wait()

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
        said = self._packets.recv(_PACKET)
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


# -- the other side ----------------------------------------------------------------------------------------------------


def _load(prepared: bool) -> None:
    from mercast import garbage
    from mercast.broker import main as _main  # noqa: F401 - all that a broker needs comes with it
    from mercast.cli import broker as _broker  # noqa: F401
    from mercast.matching import prepare

    if prepared:
        prepare()
    garbage.settled()  # so that nobody touches, and thereby copies, what all have in common


def _serve(packets: socket.socket) -> list[str] | None:
    """Fork brokers as they are asked for. In a broker: its flags; in this process: None, when nobody can ask again."""

    def reap(*_: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            _say(packets, pid, os.waitstatus_to_exitcode(status))

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever has the brokers
    signal.signal(signal.SIGCHLD, reap)
    while asked := packets.recv(_PACKET):
        flags, log = orjson.loads(asked)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # that it was started is said before that it ended
        pid = os.fork()
        if not pid:
            _become_broker(packets, log)
            return flags  # type: ignore[no-any-return]
        _say(packets, pid, None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    return None


def _say(packets: socket.socket, pid: int, status: int | None) -> None:
    try:
        packets.send(orjson.dumps([pid, status]))
    except OSError:
        os._exit(0)  # the other side has ended


def _become_broker(packets: socket.socket, log: str) -> None:
    end_with_parent()
    packets.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    os.closerange(3, max(nothing, output) + 1)


def main() -> None:
    _load(_PREPARED in sys.argv)
    flags = _serve(socket.socket(fileno=os.dup(0)))
    if flags is not None:
        from mercast.cli import main as command

        sys.argv = ["mercast", "broker", *flags]
        command()


if __name__ == "__main__":
    main()
