"""What a broker's work costs: nothing, what is given, or what is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mercast.protocol.effects import Effect, Send
from mercast.protocol.stimuli import Stimulus
from mercast.routing.core import Core
from mercast.sim.links import count_of

Cost: TypeAlias = Callable[[Core, float, Stimulus], tuple[list[Effect], float]]
"""Lets a core handle a stimulus; the effects, and the seconds it took."""


def free(core: Core, now: float, stimulus: Stimulus) -> tuple[list[Effect], float]:
    return core.handle(now, stimulus), 0.0


@dataclass(frozen=True)
class Given:
    """Seconds per filter that an event is compared with, and per message sent."""

    per_filter: float
    per_send: float

    def __call__(self, core: Core, now: float, stimulus: Stimulus) -> tuple[list[Effect], float]:
        before = core.work.compared
        effects = core.handle(now, stimulus)
        sent = sum(count_of(effect.messages) for effect in effects if isinstance(effect, Send))
        return effects, self.seconds(core.work.compared - before, sent)

    def seconds(self, compared: int, sent: int) -> float:
        return compared * self.per_filter + sent * self.per_send


@dataclass(frozen=True)
class Measured:
    """As long as it takes here and now, by a clock such as `time.perf_counter`; no two runs are alike."""

    clock: Callable[[], float]

    def __call__(self, core: Core, now: float, stimulus: Stimulus) -> tuple[list[Effect], float]:
        started = self.clock()
        effects = core.handle(now, stimulus)
        return effects, self.clock() - started
