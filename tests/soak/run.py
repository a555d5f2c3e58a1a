"""`make soak-live MINUTES=30`: real brokers under steady load and churn; restarts, kills. Memory and tables stay flat.

Four brokers in a ring; every other one is never stopped. Standing subscribers and visitors keep account of every event:
none may be doubled, and none missing but around a kill. Samples, a plot and a summary are written to a folder.
"""

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

import aiohttp
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))
from showing import Show
from soak.course import EVERY, Course
from soak.load import Load
from soak.plot import plot
from soak.samples import MEMORY_OF, Sampling, as_json, growth, verdicts
from soak.visitors import Passers, Visitors
from soak.watch import Watch
from system.live import Mesh

import mercast

RING = ((1, 2), (2, 3), (3, 4), (4, 1))
STAY, LEAVE = (1, 3), (2, 4)
"""What is said between those that stay goes by way of those that do not."""

SUBSCRIBERS, RATE, VISITORS, PASSERS = 12, 200.0, 6, 12
SAMPLES = 400
"""About so many, and none sooner than a second after another."""

MIB = 1024 * 1024
DECLARED = {"symbol": "string", "price": "float"}
PLAIN = 30.0
"""Seconds between two lines where there is no terminal."""


async def soak(mesh, show, seconds, every, seed):
    """Everything that kept account."""
    homes = [broker.client for broker in mesh.brokers.values()]
    load = Load(homes, [mesh[id].client for id in STAY], SUBSCRIBERS, RATE, seed)
    async with aiohttp.ClientSession() as http, mercast.connect(mesh[1].client) as first:
        await first.declare("soak.declared", DECLARED)
        async with load:
            course = Course(mesh, LEAVE, load, Watch(mesh, http), show.tell)
            visitors = Visitors(homes, VISITORS, course.disturbed, seed)
            passers = Passers([mesh[id].client for id in STAY], PASSERS)
            sampling = Sampling(mesh.brokers, max(1.0, seconds / SAMPLES))
            watching = asyncio.create_task(sampling.run())
            try:
                async with asyncio.TaskGroup() as work:
                    work.create_task(load.run())
                    work.create_task(visitors.run())
                    work.create_task(passers.run())
                    going = work.create_task(course.run(seconds, every))
                    while not going.done():
                        await asyncio.wait([going], timeout=1.0)
                        show.look(_progress(load, visitors, passers, course, sampling))
                        if course.ended():
                            going.cancel()
                    load.stop()
                    visitors.stop()
                    passers.stop()
            finally:
                watching.cancel()
    return load, visitors, passers, course, sampling


def _progress(load, visitors, passers, course, sampling):
    newest = {sample.broker: sample.sizes[MEMORY_OF] // MIB for sample in sampling.samples[-4:]}
    memory = " ".join(f"{broker}: {size}" for broker, size in sorted(newest.items()))
    return (
        f"{load.ledger.published:,} published, {load.ledger.delivered:,} delivered; {visitors.visits:,} visits; "
        f"{passers.passed:,} passed by; "
        f"{course.restarts} restarts, {course.kills} kills; MiB by broker {memory}"
    )


def problems(load, visitors, passers, course, sampling):
    report = load.ledger.report(*course.windows)
    found = [
        *course.problems,
        *course.ended(),
        *visitors.problems,
        *passers.problems,
        *growth(verdicts(sampling.samples)),
    ]
    for count, what in (
        (report.quiet.missing, "deliveries are missing away from kills"),
        (report.not_accepted, "events were not accepted"),
        (report.doubled, "deliveries were doubled"),
        (report.undue, "deliveries were not due"),
    ):
        if count:
            found.append(f"{count} {what}")
    return found


def summary(load, visitors, passers, course, sampling):
    report = load.ledger.report(*course.windows)
    return {
        "published": load.ledger.published,
        "due": report.quiet.due,
        "delivered": report.quiet.delivered,
        "around kills": {"due": report.fault.due, "missing": report.fault.missing},
        "doubled": report.doubled,
        "latency ms (p50, p95, p99)": load.ledger.latency(),
        "visits": visitors.visits,
        "visits disturbed by kills": visitors.excused,
        "events of visitors": visitors.events,
        "passed by": passers.passed,
        "restarts": course.restarts,
        "kills": course.kills,
        "curves": as_json(verdicts(sampling.samples)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=EVERY, help="seconds from one restart to the next")
    parser.add_argument("--folder", type=Path, default=Path("soak"))
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    logging.getLogger("mercast.client").addHandler(logging.NullHandler())  # what matters is counted
    console, seconds = Console(highlight=False), 60 * told.minutes
    told.folder.mkdir(parents=True, exist_ok=True)
    found, kept = [], ()
    try:
        with Mesh(len({*STAY, *LEAVE}), RING, matcher="index") as mesh, Show(console, seconds, PLAIN) as show:
            kept = asyncio.run(soak(mesh, show, seconds, told.every, told.seed))
    except AssertionError as error:  # brokers that do not come together, or have logged an error
        found.append(str(error))
    if kept:
        found += problems(*kept)
        write(told.folder, found, *kept)
        report(console, told.folder)
    for problem in found:
        console.print(f"NOT AS PROMISED: {problem}", markup=False, soft_wrap=True)
    sys.exit(1 if found else 0)


def write(folder, found, load, visitors, passers, course, sampling):
    sampling.write(folder)
    plot(sampling.samples, course.events, folder / "soak.html")
    said = summary(load, visitors, passers, course, sampling) | {"problems": found}
    (folder / "summary.json").write_text(json.dumps(said, indent=1) + "\n")


def report(console, folder):
    said = json.loads((folder / "summary.json").read_text())
    for one in said.pop("curves"):
        if one["what"] == MEMORY_OF:
            before, after = one["before"] / MIB, one["after"] / MIB
            console.print(
                f"memory of {one['who']}: {before:.1f} MiB in the second quarter, {after:.1f} MiB in the last"
            )
    del said["problems"]
    for name, value in said.items():
        console.print(f"{name}: {value}", markup=False, soft_wrap=True)
    console.print(f"samples.csv, soak.html and summary.json are in {folder}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
