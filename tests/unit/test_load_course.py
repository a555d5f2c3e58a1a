"""The course of a load: what is judged when, and how it ends. Its clock is set by hand."""

import pytest

from mercast_loadtest.load import course as module
from mercast_loadtest.load.course import Course, Phase
from mercast_loadtest.load.facts import Facts
from mercast_loadtest.load.plan import Plan
from mercast_loadtest.load.shapes import Steady

S = 1_000_000_000
START = 1_700_000_000 * S
FILTERS = 4


class Stage:
    """A publisher here, and a subscriber in another process: what it notes comes when it is heard."""

    def __init__(self, monkeypatch):
        self.now = START
        monkeypatch.setattr(module, "time_ns", lambda: self.now)
        plan = Plan("quotes", 1, publishers=1, filters=FILTERS)
        self.course = Course(plan, Steady(100.0, 60.0), 7, (2, 0), patience=5.0, around=5.0, linger=0.0)
        self.here, self.there = Facts(0), Facts(1)
        self.here.change("ready", 0, START)
        self.there.change("ready", 1, START)
        self.stand("settled", 0)
        self.hear()

    def stand(self, what, at):
        for number in range(FILTERS):
            self.there.change(what, number, START + round(at * S))

    def publish(self, count, at):
        self.here.published(0, 0, count, START + round(at * S), S // 100, True)

    def hear(self):
        self.course.take(self.there.hand_over())

    def at(self, seconds):
        self.now = START + round(seconds * S)
        self.course.take(self.here.hand_over())
        self.course.tick(lambda _: None)


@pytest.fixture
def stage(monkeypatch):
    return Stage(monkeypatch)


def test_what_does_not_come_is_missing(stage):
    stage.at(1)
    stage.publish(500, at=9)
    stage.at(9.2)
    stage.course.stop()
    for second in range(10, 18):
        stage.at(second)
    assert (stage.course.phase, stage.course.problem) == (Phase.OVER, "")
    tally = stage.course.finish()
    assert tally.missing == tally.due > 0


def test_what_other_processes_have_noted_last_is_heard_before_anything_is_judged(stage):
    """A subscription was taken back just before the end."""
    stage.at(1)
    stage.stand("taken back", 8.9)
    stage.publish(500, at=9)
    stage.at(9.2)
    stage.course.stop()
    stage.at(9.8)
    stage.hear()
    for second in range(10, 18):
        stage.at(second)
    assert stage.course.phase is Phase.OVER
    assert stage.course.finish()._asdict() == dict.fromkeys(stage.course.finish()._fields, 0) | {"published": 500}


def test_who_does_not_wait_does_not_blame_what_is_on_its_way(stage):
    stage.at(1)
    stage.publish(500, at=9)
    stage.at(9.2)
    stage.course.stop()
    stage.at(9.8)
    stage.course.stop()
    assert stage.course.phase is Phase.OVER
    assert (stage.course.finish().published, stage.course.finish().missing) == (500, 0)


def test_who_gives_up_says_why_and_for_how_long_it_went(stage):
    stage.at(1)
    stage.at(9)
    stage.course.give_up("a worker is lost")
    stage.course.give_up("and more")
    assert (stage.course.phase, stage.course.problem, stage.course.seconds) == (Phase.OVER, "a worker is lost", 8.0)
