"""The demo, as a user runs it."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

DEMO = (sys.executable, "-m", "mercast", "demo")


def demo(*arguments):
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.slow
def test_a_broker_dies_and_comes_back_and_nothing_else_is_lost():
    done = demo("--seconds", "6")
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert done.stderr == ""
    told = ("broker 5 is killed", "all subscribers are settled at other brokers", "broker 5 is back")
    places = [said.index(text) for text in (*told, "published:")]
    assert places == sorted(places)
    assert re.search(r"published [\d,]+/s, delivered [\d,]+/s, latency p50, p95, p99 [\d., ]+ ms; 5 of 5", said)
    counts = {name: int(count.replace(",", "")) for name, count in re.findall(r"^(\w+): +([\d,]+)", said, re.MULTILINE)}
    assert counts["published"] > 5_000
    assert counts["due"] == counts["delivered"] > 5_000
    assert counts["missing"] == counts["doubled"] == counts["undue"] == 0
    assert said.endswith("as promised\n")


def test_on_a_terminal_it_is_drawn_again_and_again():
    ours, its = pty.openpty()
    command = [*DEMO, "--brokers", "2", "--seconds", "2", "--subscribers", "3", "--rate", "200"]
    wide = os.environ | {"TERM": "xterm", "COLUMNS": "140", "LINES": "50"}
    with subprocess.Popen(command, stdout=its, stderr=its, env=wide, start_new_session=True) as running:
        os.close(its)
        said = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", all_of(ours))
    assert running.returncode == 0, said
    assert said.count("linked to") > 3
    for state in ("up", "killed", "starting"):
        assert re.search(rf"^ 2 +{state} ", said, re.MULTILINE), state
    assert re.search(r"^ 1 +up +\d+ % +\d+ MiB +1 +\d+ +2\s+$", said, re.MULTILINE), "a row of the table"
    assert said.endswith("as promised\r\n")


def all_of(terminal):
    """Until nobody has it open at the other end."""
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def test_one_broker_alone_is_left_alive():
    done = demo("--brokers", "1", "--seconds", "2", "--subscribers", "3", "--rate", "200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed" not in done.stdout
    assert done.stdout.endswith("as promised\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_leaves_no_process_behind(number):
    command = [*DEMO, "--brokers", "2", "--seconds", "100", "--subscribers", "3"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True) as running:
        try:
            assert "2 brokers" in running.stdout.readline()
            assert "2 of 2 brokers up" in running.stdout.readline()
            running.send_signal(number)
            said, errors = running.communicate(timeout=30)
            assert said.endswith("stopped\n")
            assert (running.returncode, errors) == (130, "")
            with pytest.raises(ProcessLookupError):
                os.killpg(running.pid, 0)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (("--seconds", "nan"), "seconds must be at least 2"),
        (("--seconds", "1.9"), "seconds must be at least 2"),
        (("--brokers", "0"), "brokers must be at least 1"),
        (("--subscribers", "0"), "subscribers must be at least 1"),
        (("--rate", "nan"), "rate must be at least 1"),
        (("--rate", "0.5"), "rate must be at least 1"),
        (("--strategy", "magic"), "there is no strategy 'magic'; there are ddbr, merc, fbr"),
    ],
)
def test_what_cannot_be_shown_is_told(bad, says):
    done = demo(*bad)
    assert done.returncode == 1
    assert done.stderr.startswith(f"mercast demo: {says}")
