"""`make fuzz MINUTES=10`: real brokers are told things that are damaged, for as long as wanted, on every port.

What breaks something is kept in tests/fuzz/corpus; `python tests/fuzz/run.py --replay FILE` does the same again.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.conversations import from_text
from fuzz.fuzzing import Broken, Fuzzing, again, keep, narrowed, replay_all, until
from showing import Show

MIB = 1024 * 1024
PLAIN = 10.0
"""Seconds between two lines where there is no terminal."""


def progress(fuzzing, number):
    steady = sum(target.steady.published for target in fuzzing.targets.values())
    strangers, believed = (fuzzing.targets[which].grown / MIB for which in (False, True))
    return (
        f"round {number}: {fuzzing.conversations:,} conversations, {fuzzing.frames:,} frames decoded; "
        f"{steady:,} events of others served; memory {strangers:+.0f} and {believed:+.0f} MiB"
    )


async def fuzz(show, seconds, seed):
    """What came of it, in a sentence."""
    async with Fuzzing() as fuzzing:
        await replay_all(fuzzing)
        number = 0
        for number in until(seconds):
            await fuzzing.round(seed, number)
            show.look(progress(fuzzing, number))
        return progress(fuzzing, number)


async def found(show, console, broken):
    console.print("BROKEN: " + "\n".join(broken.problems), markup=False, soft_wrap=True)
    fewest = await narrowed(broken, show.look)
    file = os.path.relpath(keep(fewest.conversations))
    if len(fewest.conversations) > 1:
        console.print(f"no part of {len(fewest.conversations)} conversations does it alone", soft_wrap=True)
    console.print(f"kept; to do it again: python tests/fuzz/run.py --replay {file}", markup=False, soft_wrap=True)


async def replayed(console, file):
    """Exit status."""
    broken = await again(from_text(file.read_text()))
    console.print("BROKEN: " + "\n".join(broken.problems) if broken else "no harm", markup=False, soft_wrap=True)
    return 1 if broken else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", default=str(time.time_ns() % 1_000_000), help="the same seed, the same inputs")
    parser.add_argument("--replay", type=Path, help="a file of the corpus")
    told = parser.parse_args()
    console = Console()
    if told.replay:
        sys.exit(asyncio.run(replayed(console, told.replay)))
    console.print(f"fuzzing for {told.minutes:g} minutes with seed {told.seed} (make fuzz SEED={told.seed})")
    with Show(console, 60 * told.minutes, PLAIN) as show:
        try:
            console.print(asyncio.run(fuzz(show, 60 * told.minutes, told.seed)), markup=False, soft_wrap=True)
        except Broken as broken:
            asyncio.run(found(show, console, broken))
            sys.exit(1)
    console.print("nothing broke")


if __name__ == "__main__":
    main()
