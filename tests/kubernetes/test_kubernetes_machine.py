"""The machine within the machine leaves nothing, however it ends."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from machine import Machine

_MAKER = """
import sys, time
sys.path[:0] = [{here!r}]
from pathlib import Path
from machine import Machine

made = Machine(Path({folder!r}), Path("/usr/bin"))
made.start()
made.cgroup({mark!r})
made.run("mkdir", "/run/there")
made.run("mount", "-t", "tmpfs", {mark!r}, "/run/there")
made.run("ip", "link", "add", "there", "type", "veth", "peer", "name", "beyond")
made.begin("sleeper", "sleep", "1000", MARK={mark!r})
print("made", flush=True)
time.sleep(1000)
"""


def _alive(mark):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={mark}".encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:  # it has ended
            continue
    return found


def _cgroups(mark):
    return list(Path("/sys/fs/cgroup").glob(f"**/{mark}"))


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_nothing_is_left(tmp_path, how):
    mark, folder = uuid.uuid4().hex, tmp_path / "machine"
    script = _MAKER.format(here=str(Path(__file__).parent), folder=str(folder), mark=mark)
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert maker.stdout.readline() == b"made\n"
        assert _alive(mark)
        assert _cgroups(mark)
        assert mark not in Path("/proc/mounts").read_text()
        assert not Path("/sys/class/net/there").exists()
    finally:
        maker.send_signal(signal.Signals[how])
        maker.wait()
        maker.stdout.close()
    until = time.monotonic() + 30
    while _alive(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _alive(mark)
    # What no namespace takes along, the next one does.
    again = Machine(folder, Path("/usr/bin"))
    again.start()
    again.stop()
    assert not _cgroups(mark)
    assert not folder.exists()
