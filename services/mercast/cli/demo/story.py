"""What happens in a run of the demo, and when: kept as it comes, for the terminal and for the report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, time


@dataclass(frozen=True)
class Sample:
    """What the page showed at some time."""

    at: float
    published: float
    delivered: float
    up: int


@dataclass
class Killed:
    broker: int
    cluster: str
    at: float
    time: float
    """By the clock on the wall."""
    shown_after: float | None = None
    """Seconds, until the page showed it dead."""


@dataclass
class Story:
    """Times are seconds since the beginning."""

    clock: Callable[[], float] = monotonic
    started: float = field(default_factory=time)
    """By the clock on the wall."""
    news: list[tuple[float, str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    page_after: float | None = None
    load_after: float | None = None
    figures_after: float | None = None
    killed: Killed | None = None
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes by part, when it was most in all."""
    took: float = 0.0

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def now(self) -> float:
        return self.clock() - self._began

    def remember(self, memory: dict[str, int]) -> None:
        if sum(memory.values()) > sum(self.memory.values()):
            self.memory = memory
