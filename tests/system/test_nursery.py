"""Brokers that are forked from one process: how they begin, and that none outlives who has them."""

import signal
import subprocess
from pathlib import Path

import pytest
from live import popen_python, until

from mercast.broker.local import Local, NotReady
from mercast.broker.nursery import Nursery
from mercast.processes import free_addresses

HOLDER = """
import signal
from mercast.broker.local import Local

with Local(2, matcher="scan") as brokers:
    print(*(broker.pid for broker in brokers.brokers.values()), flush=True)
    signal.pause()
"""


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def flags(id):
    client, peer, admin = free_addresses(3)
    listen = ["--listen", client, "--peer-listen", peer, "--admin-listen", admin]
    return ["--id", str(id), "--matcher", "scan", *listen]


def test_brokers_write_their_own_logs_and_end_with_their_own_status(tmp_path):
    logs = [tmp_path / "1.log", tmp_path / "2.log", tmp_path / "3.log"]
    with Nursery(prepared=False) as nursery:
        one, two, wrong = (nursery.start(some, log) for some, log in zip((flags(1), flags(2), []), logs, strict=True))
        until(lambda: all("started" in log.read_text() for log in logs[:2]), "both have started")
        assert wrong.wait() == 1
        assert "id is not given" in logs[2].read_text()
        one.kill()
        assert (one.wait(), one.poll(), one.returncode) == (-signal.SIGKILL,) * 3
        assert two.poll() is None
        two.terminate()
        assert two.wait() == 0
        one.terminate()  # nobody: another process may have its number by now


def test_none_outlives_the_nursery(tmp_path):
    with Nursery(prepared=False) as nursery:
        left = nursery.start(flags(1), tmp_path / "log")
        until(lambda: "started" in (tmp_path / "log").read_text(), "it has started")
    until(lambda: not is_alive(left.pid), "it is gone")


def test_none_outlives_who_was_killed():
    with popen_python("-c", HOLDER, stdout=subprocess.PIPE, text=True) as holder:
        pids = [int(word) for word in holder.stdout.readline().split()]
        assert list(map(is_alive, pids)) == [True, True]
        holder.kill()
        until(lambda: not any(map(is_alive, pids)), "the brokers are gone")


def test_why_a_broker_does_not_start_is_told():
    with (
        pytest.raises(NotReady, match=r"(?s)broker 1 has ended; its log:\n.*--degree"),
        Local(1, options=["--degree", "no"]),
    ):
        pass
