"""What an experiment is, and how its figures are judged.

Verdicts: `match` (within the tolerance of the claim), `holds` (the ordering and at least the stated factor hold),
`differs` (neither; `why` says so in a sentence).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["match", "holds", "differs"]
Scale: TypeAlias = Literal["full", "quick"]


class Row(NamedTuple):
    """One line of the scoreboard."""

    name: str
    paper: str
    ours: str
    verdict: Verdict
    why: str = ""


class Setting(NamedTuple):
    """How an experiment is to be run."""

    seed: int = 1
    scale: Scale = "full"
    progress: Callable[[str], None] = lambda _: None

    def size(self, full: int, quick: int) -> int:
        return full if self.scale == "full" else quick


Run: TypeAlias = Callable[[Setting], Iterator[Row]]


@dataclass(frozen=True)
class Experiment:
    claim: str
    title: str
    run: Run


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(
    claim: str, title: str
) -> Callable[[Callable[[Setting], Iterator[Row]]], Callable[[Setting], Iterator[Row]]]:
    """Registers a function that yields the rows of a claim."""

    def register(run: Callable[[Setting], Iterator[Row]]) -> Callable[[Setting], Iterator[Row]]:
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
