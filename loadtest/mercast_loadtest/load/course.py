"""The course of a test: users are set up, events are published as the shape has it, the last ones arrive, the end.

There is one, in the process that has the ledger: Locust's master, or the only one.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from time import time_ns
from typing import Any, NamedTuple

from mercast_loadtest.load.ledger import Ledger, Tally
from mercast_loadtest.load.plan import Plan
from mercast_loadtest.load.shapes import Knee, Ramp, Shape

SET_UP_WITHIN = 120.0
"""Seconds for all users to be connected and settled."""
_SECOND = 1_000_000_000
_JUDGE_EVERY = _SECOND // 2
_TOLD = _SECOND
"""Within which users of all processes know what they are to do, and what they note is here."""


class Phase(StrEnum):
    SET_UP = "setting up"
    RUN = "running"
    DRAIN = "waiting for what is on its way"
    OVER = "over"


class Orders(NamedTuple):
    """What users are told."""

    rate: float
    """Events a second, by all."""


class Pulse(NamedTuple):
    """What happened in the last second or so."""

    seconds: float
    """Since the first event."""
    published: float
    delivered: float
    """Both a second."""
    p50: float | None
    p99: float | None


class Course:
    def __init__(
        self,
        plan: Plan,
        shape: Shape,
        run: int,
        users: tuple[int, int],
        *,
        patience: float,
        around: float,
        linger: float,
    ) -> None:
        """`users` are how many are there at first, and in the crowd. `linger` are seconds at the end, for Locust to
        collect and write its statistics."""
        plan.learn(sum(users))
        self.ledger = Ledger(plan, run, time_ns(), patience=round(patience * _SECOND), around=round(around * _SECOND))
        self.shape, self._patience = shape, round(patience * _SECOND)
        self.users, self.crowd = users
        self.phase, self.problem = Phase.SET_UP, ""
        self.crowd_is_there = False
        self.began = self.ended = self._made = time_ns()
        """When events were published."""
        self._judged = self._quiet_since = self._all_in = 0
        self._linger = round(linger * _SECOND)
        self._arrived = 0
        self._step: _Mark | None = None
        self._pulse = _Mark(time_ns(), 0, 0)

    def take(self, given: Mapping[str, Any]) -> Any:
        return self.ledger.take(given)

    def tick(self, failures: Callable[[int], None]) -> Orders:
        """Some times a second. `failures` is told how many deliveries have not come in time since."""
        now = time_ns()
        if self.phase is Phase.SET_UP:
            self._set_up(now)
        if self.phase is Phase.RUN:
            rate = self._run(now)
        else:
            rate = 0.0
        if now - self._judged >= _JUDGE_EVERY:
            self._judged = now
            self.ledger.judge(now - (_TOLD if self.phase is Phase.DRAIN else max(self._patience, _TOLD)))
            failures(self.ledger.overdue(now))
            if self.phase is Phase.DRAIN:
                self._drain(now)
        return Orders(rate)

    def stop(self) -> None:
        """Publish no more. If that was said before, do not wait either."""
        if self.phase is Phase.RUN:
            self._end_run(time_ns())
        elif self.phase is Phase.SET_UP:
            self.give_up("stopped before the first event")
        else:
            self.phase = Phase.OVER

    def give_up(self, problem: str) -> None:
        """There will be no result."""
        if self.phase is Phase.RUN:
            self._end_run(time_ns())
        self.problem, self.phase = self.problem or problem, Phase.OVER

    def mark(self) -> None:
        """Somebody makes a fault now."""
        self.ledger.faults.marked(time_ns())

    def finish(self) -> Tally:
        """What came of it. What was published in the last moments before it was broken off is due to nobody."""
        now = time_ns()
        if self.phase is not Phase.OVER:
            self._end_run(now) if self.phase is Phase.RUN else None
            self.ledger.judge(now - self._patience)
            self.phase = Phase.OVER
        return self.ledger.tally(now)

    def knee(self) -> Knee | None:
        if not isinstance(self.shape, Ramp):
            return None
        missing = self.ledger.missing_times(time_ns())
        return self.shape.knee(lambda began, ended: int(((missing >= began) & (missing < ended)).sum()))

    @property
    def seconds(self) -> float:
        """In which events were published."""
        return ((time_ns() if self.phase is Phase.RUN else self.ended) - self.began) / _SECOND

    def pulse(self) -> Pulse:
        """Since the last one."""
        new = _Mark(time_ns(), self.ledger.published, self.ledger.arrived)
        published, delivered = new.since(self._pulse)
        self._pulse, recent = new, self.ledger.in_pulse
        self.ledger.new_pulse()
        return Pulse(self.seconds, published, delivered, recent.percentile(50), recent.percentile(99))

    # -- phases ------------------------------------------------------------------------------------------------------

    def _set_up(self, now: int) -> None:
        if len(self.ledger.ready) >= self.users:
            self.phase, self.began = Phase.RUN, now
            self._pulse = _Mark(now, self.ledger.published, self.ledger.arrived)
        elif now - self._made > SET_UP_WITHIN * _SECOND:
            self.give_up(
                f"only {len(self.ledger.ready)} of {self.users} users were set up within {SET_UP_WITHIN:.0f} s"
            )

    def _run(self, now: int) -> float:
        seconds = (now - self.began) / _SECOND
        if isinstance(self.shape, Ramp):
            self._look_at_step(self.shape, seconds, now)
        self.crowd_is_there = self.shape.crowd(seconds)
        rate = self.shape.rate(seconds)
        if rate is None:
            self._end_run(now)
        return rate or 0.0

    def _look_at_step(self, ramp: Ramp, seconds: float, now: int) -> None:
        if self._step is None and not ramp.settling(seconds):
            self._step = _Mark(now, self.ledger.published, self.ledger.arrived)
            self.ledger.new_step()
        elif self._step is not None and ramp.step_over(seconds):
            new = _Mark(now, self.ledger.published, self.ledger.arrived)
            published, delivered = new.since(self._step)
            ramp.see(seconds, published, delivered, self.ledger.in_step.percentile(95), (self._step.time, now))
            self._step = None

    def _end_run(self, now: int) -> None:
        self.phase, self.ended = Phase.DRAIN, now
        self._quiet_since, self._arrived = now, self.ledger.arrived

    def _drain(self, now: int) -> None:
        """Until nothing is outstanding, or nothing has come for as long as the patience."""
        if self.ledger.arrived > self._arrived:
            self._quiet_since, self._arrived = now, self.ledger.arrived
        if (now - self.ended > _TOLD and not self.ledger.outstanding) or now - self._quiet_since > self._patience:
            self._all_in = self._all_in or now
            if now - self._all_in >= self._linger:
                self.phase = Phase.OVER


class _Mark(NamedTuple):
    time: int
    published: int
    arrived: int

    def since(self, other: "_Mark") -> tuple[float, float]:
        """Events and deliveries a second."""
        seconds = max(self.time - other.time, 1) / _SECOND
        return (self.published - other.published) / seconds, (self.arrived - other.arrived) / seconds
