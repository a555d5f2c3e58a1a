"""What is made of Spark's windows for a comparison."""

from datetime import UTC, datetime, timedelta

import pytest

from mercast.cli import compare as command
from mercast_loadtest.compare import report
from mercast_loadtest.compare.figures import Part, between, counted, measured, within
from mercast_loadtest.compare.rounds import Turn
from mercast_streaming.figures import Sum, figures

START = datetime(2026, 1, 1, tzinfo=UTC)


def second(number):
    return START + timedelta(seconds=number)


def made(at, cluster, broker, *, published=0, latencies=(), forwarded=0, cpu=0):
    """Windows as the job makes them, of the sums of a broker."""
    start = int(second(at).timestamp()) * 1_000_000
    key = (start, "ddbr", cluster, broker)
    sums = [Sum(*key, "published", None, None, None, published, [published, 10 * published], None)]
    sums += [Sum(*key, "delivered", 1, None, cell, many, [0], 0) for cell, many in latencies]
    delivered = sum(many for _, many in latencies)
    tick = {"published": published, "delivered": delivered, "forwarded": forwarded, "bytes_out": 100 * forwarded}
    tick["cpu_us"] = cpu
    return sums + [Sum(*key, "tick", None, name, None, 1, [number], number) for name, number in tick.items()]


SUMS = [
    *made(0, "a", 1, published=5),
    *made(1, "a", 1, published=10, latencies=[(300, 4)], forwarded=6, cpu=100_000),
    *made(1, "b", 2, latencies=[(400, 12)], forwarded=2, cpu=300_000),
    *made(2, "a", 1, published=20, latencies=[(300, 8)], forwarded=10, cpu=200_000),
    *made(5, "a", 1, published=7),
]
ROWS = figures(SUMS, 1)


def test_windows_within_a_part_and_up_to_the_next():
    part = Part(second(1), second(3))
    assert {row["window_start"] for row in within(ROWS, part)} == {second(1), second(2)}
    assert {row["window_start"] for row in within(ROWS, Part(second(0.5), second(2.5)))} == {second(1)}
    assert {row["window_start"] for row in between(ROWS, Part(second(0.5), second(2)), second(5))} == {
        second(0), second(1), second(2)
    }  # fmt: skip
    assert counted(between(ROWS, part, second(5)))["published"] == 30
    assert (counted(ROWS)["published"], counted(ROWS)["deliveries"]) == (42, 24)


def test_means_are_over_clusters_and_seconds():
    found = measured(within(ROWS, Part(second(1), second(3))))
    low, high = (
        row["latency_p95_us"] / 1e3 for row in ROWS if row["window_start"] == second(1) and row["broker"] is None
    )
    assert found["events_per_second"] == 15
    assert found["deliveries_per_second"] == 12
    assert found["latency_p95_ms"] == pytest.approx((12 * low + 12 * high) / 24)
    assert (found["messages_per_delivery"], found["bytes_per_delivery"]) == (18 / 24, 75)
    assert found["cpu_per_broker"] == pytest.approx(0.2)  # 0.6 s of three ticks
    assert (found["accuracy"], found["list_length"]) == (None, None)


def test_nothing_is_made_of_nothing():
    assert set(measured([]).values()) == {None}


def result(began, ended, **more):
    counts = {"published": 5, "copies": 3, "missing": 1, "doubled": 1, "undue": 2}
    return counts | {"began": second(began).isoformat(), "ended": second(ended).isoformat()} | more


def entries():
    step = {"why": "", "began": second(1).isoformat(), "ended": second(3).isoformat()}
    knee = {"rate": 100, "reached": True, "why": "<slow>"}
    knee["steps"] = [step | {"rate": 100, "held": True}, step | {"rate": 200, "held": False}]
    turn = Turn("ddbr", 2, 2, result(1, 3), result(5, 6, knee=knee))
    return {"ddbr": report.entry(turn, ROWS)}


def test_an_entry_has_knee_and_counts():
    one = entries()["ddbr"]
    assert one["knee"]["events_per_second"] == 15
    assert (one["load"]["published"], one["load"]["missing"], one["load"]["wrong"]) == (10, 2, 6)
    assert not report.kept({"ddbr": one})
    assert one["counted_steady"]["published"] == 30


def test_the_best_is_marked_and_all_is_escaped():
    one = entries()["ddbr"]
    other = one | {"steady": one["steady"] | {"latency_p95_ms": 0.5}}
    lines = dict(report.cells({"ddbr": one, "fbr": other}))
    assert [best for _, best in lines["latency p95"]] == [False, True]
    assert [best for _, best in lines["latency p50"]] == [False, False]  # they are the same
    assert lines["routing accuracy"] == [(report.NOTHING, False)] * 2
    page = report.html({"ddbr": one, "fbr": other}, "5 < 6 brokers")
    assert "<slow>" not in page.split("<script")[0]
    assert "5 &lt; 6 brokers" in page


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"rate": 0}, "--rate 0: it must be above 0"),
        ({"seconds": 0.0}, "--seconds 0: it must be above 0"),
        ({"ramp_from": -1}, "--ramp-from -1: it must be above 0"),
        ({"ramp_seconds": 2.5, "quick": True}, "--ramp-seconds 2.5: a ramp has steps of 2.5 s, and must be longer"),
        ({"ramp_seconds": float("inf")}, "--ramp-seconds inf: a ramp has steps of 3 s"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(monkeypatch, capsys, flags, told):
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("it was started"))
    with pytest.raises(SystemExit) as ended:
        command.compare(**flags)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
