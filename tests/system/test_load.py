"""`mercast load`, as a user runs it: its figures are what brokers counted, and what is lost does not go unnoticed."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from system.live import PATIENCE, Mesh, Running, end, mercast, metrics, until

from mercast.processes import descendants, free_addresses, in_use

SMALL = ("--publishers", 2, "--subscribers", 4, "--filters", 6, "--rate", 300)
PATIENT, SOON = 60, 2
"""Seconds until a delivery is late: none is, on a loaded machine; or, where some never come, the end is not far."""
SUBSCRIPTIONS, USERS = 24, 6


@pytest.fixture(scope="module")
def mesh():
    with Mesh(3) as brokers:
        yield brokers


def at(mesh, *ids):
    """Where some brokers are, or all."""
    return "--brokers", ",".join(mesh[id].client for id in ids or mesh.brokers)


def counted(mesh, *names):
    """By all brokers together."""
    found = [metrics(broker) for broker in mesh.brokers.values()]
    return [sum(one[name] for one in found) for name in names]


def load(*flags, folder, patience=PATIENT):
    """The result, and what was said."""
    place = folder / "result.json"
    done = mercast("load", *SMALL, "--patience", patience, "--json", place, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(place.read_text()), done.stdout


def all_came(result, *but):
    """And it was something."""
    wrong = {"missing", "missing_around_faults", "not_accepted", "late", "doubled", "undue", "strangers"} - {*but}
    assert {name: result[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert result["due"] == result["delivered"] > 100
    assert (result["kept"], result["completeness"], result["problem"]) == (True, 1.0, None)
    assert result["published"] > 100
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["p95"] <= result["latency_ms"]["p99"]


@pytest.mark.parametrize("workers", [0, 2])
def test_figures_are_what_brokers_counted(mesh, tmp_path, workers):
    names = "mercast_events_published_total", "mercast_events_delivered_total"
    before = counted(mesh, *names)
    flags = ("--seconds", 3, "--csv", tmp_path / "stats", "--html", tmp_path / "r.html", "--workers", workers)
    result, said = load(*at(mesh), *flags, folder=tmp_path)
    all_came(result)
    published, copies = (now - then for now, then in zip(counted(mesh, *names), before, strict=True))
    assert (result["published"], result["copies"]) == (published, copies)
    assert result["deliveries"] == result["due"] >= copies
    with (tmp_path / "stats_stats.csv").open() as file:
        rows = {row["Name"]: (int(row["Request Count"]), int(row["Failure Count"])) for row in csv.DictReader(file)}
    expected = {"connect": USERS, "subscribe": SUBSCRIPTIONS, "publish": published, "deliver": result["due"]}
    assert rows == {name: (count, 0) for name, count in expected.items()} | {"Aggregated": (sum(expected.values()), 0)}
    page = (tmp_path / "r.html").read_text()
    assert all(f'"name": "{name}"' in page for name in ("publish", "deliver", "subscribe"))
    assert "nothing missing, doubled or undue" in said


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["burst", "churn", "flash"])
def test_shapes(mesh, tmp_path, shape):
    churns = shape == "churn"  # subscriptions stand for twice the patience
    how = {"folder": tmp_path, "patience": SOON if churns else PATIENT}
    result, _ = load(*at(mesh), "--seconds", 9, "--shape", shape, **how)
    all_came(result, *["late"] if churns else [])
    assert result["shape"] == shape
    assert result["users"] == (USERS + 4 if shape == "flash" else USERS)
    assert not churns or result["uncounted"] > 0


@pytest.mark.slow
def test_a_ramp_finds_a_knee_or_says_that_it_did_not(mesh, tmp_path):
    flags = ("--shape", "ramp", "--step", 1, "--steeper", 1.5, "--seconds", 4)
    result, said = load(*at(mesh), *flags, folder=tmp_path)
    steps = result["knee"]["steps"]
    assert 2 <= len(steps) <= 4
    assert [step["rate"] for step in steps][:1] == [300]
    assert "knee: " in said


@pytest.mark.slow
def test_real_quotes(mesh, tmp_path):
    file = tmp_path / "quotes.csv"
    file.write_text("symbol,price,volume,venue\n" + "".join(f"S{n % 5},{10 + n % 7},{n},x\n" for n in range(50)))
    result, _ = load(*at(mesh), "--seconds", 2, "--quotes", file, folder=tmp_path)
    all_came(result)


SPREAD = """
import json
from locust.runners import WorkerNode
from mercast_loadtest.load.locustfile import Crowd, InTurn, Publisher, Subscriber

Publisher.fixed_count, Subscriber.fixed_count = 4, 20
users = InTurn([WorkerNode(name) for name in "ab"], [Publisher, Subscriber, Crowd])
for count in (24, 30):
    users.new_dispatch(count, 100)
    *_, last = users
    print(json.dumps(last))
