"""The shapes of a load: how much is published when; the knee of a ramp."""

import pytest

from mercast_loadtest.load.shapes import Ramp, shape_named


def rates(name, seconds):
    shape = shape_named(name, 100.0, 12.0, 3.0, 1.5)
    return [shape.rate(at) for at in seconds]


@pytest.mark.parametrize("name", ["steady", "churn", "flash"])
def test_a_constant_rate_until_the_end(name):
    assert rates(name, [0, 6, 11.9, 12, 13]) == [100, 100, 100, None, None]


def test_a_burst_is_the_last_of_five_seconds():
    assert rates("burst", [0, 3.9, 4, 4.9, 5, 9.5, 12]) == [100, 100, 500, 500, 100, 500, None]


def test_a_crowd_comes_after_a_third_and_stays():
    flash, steady = (shape_named(name, 100.0, 12.0, 3.0, 1.5) for name in ("flash", "steady"))
    assert [flash.crowd(at) for at in (0, 3.9, 4, 11)] == [False, False, True, True]
    assert not any(steady.crowd(at) for at in (0, 4, 11))
    assert [shape_named(name, 1, 1, 1, 2).churns for name in ("steady", "churn", "ramp")] == [False, True, False]


def climb(*seen, most=60.0):
    """A ramp of steps in which that was seen: the share of the rate that was published, and p95 in milliseconds."""
    ramp = Ramp(100.0, most, 2.0, 2.0)
    tried = []
    for number, (share, p95) in enumerate(seen):
        at = 2.0 * number
        rate = ramp.rate(at)
        if rate is None:
            break
        tried.append(rate)
        assert ramp.settling(at + 0.4)
        assert not ramp.settling(at + 0.6)
        assert not ramp.step_over(at + 1.9)
        assert ramp.step_over(at + 2.0)
        ramp.see(at + 2.0, share * rate, 3 * rate, p95, (number * 10, number * 10 + 10))
    return ramp, tried


def test_a_ramp_rises_until_latency_has_run_away_twice():
    ramp, tried = climb((1, 10), (1, 20), (1, 90), (1, 101), (1, 500), (1, 1))
    assert tried == [100, 200, 400, 800, 800]
    assert ramp.rate(10.0) is None
    knee = ramp.knee(lambda *_: 0)
    assert (knee.rate, knee.reached, knee.why) == (400, True, "p95 latency of 101 ms is above 100 ms")
    assert knee.step == ramp.steps[2]


def test_one_step_that_is_not_held_may_be_a_hiccup():
    ramp, tried = climb((1, 10), (1, 900), (1, 10), (0.5, 10), (0.5, 10))
    assert tried == [100, 200, 200, 400, 400]
    assert ramp.knee(lambda *_: 0)[:1] == (200,)
    assert ramp.steps[3].why == "200 of 400 events/s were published"


def test_slow_machines_have_a_higher_limit():
    ramp, tried = climb((1, 50), (1, 240), (1, 260), (1, 260))
    assert tried == [100, 200, 400, 400]
    assert ramp.knee(lambda *_: 0).why == "p95 latency of 260 ms is above 250 ms"


def test_nothing_delivered_is_not_held():
    ramp, _ = climb((1, None), (1, None))
    knee = ramp.knee(lambda *_: 0)
    assert (knee.rate, knee.step, knee.reached, knee.why) == (0, None, True, "nothing was delivered")


def test_a_step_with_missing_deliveries_was_not_held():
    ramp, _ = climb((1, 10), (1, 10), (1, 10), most=6.0)
    assert ramp.rate(6.0) is None
    assert ramp.knee(lambda *_: 0)[:3:2] == (400, False)
    knee = ramp.knee(lambda began, ended: 7 if began <= 25 < ended else 0)
    assert (knee.rate, knee.reached, knee.why) == (200, True, "7 deliveries are missing")


def test_no_step_no_knee():
    assert Ramp(100.0, 60.0).knee(lambda *_: 0) is None
