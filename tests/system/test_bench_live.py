"""The live benches, as a user runs them, for an instant each."""

import json
import subprocess
import sys

import pytest

SHORT = ("--runs", "1", "--seconds", "0.3")


def bench(tmp_path, *arguments):
    file = tmp_path / "result.json"
    command = [sys.executable, "-m", "mercast", "bench", *arguments, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
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
    result, _ = bench(tmp_path, "line", "--brokers", "3", "--subscriptions", "30", "--seconds", "0.5")
    for compared in (result["scan"], result["index"]):
        assert compared["fbr"]["lost"] == compared["ddbr"]["lost"] == 0
        assert len(compared["ddbr"]["cpu_us_per_event"]) == 3


@pytest.mark.slow
def test_idle(tmp_path):
    result, _ = bench(tmp_path, "idle", "--connections", "1000")
    assert result["connections"] == 1000
    assert 0 < result["bytes_per_connection"] < 100_000


def test_figures_that_measure_nothing_are_refused():
    done = subprocess.run(
        [sys.executable, "-m", "mercast", "bench", "chain", "--runs", "0"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "mercast bench: too little for a measurement: runs\n")
