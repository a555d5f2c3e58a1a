"""`make soak SEEDS=20000`: fault stories for as long as wanted, each seed with the next strategy in turn.

`make soak SEEDS=2000 ONLY=MERCStory` plays those of one kind; `ONLY=Border` one fault after the other at a border, and
says how long each cost anything. `make soak SEEDS=1 FIRST=1234` plays one again. Ctrl-C ends it, with what was found.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[1]))
from sim.border import Border
from sim.test_faults import STORIES

KINDS: dict[str, Callable[[int], Any]] = {kind.__name__: kind for kind in (*STORIES, Border)}


class Played(NamedTuple):
    seed: int
    name: str
    problems: list[str]
    lost: int = 0
    window: float = 0.0
    """Of one fault: how much was lost, and until when after it."""


def play(only: str, seed: int) -> Played:
    story = (KINDS[only] if only else STORIES[seed % len(STORIES)])(seed)
    story.play()
    if isinstance(story, Border):
        return Played(seed, story.name, story.problems(), len(story.lost), story.window)
    return Played(seed, type(story).__name__, story.problems())


def main(seeds: int, first: int, only: str) -> None:
    console, done = Console(), list[Played]()
    with ProcessPoolExecutor(int(os.environ.get("JOBS", 0)) or None) as pool:
        try:
            played = pool.map(partial(play, only), range(first, first + seeds), chunksize=8)
            for one in track(played, f"{seeds:,} stories", total=seeds, console=console):
                done.append(one)
                if one.problems:
                    console.print(f"seed {one.seed}: {one.name}: {one.problems[0]}", markup=False)
                    console.print(f"to play it again: make soak SEEDS=1 FIRST={one.seed} ONLY={only}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    for name in sorted({one.name for one in done}):
        console.print(summary([one for one in done if one.name == name]))
    failed = sum(1 for one in done if one.problems)
    console.print(f"{len(done) - failed:,} of {len(done):,} stories without a problem")
    sys.exit(failed > 0)


def summary(some: list[Played]) -> str:
    failed = sum(1 for one in some if one.problems)
    told = f"{some[0].name}: {len(some) - failed:,} of {len(some):,} without a problem"
    if any(one.lost for one in some):
        lost = sum(one.lost for one in some) / len(some)
        told += f"; {lost:.1f} lost on average, until {max(one.window for one in some):.2f} s after the fault at most"
    return told


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), (sys.argv[3:] or [""])[0])
