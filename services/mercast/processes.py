"""What it takes to start other processes on this machine: free ports for them, and an end when ours ends."""

import ctypes
import errno
import os
import random
import signal
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

_HOST = "127.0.0.1"
_FREE = range(10_000, 32_000)
"""Ports to choose from: below those that systems give to connections going out, which would take one in between."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PARENT = 1
"""Its place in /proc/PID/stat, behind the name."""
_PROC = Path("/proc")
_KB = 1024


def free_addresses(count: int) -> list[str]:
    """Addresses that nobody listens at now, by chance: others may look for some at the same time."""
    drawn = (f"{_HOST}:{port}" for port in random.SystemRandom().sample(_FREE, len(_FREE)))
    return list(islice((address for address in drawn if not in_use(address)), count))


def in_use(address: str) -> bool:
    """Whether somebody listens there now."""
    host, _, port = address.rpartition(":")
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as brokers do
        try:
            one.bind((host, int(port)))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
        return False


def held(addresses: Iterable[str]) -> ExitStack:
    """Keeps them from others until it is closed: for those who choose addresses long before they use them."""
    with ExitStack() as ends:
        for address in addresses:
            host, _, port = address.rpartition(":")
            one = ends.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((host, int(port)))
            one.listen()
        return ends.pop_all()


def end_with_parent() -> None:
    """For `preexec_fn`: the new process gets SIGTERM when the thread that started it ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def adopt_orphans() -> None:
    """Processes that those which we start leave behind become our own, so that `descendants` has them (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(of: int) -> list[int]:
    """Processes that it started, and that these did, and so on; parents come first. None but on Linux."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = [of]
    for one in found:  # which grows
        found += children.get(one, ())
    return found[1:]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _PROC.glob("[0-9]*"):
        try:
            told = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        yield int(entry.name), int(told[_PARENT])


def kill_descendants() -> None:
    """Whatever is left of them, at once, and wait until they are gone."""
    while strike_descendants():
        _reap()


def strike_descendants() -> bool:
    """SIGKILL for each; whether there was any."""
    left = descendants(os.getpid())
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return bool(left)


def _reap() -> None:
    """One child that has ended; with its end, those that it started become ours."""
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        return


def memory_bytes(pid: int) -> int:
    """Of a process; what several share is divided among them. 0 if it has ended, and but on Linux."""
    try:
        told = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * _KB for line in told.splitlines() if line.startswith("Pss:"))
