"""`make soak SEEDS=20000`: fault stories for as long as wanted, each seed with the next strategy in turn.

`make soak SEEDS=1 FIRST=1234` plays one again.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[1]))
from sim.test_faults import STORIES


def play(seed: int) -> tuple[int, str, list[str]]:
    story = STORIES[seed % len(STORIES)](seed)
    story.play()
    return seed, type(story).__name__, story.problems()


def main(seeds: int, first: int) -> None:
    console, failed = Console(), 0
    with ProcessPoolExecutor() as pool:
        played = pool.map(play, range(first, first + seeds), chunksize=8)
        for seed, name, problems in track(played, f"{seeds:,} stories", total=seeds, console=console):
            if problems:
                failed += 1
                console.print(f"seed {seed}: {name}: {problems[0]}", markup=False)
                console.print(f"to play it again: make soak SEEDS=1 FIRST={seed}")
    console.print(f"{seeds - failed:,} of {seeds:,} stories without a problem")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
