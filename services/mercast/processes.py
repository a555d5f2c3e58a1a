"""What it takes to start other processes on this machine: free ports for them, and an end when ours ends."""

import ctypes
import errno
import random
import signal
import socket
import sys
from itertools import islice

_HOST = "127.0.0.1"
_FREE = range(10_000, 32_000)
"""Ports to choose from: below those that systems give to connections going out, which would take one in between."""

_PR_SET_PDEATHSIG = 1


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


def end_with_parent() -> None:
    """For `preexec_fn`: the new process gets SIGTERM when the thread that started it ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
