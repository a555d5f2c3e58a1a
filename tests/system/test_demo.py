"""The demo where there is no Java: brokers, load and page go on without Kafka and Spark. Whatever happens, no process
is left. With all that belongs to it, it runs in tests/streaming/test_demo_whole.py."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from demonstrated import last_lines, running

from mercast.cli.demo.stage import WRITTEN

NO_JAVA = {"PYTHONPATH": str(Path(__file__).parent / "no_java"), "NO_INSTALL": "1"}


@pytest.mark.slow
def test_it_goes_on_without_java(tmp_path):
    with running(tmp_path, 6, "--rate", "60", **NO_JAVA) as demo:
        assert demo.ended() == 0, demo.said
        said, survivors = demo.said, demo.survivors()
    assert survivors == []
    told = (
        "no Kafka, no Spark and no audit: Java 17 or newer is needed and was not found; install it by: ",
        "the page is up: http://127.0.0.1:",
        "3 clusters of 4 brokers are up",
        "is killed (SIGKILL), an edge of cluster-",
        "the page shows it dead",
        "as promised",
    )
    places = [said.index(text) for text in told]
    assert places == sorted(places)
    assert re.search(r"cluster-\d +3 of 4, \d+ dead +\d+ +\d+ ", said), "a row of the table"
    assert said.endswith((tmp_path / "report/report.txt").read_text())
    counts = last_lines(said)
    assert list(counts) == ["delivered", "doubled", "missing"]
    assert int(counts["delivered"].replace(",", "")) > 0
    assert (counts["doubled"], counts["missing"]) == ("0", "0")
    files = {str(one.relative_to(tmp_path / "report")) for one in (tmp_path / "report").rglob("*") if one.is_file()}
    assert {"report.html", "load.html", "load.json"} <= files <= {*WRITTEN}


@pytest.mark.slow
def test_ctrl_c_is_enough_and_the_report_follows(tmp_path):
    with running(tmp_path, 600, "--rate", "60", **NO_JAVA) as demo:
        demo.says("events are published")
        demo.ctrl_c()
        assert demo.ended() == 0, demo.said
        assert demo.survivors() == []
        assert "enough: the load is ended" in demo.said
        assert list(last_lines(demo.said)) == ["delivered", "doubled", "missing"]


def ctrl_c_again_and_again(demo):
    demo.ctrl_c()
    demo.says("enough: the load is ended")
    demo.ctrl_c()
    demo.ctrl_c()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "stop", "status"),
    [
        ("the page is up", lambda demo: demo.process.terminate(), 130),
        ("brokers are up", lambda demo: demo.close_terminal(), None),
        ("events are published", ctrl_c_again_and_again, 130),
        ("events are published", lambda demo: demo.process.kill(), -signal.SIGKILL),
    ],
    ids=["SIGTERM at the start", "the terminal closed", "Ctrl-C again and again", "SIGKILL"],
)
def test_stopped_at_any_time_it_leaves_no_process_behind(tmp_path, when, stop, status):
    with running(tmp_path, 600, "--rate", "60", **NO_JAVA) as demo:
        demo.says(when)
        assert len(demo.survivors()) > 1
        stop(demo)
        assert demo.ended() == status or status is None, demo.said
        assert demo.leaves_nobody(), demo.survivors()


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (("--seconds", "nan"), "--seconds must be at least 5"),
        (("--seconds", "4.9"), "--seconds must be at least 5"),
        (("--rate", "0.5"), "--rate must be at least 1"),
        (("--subscribers", "0"), "--subscribers must be at least 1"),
        (("--port", "65500"), "--port must be 0 to 65000"),
        (("--report", "/dev/null/x"), "Not a directory: '/dev/null/x'"),
    ],
)
def test_what_cannot_be_is_told(bad, says):
    command = [sys.executable, "-m", "mercast", "demo", *bad]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=os.environ | NO_JAVA)
    assert done.returncode == 1
    assert done.stderr.startswith("mercast demo: ")
    assert says in done.stderr
