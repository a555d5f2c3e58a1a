"""Measures the simulator: D-DBR events from one broker to all others, µs per hop, beside splitting their lists alone.

A hop is a message from a broker to a neighbour. The yardstick sends the same lists over the same overlay by the
brokers' own splits, and does nothing else: no matching, no delivery, no window of seen events, no rows, no time.
"""

from dataclasses import dataclass
from time import perf_counter

from rich.console import Console
from rich.progress import track

from mercast import garbage
from mercast.content import Filter
from mercast.lab.overlays import Walk, random_overlay
from mercast.lab.worlds import edges, world
from mercast.protocol.stimuli import Advertise, Batch, Publish, Stimulus, Subscribe
from mercast.routing.destination.ddbr import DDBR

DEGREE = 6
TOGETHER = 100
"""Events that are published at a time, as a broker reads them from a busy publisher."""

_console = Console(stderr=True)


@dataclass(frozen=True)
class Result:
    brokers: int
    events: int
    hops: int
    deliveries: int
    setup_seconds: float
    seconds: float
    us_per_hop: float
    yardstick_us_per_hop: float
    ratio: float


def measure(brokers: int, events: int, seed: int) -> Result:
    garbage.seldom()
    topology = random_overlay(brokers, DEGREE, seed)
    asked: list[tuple[int, Stimulus]] = [(0, Advertise("p", 1, "quote", Filter()))]
    asked += [(broker, Subscribe("s", 1, "quote", Filter())) for broker in range(brokers)]
    started = perf_counter()
    simulator = world(DDBR, edges(topology), asked)
    setup = perf_counter() - started
    garbage.settled()
    before, deliveries, seconds = simulator.messages_sent, 0, 0.0
    for first in track(range(0, events, TOGETHER), "simulating", console=_console, transient=True):
        numbers = range(first, min(first + TOGETHER, events))
        batch = Batch(tuple(Publish("p", 2 + number, "quote", {"x": number}, 0) for number in numbers))
        started = perf_counter()
        simulator.do(0, batch)
        simulator.run(simulator.now + 1)
        seconds += perf_counter() - started
        deliveries += len(simulator.deliveries)
        for record in (simulator.deliveries, simulator.rows, simulator.receipts):
            record.clear()
    hops = simulator.messages_sent - before
    yardstick = _walked(Walk(topology), min(events, TOGETHER))
    us_per_hop = 1e6 * seconds / hops
    return Result(*(brokers, events, hops, deliveries, setup, seconds), us_per_hop, yardstick, us_per_hop / yardstick)


def _walked(walk: Walk, events: int) -> float:
    """µs per hop; the first event fills the caches of splits, as it does in the simulator."""
    others = walk.topology.brokers[1:]
    walk.send(0, others)
    before = walk.lengths.total()
    started = perf_counter()
    for _ in range(events):
        walk.send(0, others)
    return 1e6 * (perf_counter() - started) / (walk.lengths.total() - before)
