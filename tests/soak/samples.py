"""What the brokers are like from outside, every few seconds: memory, and how much their tables hold."""

import asyncio
import csv
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import NamedTuple
from urllib.error import URLError

from soak.flatness import LEAST, MEMORY, TABLE, judge
from system.live import ask, rss

MEMORY_OF = "memory"
ALL = "all brokers together"
PLACED = ("clients", "advertisements", "subscriptions", "told", "heard", "R-SRT", "R-PRT")
"""Tables that grow at one broker as they shrink at another, when clients move: only the sum is flat."""


class Sample(NamedTuple):
    seconds: float
    """The same of all that were looked at together."""
    broker: int
    pid: int
    sizes: dict[str, int]


class Sampling:
    def __init__(self, brokers, every):
        self._brokers, self._every = brokers, every
        self._began = monotonic()
        self.samples = []

    async def run(self):
        while True:
            now = monotonic() - self._began
            for broker in self._brokers.values():
                sample = await asyncio.to_thread(self._look, broker, now)
                if sample is not None:
                    self.samples.append(sample)
            await asyncio.sleep(self._every)

    def _look(self, broker, now):
        """None of a broker that is not there now, or not yet."""
        process = broker.process
        try:
            told = ask(broker, "tables")
            memory = rss(process.pid)
        except (AttributeError, URLError, OSError, ValueError):
            return None
        sizes = {MEMORY_OF: memory, **told["counts"], **told["tables"], **told["kept"]}
        return Sample(now, broker.id, process.pid, sizes)

    # -- what it shows -----------------------------------------------------------------------------------------------

    def write(self, folder):
        names = list(self.samples[0].sizes) if self.samples else []
        with (folder / "samples.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["seconds", "broker", "pid", *names])
            for seconds, broker, pid, sizes in self.samples:
                table.writerow([round(seconds, 1), broker, pid, *(sizes[name] for name in names)])


def verdicts(samples):
    """By (who, what): of every table, and of the memory of brokers that were never started anew."""
    found = {}
    for broker in sorted({sample.broker for sample in samples}):
        mine = [sample for sample in samples if sample.broker == broker]
        same = len({sample.pid for sample in mine}) == 1
        for name in mine[0].sizes if len(mine) >= LEAST else ():
            if name == MEMORY_OF and same:
                found[f"broker {broker}", name] = judge([sample.sizes[name] for sample in mine], MEMORY)
            elif name not in (MEMORY_OF, *PLACED):
                found[f"broker {broker}", name] = judge([sample.sizes[name] for sample in mine], TABLE)
    together = [list(some) for _, some in groupby(samples, attrgetter("seconds"))]
    for name in PLACED if len(together) >= LEAST else ():
        sums = [sum(sample.sizes.get(name, 0) for sample in some) for some in together]
        found[ALL, name] = judge(sums, TABLE)
    return found


def growth(verdicts):
    """A sentence for each curve that is not flat."""
    return [
        f"{who}: {_told(name, one.before)} in the second quarter of the time, and {_told(name, one.after)} "
        f"in the last; flat would be at most {_told(name, one.allowed)}"
        for (who, name), one in verdicts.items()
        if not one.flat
    ]


def _told(name, size):
    return f"{size / 2**20:.1f} MiB of memory" if name == MEMORY_OF else f"{size:.0f} {name}"


def as_json(verdicts):
    return [{"who": who, "what": name, **one._asdict()} for (who, name), one in verdicts.items()]
