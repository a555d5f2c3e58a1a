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
from functools import cache
from itertools import cycle, islice
from pathlib import Path

PORTS = "MERCAST_PORTS"
"""Names the ports to choose from, as `10000-11999`: those who start brokers side by side give each their own."""

_HOST = "127.0.0.1"
_FIRST, _LAST, _HIGHEST = 10_000, 31_999, 65_535
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PARENT = 1
"""Its place in /proc/PID/stat, behind the name."""
_PROC = Path("/proc")
_KB = 1024


def free_addresses(count: int) -> list[str]:
    """Addresses that nobody listens at now, by chance: others may look for some at the same time."""
    tried = islice(_drawn(), len(ports()))
    return list(islice((address for address in tried if not in_use(address)), count))


def ports() -> range:
    """To choose from: below those that the system gives to connections going out, which would take one in between."""
    given = os.environ.get(PORTS)
    if given:
        first, _, last = given.partition("-")
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= _HIGHEST):
            raise ValueError(f"{PORTS}={given}: expected the first and the last port, as 10000-11999")
        return range(int(first), int(last) + 1)
    outgoing = int(_OUTGOING.read_text().split()[0]) if _OUTGOING.exists() else _LAST
    return range(_FIRST, min(_LAST, outgoing - 1) + 1) if outgoing > _FIRST else range(_FIRST, _LAST + 1)


@cache
def _drawn() -> Iterator[str]:
    """Without end, and each again only after all the others: what was chosen may not be in use yet."""
    shuffled = list(ports())
    random.SystemRandom().shuffle(shuffled)
    return (f"{_HOST}:{port}" for port in cycle(shuffled))


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
