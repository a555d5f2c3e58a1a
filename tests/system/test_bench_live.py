"""The live benches, as a user runs them, for an instant each."""

import json
import subprocess
import sys

import pytest

SHORT = ("--runs", "1", "--seconds", "0.3")


def bench(tmp_path, *arguments):
    file = tmp_path / "result.json"
    command = [sys.executable, "-m", "mercast", "bench", *arguments, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text()), done.stdout


@pytest.mark.slow
def test_chain(tmp_path):
    result, said = bench(tmp_path, "chain", *SHORT, "--subscriptions", "50", "--rate", "1000")
    assert result["delivered"] == result["published"] > 0
    assert result["ratio"] == pytest.approx(result["events_per_second"] / result["bare_events_per_second"])
    assert 0 < result["p50_ms"] <= result["p95_ms"] <= result["p99_ms"]
    assert "ratio" in said


@pytest.mark.slow
def test_forward(tmp_path):
    result, _ = bench(tmp_path, "forward", *SHORT, "--rate", "1000")
    for case in (result["same"], result["varied"]):
        assert case["lost"] == 0 < case["expected"]
        assert case["ratio"] == pytest.approx(case["cpu_us_per_event"] / case["bare_cpu_us_per_event"])
    assert result["varied"]["expected"] > 1.5 * result["same"]["expected"]


@pytest.mark.slow
def test_hop(tmp_path):
    result, said = bench(tmp_path, "hop", *SHORT, "--subscriptions", "50")
    assert result["delivered"] == result["published"] > 0
    assert (result["nats_events_per_second"] is None) == (result["note"] != "")
    assert "nats-server" in said
    assert 0 < result["parts_us"]["of it matching"] < result["parts_us"]["the core"]


@pytest.mark.slow
def test_line(tmp_path):
    result, _ = bench(tmp_path, "line", "--brokers", "4", "--subscriptions", "30", "--seconds", "0.3")
    for compared in (result["scan"], result["index"]):
        sides = [compared[strategy] for strategy in ("fbr", "ddbr", "merc")]
        assert [side["lost"] for side in sides] == [0, 0, 0]
        assert [side["matches_per_event"] for side in sides] == [[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1]]
        assert len(compared["ddbr"]["cpu_us_per_event"]) == 4


@pytest.mark.slow
def test_idle(tmp_path):
    result, _ = bench(tmp_path, "idle", "--connections", "1000")
    assert result["connections"] == 1000
    assert 0 < result["bytes_per_connection"] < result["tls_bytes_per_connection"] < 200_000


@pytest.mark.slow
def test_crowd(tmp_path):
    result, said = bench(tmp_path, "crowd", *SHORT, "--clients", "1000", "--publishers", "100", "--rate", "500")
    assert (result["clients"], result["publishers"]) == (1000, 100)
    assert result["delivered"] == result["published"] > 0
    assert result["ratio"] == pytest.approx(result["events_per_second"] / result["alone_events_per_second"])
    assert 0 < result["p50_ms"] <= result["p95_ms"] <= result["p99_ms"]
    assert 0 < result["bytes_per_connection"] < result["bytes_per_subscriber"] < 100_000
    assert "1,000 clients, 100 of them publish" in said


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            ("--clients", "100", "--publishers", "100"),
            "there must be more clients than publishers: the others subscribe",
        ),
        (("--clients", "2000000000"), "2,000,000,000 connections need 2,000,000,256 open files"),
    ],
)
def test_a_crowd_that_cannot_be_is_refused(asked, says):
    done = subprocess.run(
        [sys.executable, "-m", "mercast", "bench", "crowd", *asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"mercast bench: {says}")


def test_figures_that_measure_nothing_are_refused():
    done = subprocess.run(
        [sys.executable, "-m", "mercast", "bench", "chain", "--runs", "0"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "mercast bench: too little for a measurement: runs\n")
