"""How much is published when, and who comes and goes: steady, ramp, burst, churn, flash. Pure; time is an argument."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

_BURST, _BURSTS, _BURST_EVERY = 1.0, 5, 5.0
"""A burst is a second with five times the rate, once in five seconds."""

_CROWD_AFTER = 1 / 3
"""Of the time, until the crowd comes."""

STEP, STEEPER = 3.0, 1.3
"""Seconds of a ramp's step, and by how much its rate is multiplied from one to the next."""
_SETTLING = 0.5
"""Seconds of a step that are not looked at: what arrives then was published before."""

_BEHIND = 0.9
"""A step that publishes less than this share of its rate is not held: publishers wait for their brokers."""
_LEAST_LIMIT, _TIMES = 100.0, 5.0
"""Latency has run away when its p95 is above so many milliseconds, and so many times that of the first step."""
_ENOUGH = 2
"""Steps in a row that are not held end the ramp: one may be a hiccup of the machine."""


class Shape(Protocol):
    churns: bool
    """Whether subscriptions come and go."""

    def rate(self, seconds: float) -> float | None:
        """Events a second to be published by all together, so long after the beginning; None at the end."""

    def crowd(self, seconds: float) -> bool:
        """Whether the crowd of further subscribers is there."""


class Steady:
    churns = False

    def __init__(self, rate: float, seconds: float) -> None:
        self._rate, self._seconds = rate, seconds

    def rate(self, seconds: float) -> float | None:
        return self._rate if seconds < self._seconds else None

    def crowd(self, seconds: float) -> bool:  # noqa: ARG002
        return False


class Burst(Steady):
    def rate(self, seconds: float) -> float | None:
        rate = super().rate(seconds)
        return rate * _BURSTS if rate is not None and seconds % _BURST_EVERY >= _BURST_EVERY - _BURST else rate


class Churn(Steady):
    churns = True


class Flash(Steady):
    def crowd(self, seconds: float) -> bool:
        return seconds >= self._seconds * _CROWD_AFTER


class Step(NamedTuple):
    """Of a ramp, and what was seen in it."""

    rate: float
    published: float
    """Events a second."""
    delivered: float
    """Deliveries a second."""
    p95: float | None
    """Of the deliveries that arrived, in milliseconds."""
    began: int
    ended: int
    """Nanoseconds since 1970."""
    held: bool
    why: str = ""
    """It is not held."""


class Knee(NamedTuple):
    rate: float
    """The last one that was held."""
    step: Step | None
    """None if not even the first was."""
    reached: bool
    """Whether a higher rate was tried, and not held."""
    why: str
    """It was not."""


class Ramp:
    """The rate rises from step to step until latency runs away."""

    churns = False

    def __init__(self, rate: float, seconds: float, step: float = STEP, steeper: float = STEEPER) -> None:
        self._now, self._seconds = rate, seconds
        self._step, self._steeper = step, steeper
        self._step_began = 0.0
        self.steps: list[Step] = []

    def rate(self, seconds: float) -> float | None:
        over = seconds >= self._seconds or self._run_away()
        return None if over else self._now

    def crowd(self, seconds: float) -> bool:  # noqa: ARG002
        return False

    def settling(self, seconds: float) -> bool:
        return seconds < self._step_began + _SETTLING

    def step_over(self, seconds: float) -> bool:
        return seconds >= self._step_began + self._step

    def see(
        self, seconds: float, published: float, delivered: float, p95: float | None, times: tuple[int, int]
    ) -> None:
        """What was seen in the step that is over."""
        why = ""
        if published < _BEHIND * self._now:
            why = f"{published:,.0f} of {self._now:,.0f} events/s were published"
        elif p95 is None:
            why = "nothing was delivered"
        elif p95 > (limit := self._limit()):
            why = f"p95 latency of {p95:,.0f} ms is above {limit:,.0f} ms"
        self.steps.append(Step(self._now, published, delivered, p95, *times, not why, why))
        if not why:
            self._now *= self._steeper
        self._step_began = seconds

    def knee(self, missing_between: Callable[[int, int], int]) -> Knee | None:
        """None if no step has ended. A step of whose events a delivery is missing was not held either."""
        for at, step in enumerate(self.steps):
            missing = missing_between(step.began, step.ended)
            if missing and step.held:
                self.steps[at] = step._replace(held=False, why=f"{missing} deliveries are missing")
        if not self.steps:
            return None
        held = [step for step in self.steps if step.held]
        best = max(held, key=lambda step: step.rate, default=None)
        beyond = [step for step in self.steps if best is None or step.rate > best.rate]
        return Knee(best.rate if best else 0.0, best, bool(beyond), beyond[0].why if beyond else "")

    def _limit(self) -> float:
        first = next((step.p95 for step in self.steps if step.p95 is not None), 0.0)
        return max(_LEAST_LIMIT, _TIMES * first)

    def _run_away(self) -> bool:
        return len(self.steps) >= _ENOUGH and not any(step.held for step in self.steps[-_ENOUGH:])


SHAPES: dict[str, type[Steady]] = {"steady": Steady, "burst": Burst, "churn": Churn, "flash": Flash}
"""By name, without the ramp."""
RAMP = "ramp"


def shape_named(name: str, rate: float, seconds: float, step: float, steeper: float) -> Shape:
    return Ramp(rate, seconds, step, steeper) if name == RAMP else SHAPES[name](rate, seconds)
