"""Processes of ours, and those that these have left behind."""

import os
import subprocess
import sys

import pytest

from mercast.processes import PORTS, descendants, free_addresses, held, in_use, memory_bytes, ports

ORPHANS = """
import os, signal, subprocess, sys, time
from mercast.processes import adopt_orphans, descendants, kill_descendants
adopt_orphans()
# A shell that leaves a deaf process behind in a group of its own, and ends.
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {deaf!r}], start_new_session=True)"
with subprocess.Popen([sys.executable, "-c", left], stdout=subprocess.PIPE, text=True) as shell:
    assert shell.stdout.readline() == "deaf\\n"
    shell.wait()
    assert len(descendants(os.getpid())) == 1
    kill_descendants()
    assert descendants(os.getpid()) == []
print("nobody is left")
"""


def test_what_others_leave_behind_is_found_and_ended():
    done = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, timeout=200, check=False)
    assert (done.stdout, done.stderr) == ("nobody is left\n", "")


def test_addresses_can_be_kept_from_others():
    chosen = free_addresses(3)
    with held(chosen):
        assert all(map(in_use, chosen))
    assert not any(map(in_use, chosen))


def test_addresses_are_not_chosen_twice_before_they_are_used():
    chosen = free_addresses(50) + free_addresses(50)
    assert len(set(chosen)) == 100
    assert {int(address.partition(":")[2]) for address in chosen} <= set(ports())


@pytest.mark.parametrize("given", ["10000", "x-y", "20000-10000", "0-10", "65000-65536"])
def test_ports_that_are_none(monkeypatch, given):
    monkeypatch.setenv(PORTS, given)
    with pytest.raises(ValueError, match=f"MERCAST_PORTS={given}: expected the first and the last port"):
        ports()


def test_memory_that_is_shared_is_counted_once():
    big = "import os, sys, time; x = b'x' * 100_000_000; pid = os.fork(); print(pid or '', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", big], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout.readline() + parent.stdout.readline()  # of both
            pids = [parent.pid, *descendants(parent.pid)]
            assert len(pids) == 2
            assert 100_000_000 < sum(map(memory_bytes, pids)) < 180_000_000
        finally:
            for pid in reversed([parent.pid, *descendants(parent.pid)]):
                os.kill(pid, 9)


def test_one_that_has_ended_has_no_memory():
    with subprocess.Popen(["true"]) as ended:
        pass
    assert memory_bytes(ended.pid) == 0
    assert descendants(ended.pid) == []
