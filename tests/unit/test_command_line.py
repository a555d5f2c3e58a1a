"""The commands, run as a user runs them."""

import json
import subprocess
import sys

import pytest
from commands import run as mercast


def test_help_names_the_commands():
    said = mercast("--help").stdout
    assert all(command in said for command in ("bench", "demo", "filter"))


def test_commands_are_imported_only_when_they_run():
    code = "import sys, mercast.cli; print([m for m in sys.modules if m.startswith(('numpy', 'mercast.cli.'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_command_that_lacks_a_library_says_which_extra_brings_it():
    code = "import sys; sys.modules['cryptography'] = None; from mercast.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "cert", "x"], capture_output=True, text=True, check=False)
    told = "mercast: cryptography is not installed; try: pip install 'mercast[broker]'\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        (["price > 5 and symbol='ACME'"], 0, "price > 5 AND symbol = 'ACME'\n", ""),
        ([""], 0, "(matches every event)\n", ""),
        (["price > 5", "price=6"], 0, "price > 5\nmatches\n", ""),
        (["price > 5", "price=5"], 1, "price > 5\ndoes not match\n", ""),
        (["s = 'a b' AND up", "s=a b", "up=TRUE"], 0, "s = 'a b' AND up\nmatches\n", ""),
        (["price > "], 1, "", "line 1, column 9: found the end of the filter, expected a value"),
        (["x = 'q'", "x=1 AND ok"], 1, "x = 'q'\ndoes not match\n", ""),
        (["-5 < price", "price=1"], 0, "price > -5\nmatches\n", ""),
        (["x = 1", "x"], 1, "", "'x' is not an attribute: write name=value"),
    ],
)
def test_filter(arguments, status, out, err):
    done = mercast("filter", *arguments)
    assert (done.returncode, done.stdout) == (status, out)
    assert err in done.stderr


def test_bench_matching_writes_what_others_read(tmp_path):
    file = tmp_path / "result.json"
    sizes = ["--filters", "500", "--attributes", "6", "--predicates", "3", "--width", "0.4", "--events", "100"]
    done = mercast("bench", "matching", *sizes, "--seed", "3", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout
    result = json.loads(file.read_text())
    for spread in (result["us_per_event"], result["one_at_a_time"], result["yardstick"]["us_per_event"]):
        assert 0 < spread["p50"] <= spread["p99"]
        assert spread["mean"] > 0
    assert result["matches_per_event"] == pytest.approx(500 * 0.45**3, rel=0.5)
    assert result["yardstick"]["candidates_per_event"] >= result["matches_per_event"]
    assert {"build_seconds", "memory_bytes", "add_us", "remove_us"} <= result.keys()


def test_bench_simulator_counts_every_hop_and_delivery(tmp_path):
    """A tree to all the others has a hop for each; the publisher's broker delivers too."""
    file = tmp_path / "result.json"
    done = mercast("bench", "simulator", "--brokers", "20", "--events", "150", "--json", str(file))
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text())
    assert (result["hops"], result["deliveries"]) == (19 * 150, 20 * 150)
    assert "ratio to it" in done.stdout


@pytest.mark.parametrize("workload", ["stock", "zipf"])
def test_bench_matching_of_the_other_workloads(workload):
    done = mercast("bench", "matching", "--workload", workload, "--filters", "300", "--events", "50", "--loop", "numpy")
    assert done.returncode == 0, done.stderr
    assert workload in done.stdout


BAD = [
    (["--predicates", "30"], "cannot ask about 30 of 20 attributes"),
    (["--width", "2"], "between 0 and 1"),
    (["--filters", "0"], "must be at least 1"),
    (["--filters", "x"], 'unable to convert "x" into int'),
    (["--json", "/no/such/folder/x"], "/no/such/folder/x cannot be written"),
]


@pytest.mark.parametrize(("bad", "says"), BAD)
def test_bench_says_what_is_wrong(bad, says):
    done = mercast("bench", "matching", *bad)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr + done.stdout
    assert says in done.stderr + done.stdout


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path):
    done = mercast("bench", "all", "--json", str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path} cannot be written" in done.stderr.replace("\n", "")