"""


def test_every_worker_has_its_share_of_each_kind_of_user():
    """In a process of its own: Locust patches whatever imports it."""
    said = subprocess.run([sys.executable, "-c", SPREAD], check=True, capture_output=True, text=True).stdout
    shares = [json.loads(line) for line in said.splitlines()]
    for share, crowd in zip(shares, (0, 3), strict=True):
        assert list(share.values()) == 2 * [{"Crowd": crowd, "Publisher": 2, "Subscriber": 10}]


def hears_ctrl_c(pid):
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return int(caught[1], 16) >> (signal.SIGINT - 1) & 1


@pytest.mark.slow
def test_ctrl_c_while_workers_are_awaited(mesh, tmp_path):
    """They are killed before they can answer."""
    with Running(tmp_path, "load", *SMALL, *at(mesh), "--workers", 2) as command:
        pid = command.process.pid
        for worker in until(lambda: len(found := descendants(pid)) == 2 and found, lambda: command.err):
            os.kill(worker, signal.SIGKILL)
        until(lambda: hears_ctrl_c(pid), lambda: command.err)
        assert (end(command.process, signal.SIGINT), command.out, command.err) == (2, "", "")


@contextmanager
def running(folder, *flags, patience=SOON):
    flags = ("--patience", patience, "--json", folder / "result.json", *flags)
    with Running(folder, "load", *SMALL, *flags) as command:
        command.says("events/s")
        yield command


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_early_with_its_summary(mesh, tmp_path, by):
    with running(tmp_path, *at(mesh), "--seconds", 600, patience=PATIENT) as command:
        status = end(command.process, by)
        assert (status, "nothing missing" in command.out) == (0, True), command.out + command.err
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seconds"] < 600
    assert result["missing"] == result["doubled"] == result["undue"] == 0


@pytest.mark.slow
def test_locusts_page_starts_tests_again_and_again(mesh, tmp_path):
    [address] = free_addresses(1)

    def asked(path, form=None):
        with urlopen(f"http://{address}/{path}", form, timeout=60) as answer:
            return json.load(answer)

    form = {"user_count": 1, "spawn_rate": 1, "quotes": "", "filters": 6}
    port = address.rpartition(":")[2]
    flags = (*SMALL, *at(mesh), "--patience", PATIENT, "--seconds", 1.5, "--web", "--web-port", port)
    with Running(tmp_path, "load", *flags) as command:
        until(lambda: in_use(address), lambda: command.out + command.err)
        for wrong, why in (
            ({"quotes": "nowhere.csv"}, "nowhere.csv: No such file"),
            ({"filters": 0}, "--filters 0: it"),
        ):
            asked("swarm", urlencode(form | wrong).encode())
            until(lambda why=why: why in command.err, lambda: command.out + command.err)
            until(lambda: asked("stats/requests")["state"] == "stopped", "it has stopped")
        for times, more in ((1, {}), (2, {"publishers": 3})):  # there were 2
            assert asked("swarm", urlencode(form | more).encode())["success"]
            until(lambda times=times: command.out.count("nothing missing") == times, lambda: command.out + command.err)
            counts = {one["name"]: one["num_requests"] for one in asked("stats/requests")["stats"]}
            assert (counts["connect"], counts["subscribe"]) == (USERS + len(more), SUBSCRIPTIONS)
            assert counts["deliver"] > 10
        assert end(command.process, signal.SIGINT) == 0, command.err
        assert "Traceback" not in command.err


@pytest.mark.slow
@pytest.mark.parametrize("told", [False, True])
def test_what_a_fault_costs_is_missing_unless_it_is_told_of(tmp_path, told):
    """Nobody is connected to the broker in the middle: users see nothing of its end."""
    options = ("--heart-beat", "0.2")
    with Mesh(3, [(1, 2), (2, 3)], may_log="", options=options) as mesh:
        flags = ("--seconds", 4, "--around-faults", 60)
        with running(tmp_path, *at(mesh, 1, 3), *flags) as command:
            if told:
                command.process.send_signal(signal.SIGUSR1)
            mesh.kill(2)
            status = command.process.wait(PATIENCE)
            said = command.out + command.err
    result = json.loads((tmp_path / "result.json").read_text())
    lost, other = ("missing_around_faults", "missing") if told else ("missing", "missing_around_faults")
    assert (status, result["kept"]) == ((0, True) if told else (1, False)), said
    assert result[lost] == result["due"] - result["delivered"] > 0
    assert result[other] == result["doubled"] == result["undue"] == 0


@pytest.mark.slow
def test_users_of_a_killed_broker_go_elsewhere(tmp_path):
    with Mesh(3) as mesh, running(tmp_path, *at(mesh), "--seconds", 6) as command:
        mesh.kill(3)
        assert command.process.wait(PATIENCE) == 0, command.out + command.err
        until(lambda: metrics(mesh[1])["mercast_events_published_total"] > 0, "somebody publishes")
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(result["faults"]) == 1
    assert result["missing"] == result["doubled"] == result["undue"] == 0
    assert result["delivered"] > 100


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--brokers", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
        (["--brokers", "x:y"], "x:y"),
        (["--rate", "0"], "--rate 0: it must be above 0"),
        (["--seconds", "-1"], "--seconds -1: it must be above 0"),
        (["--subscribers", "0"], "--subscribers 0: it must be at least 1"),
        (["--shape", "churn", "--filters", "1"], "with churn, half of them stand at a time"),
        (["--workload", "zipf", "--quotes", "q.csv"], "--quotes goes with --workload quotes"),
        (["--quotes", "none.csv"], "none.csv: No such file or directory"),
        (["--quotes", "bad.csv"], "bad.csv, line 3, column 2 (price): 'dear' is not a number of 0 or more"),
        (["--json", "nowhere/r.json"], "nowhere/r.json: there is no folder"),
        (["--json", "."], ".: this is a folder; name a file"),
        (["--web", "--web-port", "99999"], "--web-port 99999: choose 1 to 65535"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, flags, told):
    (tmp_path / "bad.csv").write_text("symbol,price,volume\nACME,1,2\nACME,dear,2\n")
    done = mercast("load", *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_there_are_no_other_workloads_and_shapes():
    for flags in (["--workload", "weather"], ["--shape", "round"]):
        done = mercast("load", *flags)
        assert done.returncode == 2
        assert flags[1] in done.stdout + done.stderr
