"""`make soak SEEDS=20000`: fault stories for as long as wanted, each seed with the next strategy in turn."""

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


def main(seeds: int) -> None:
    console, failed = Console(), 0
    with ProcessPoolExecutor() as pool:
        played = pool.map(play, range(1_000, 1_000 + seeds), chunksize=8)
        for seed, name, problems in track(played, f"{seeds:,} stories", total=seeds, console=console):
            if problems:
                failed += 1
                console.print(f"seed {seed}: {name}: {problems[0]}")
                console.print(f'replay: python -c "from sim.test_faults import {name} as S; s = S({seed}); s.play()"')
    console.print(f"{seeds - failed:,} of {seeds:,} stories without a problem")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
