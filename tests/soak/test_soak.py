"""The judgement of the soak, and the soak itself for an instant."""

import asyncio
import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from soak.course import Course
from soak.flatness import LEAST, MEMORY, MIB, TABLE, Slack, judge
from soak.samples import ALL, Sample, growth, verdicts
from soak.visitors import EVENTS, Visitors

import mercast


def noisy(level, count=200, slope=0.0, seed=1):
    rng = random.Random(seed)
    return [level * (1 + rng.gauss(0, 0.02)) + slope * at for at in range(count)]


# -- flat or not -----------------------------------------------------------------------------------------------------


def test_a_noisy_level_is_flat():
    assert judge(noisy(200 * MIB), MEMORY).flat
    assert judge([10] * LEAST, TABLE) == (10, 10, 18)


def test_warming_up_is_no_growth():
    assert judge([size * MIB for size in range(150, 200)] + noisy(200 * MIB, 150), MEMORY).flat


def test_a_slope_is_not_flat():
    assert not judge(noisy(200 * MIB, slope=0.2 * MIB), MEMORY).flat
    assert not judge(noisy(100, slope=0.3), TABLE).flat


def test_a_peak_is_no_growth_and_a_step_is():
    level = noisy(200 * MIB)
    assert judge(level[:150] + [900 * MIB] * 10 + level[160:], MEMORY).flat
    assert not judge(level[:150] + [240 * MIB] * 50, MEMORY).flat


def test_a_kilobyte_for_each_connection_is_seen():
    """As two runs of 2.5 minutes were: at rest but for lumps; and with a leak, 45 connections a second, 140 samples."""
    settling = [212.0 * MIB] * 80 + [213.9 * MIB] * 60
    assert judge(settling, MEMORY).flat
    leak = 45 * 1024 * 150 / len(settling)
    assert not judge([size + leak * at for at, size in enumerate(settling)], MEMORY).flat
    assert not judge([212.0 * MIB + 1.5 * leak * at for at in range(140)], MEMORY).flat


def test_what_shrinks_is_fine():
    assert judge(noisy(200 * MIB, slope=-0.3 * MIB), MEMORY).flat


def test_the_slack_is_a_share_or_so_much():
    assert judge([100] * 4 + [110] * 4, Slack(0.1, 0)).flat
    assert not judge([100] * 4 + [111] * 4, Slack(0.1, 0)).flat
    assert judge([1] * 4 + [6] * 4, Slack(0.1, 5)).flat
    assert not judge([1] * 4 + [7] * 4, Slack(0.1, 5)).flat


def test_too_few_samples_say_nothing():
    with pytest.raises(ValueError, match="7 samples say nothing about a curve; it takes 8"):
        judge([1] * 7, TABLE)


# -- of brokers ------------------------------------------------------------------------------------------------------


def sampled(at, **curves):
    """Of brokers 1 and 2; the second is restarted at half time."""
    count = len(next(iter(curves.values())))
    return [
        Sample(
            seconds, broker, 7 if broker == 1 or seconds < at else 8, {name: curves[name][seconds] for name in curves}
        )
        for seconds in range(count)
        for broker in (1, 2)
    ]


def test_memory_is_judged_of_brokers_that_stay_and_clients_wherever_they_are():
    samples = sampled(20, memory=[100 * MIB] * 40, subscriptions=[5] * 40, records=[4] * 40)
    assert verdicts(samples).keys() >= {("broker 1", "memory"), ("broker 1", "records"), (ALL, "subscriptions")}
    assert ("broker 2", "memory") not in verdicts(samples)
    assert ("broker 1", "subscriptions") not in verdicts(samples)
    assert growth(verdicts(samples)) == []


def test_clients_that_move_are_no_growth():
    moved = sampled(20, subscriptions=[0] * 40)
    moved = [
        one._replace(sizes={"subscriptions": 50 if (one.broker == 1) == (one.seconds > 20) else 10}) for one in moved
    ]
    assert growth(verdicts(moved)) == []


def test_growth_is_told_in_a_sentence():
    samples = sampled(99, memory=[(100 + at) * MIB for at in range(40)], records=[4] * 20 + [40] * 20)
    assert growth(verdicts(samples))[:2] == [
        "broker 1: 114.5 MiB of memory in the second quarter of the time, and 134.5 MiB of memory in the last; "
        "flat would be at most 117.5 MiB of memory",
        "broker 1: 4 records in the second quarter of the time, and 40 records in the last; "
        "flat would be at most 12 records",
    ]


# -- visitors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrived", "disturbed", "problems"),
    [
        ([*range(EVENTS)], False, []),
        ([*range(1, EVENTS)], False, ["visitor 1: 1 of 20 events are missing"]),
        ([*range(1, EVENTS)], True, []),
        ([*range(EVENTS), 3], True, ["visitor 1: events arrived twice"]),
        (mercast.MercastError("no"), False, ["visitor 1: MercastError('no')"]),
        (mercast.MercastError("no"), True, []),
    ],
)
def test_only_kills_excuse_what_is_missing_and_nothing_what_is_doubled(arrived, disturbed, problems, monkeypatch):
    visitors = Visitors([], 1, lambda _: disturbed, 1)

    async def visit(_type, so_far):
        visitors.stop()
        if isinstance(arrived, Exception):
            raise arrived
        so_far += arrived

    monkeypatch.setattr(visitors, "_visit", visit)
    asyncio.run(visitors.run())
    assert (visitors.problems, visitors.visits) == (problems, 1)


def test_a_kill_disturbs_those_who_were_there():
    course = Course(None, (), None, None, None)
    course._disturbances = [(10.0, 20.0)]
    assert course.disturbed(5.0)
    assert course.disturbed(15.0)
    assert not course.disturbed(21.0)
    course._disturbances.append((30.0, None))
    assert course.disturbed(21.0)


def test_whom_a_kill_hits_was_not_just_restarted(monkeypatch):
    """That one has no clients yet."""
    course, did = Course(None, (2, 4), None, None, None), []

    async def restart(id):
        did.append(("restart", id))
        course.restarts += 1

    async def kill(id):
        did.append(("kill", id))

    monkeypatch.setattr(course, "_restart", restart)
    monkeypatch.setattr(course, "_kill", kill)
    asyncio.run(course.run(0.2, every=0.01))
    kills = [at for at, (what, _) in enumerate(did) if what == "kill"]
    assert len(kills) > 1
    for at in kills:
        assert did[at - 1] == ("restart", {2: 4, 4: 2}[did[at][1]])


# -- all of it -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_short_soak(tmp_path):
    """Too short for curves; but with a restart and a kill, and everything delivered."""
    command = [sys.executable, str(Path(__file__).parent / "run.py"), "--minutes", "0.5", "--every", "8"]
    done = subprocess.run([*command, "--folder", tmp_path], capture_output=True, text=True, timeout=280, check=False)
    said = json.loads((tmp_path / "summary.json").read_text())
    assert [one for one in said["problems"] if "quarter" not in one] == [], done.stdout
    assert said["delivered"] == said["due"] > 1_000
    assert min(said["restarts"], said["kills"]) > 0
    assert said["visits"] > 20
    assert said["passed by"] > 500
    with (tmp_path / "samples.csv").open() as file:
        assert {row["broker"] for row in csv.DictReader(file)} == {"1", "2", "3", "4"}
    assert "plotly" in (tmp_path / "soak.html").read_text()
