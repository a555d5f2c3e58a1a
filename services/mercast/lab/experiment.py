"""What an experiment is, and how its figures are judged.

Verdicts: `match` (within the tolerance of the claim), `holds` (the ordering and at least the stated factor hold),
`differs` (neither; `why` says so in a sentence).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["match", "holds", "differs"]
Scale: TypeAlias = Literal["full", "quick"]


class Row(NamedTuple):
    """One line of the scoreboard."""

    name: str
    paper: str
    ours: str
    verdict: Verdict
    why: str = ""


class Series(NamedTuple):
    """A line of a figure. One of the paper's has the name of ours that it stands beside, if there is one."""

    name: str
    points: Sequence[tuple[float, float]]
    paper: bool = False


class Figure(NamedTuple):
    """What the paper shows as a figure, or what explains a row."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False

    def plain(self) -> dict[str, Any]:
        """As it is written to result files; a point that is no number is a gap."""
        series = [
            {"name": one.name, "points": [[_or_gap(x), _or_gap(y)] for x, y in one.points], "paper": one.paper}
            for one in self.series
        ]
        return self._asdict() | {"series": series}


def _or_gap(value: float) -> float | None:
    return float(value) if isfinite(value) else None


class Setting(NamedTuple):
    """How an experiment is to be run."""

    seed: int = 1
    scale: Scale = "full"
    progress: Callable[[str], None] = lambda _: None

    def size(self, full: int, quick: int) -> int:
        return full if self.scale == "full" else quick


Run: TypeAlias = Callable[[Setting], Iterator[Row | Figure]]


@dataclass(frozen=True)
class Experiment:
    claim: str
    title: str
    run: Run


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(claim: str, title: str) -> Callable[[Run], Run]:
    """Registers a function that yields the rows of a claim, and figures if they say more."""

    def register(run: Run) -> Run:
        EXPERIMENTS[claim] = Experiment(claim, title, run)
        return run

    return register


def within(name: str, paper: float, ours: float, tolerance: float, unit: str = "", why: str = "") -> Row:
    """A figure that the algorithm fixes: match if within this share of the paper's."""
    near = abs(ours - paper) <= tolerance * abs(paper)
    reason = why if near or why else f"outside {tolerance:.0%}"
    return Row(name, f"{paper:g}{unit}", f"{ours:.4g}{unit}", "match" if near else "differs", reason)


def judged(name: str, paper: str, ours: str, good: bool, why: str = "") -> Row:
    """A figure with a rule of its own."""
    return Row(name, paper, ours, "match" if good else "differs", why)


def holds(name: str, paper: str, ours: str, good: bool, why: str = "") -> Row:
    """A figure of which the ordering, or at least a factor, is asked for."""
    return Row(name, paper, ours, "holds" if good else "differs", why)
