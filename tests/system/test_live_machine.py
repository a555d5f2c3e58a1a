"""Trouble with the machine of one broker, under load: no room on the disk, a clock that jumps, no file descriptors."""

import os
import resource
import socket
import struct
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import time

import pytest
from live import PATIENCE, Apart, Mesh, ask, mercast, until
from under_load import OPTIONS, Load

from mercast import blocking
from mercast.client.errors import MercastError
from mercast.wire.hello import VERSIONS, hello

LINE = [(1, 2), (2, 3)]
"""The one in the middle has the trouble: it has clients of its own, and passes on the events of the others."""

DAY = 86_400.0
CROWD = 40


def limited(broker, what, to):
    """For a process that runs already; what it was."""
    soft, hard = resource.prlimit(broker.pid, what)
    resource.prlimit(broker.pid, what, (to, hard))
    return soft


@pytest.mark.slow
def test_a_full_disk_under_load(tmp_path):
    file = tmp_path / "record.jsonl"
    recording = {"each": lambda id: ["--record", file] if id == 2 else [], "may_log": "recording has ended"}
    with Mesh(3, LINE, options=OPTIONS, **recording) as mesh, Load(mesh, LINE) as load:
        load.fault()
        limited(mesh[2], resource.RLIMIT_FSIZE, file.stat().st_size + 10_000)
        until(lambda: "recording has ended" in mesh[2].tail(), mesh[2].tail)
        assert "File too large" in mesh[2].tail()
        load.churn()
        load.judge()
        assert mesh[2].log.read_text().count("recording has ended") == 1
    assert "same effects" in mercast("lab", "replay", file).stdout


@pytest.mark.slow
def test_a_clock_jumps(tmp_path, monkeypatch):
    """A day ahead, and a day behind: nobody is lost sight of, nothing waits for the next day."""
    clock = tmp_path / "2"
    clock.write_bytes(struct.pack("d", 0.0))
    monkeypatch.setenv("MERCAST_TEST_CLOCKS", str(tmp_path))
    paths = [str(Path(__file__).parent / "clock"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    with Apart(3, LINE, options=OPTIONS) as mesh, Load(mesh, LINE) as load:
        load.fault()
        for jump in (DAY, -DAY):
            with clock.open("r+b") as file:
                file.write(struct.pack("d", jump))
            with blocking.connect(mesh[2].client) as client, blocking.connect(mesh[3].client) as other:
                at_home, away = client.subscribe("other"), other.subscribe("other")
                client.publish("other")
                for stream in (at_home, away):
                    assert abs(stream.get(PATIENCE).time / 1e9 - time() - jump) < PATIENCE
                other.publish("other")
                for stream in (at_home, away):
                    assert abs(stream.get(PATIENCE).time / 1e9 - time()) < PATIENCE
            load.flows()
            assert 0 <= ask(mesh[2], "overlay")["broker"]["uptime_seconds"] < DAY / 2
        load.churn()
        load.judge()


@pytest.mark.slow
def test_file_descriptors_are_exhausted():
    with Mesh(3, LINE, options=OPTIONS) as mesh, Load(mesh, LINE) as load:
        broker = mesh[2]
        load.fault()
        used = max(map(int, os.listdir(f"/proc/{broker.pid}/fd")))
        before = limited(broker, resource.RLIMIT_NOFILE, used + 5)
        with idle(broker.client):
            until(lambda: "no file descriptors left" in broker.tail(), broker.tail)
            with pytest.raises(MercastError):
                blocking.connect(broker.client, timeout=5)
            load.churn()
        until(lambda: "there are file descriptors again" in broker.tail(), broker.tail)
        blocking.connect(broker.client).close()
        load.judge()
        assert broker.log.read_text().count("no file descriptors left") == 1
        limited(broker, resource.RLIMIT_NOFILE, before)


@contextmanager
def idle(address):
    """Many who say who they are, and no more."""
    host, port = address.split(":")
    with ExitStack() as held:
        for _ in range(CROWD):
            held.enter_context(socket.create_connection((host, int(port)), PATIENCE)).sendall(
                hello(mercast=VERSIONS, role="client")
            )
        yield
