"""The way of an event through a quiet overlay, worked out once by the brokers' own code, and run at any rate.

While tables and views stay as they are, where an event goes and what it is compared with does not depend on time; only
how long it waits does. So journeys are recorded with real brokers, one event at a time, and then as many of them as
wanted queue at brokers that do one thing after the other, first come, first served. A test holds that equal to the
simulator, which would take a hundred times as long.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mercast.overlay.cluster import NUMBER
from mercast.protocol.effects import Deliver, Send
from mercast.protocol.stimuli import Publish, Received, Stimulus
from mercast.routing.core import Core
from mercast.sim.addresses import address


class Step(NamedTuple):
    """What one broker does for an event."""

    broker: int
    compared: int
    """Filters that the event is compared with here."""
    sent: int
    """Messages that go on from here."""
    delivered: int
    """Clients that get it here."""
    onward: tuple[int, ...]
    """The steps that follow, by their places in the journey."""


Journey: TypeAlias = tuple[Step, ...]
"""Begins at the publisher's broker."""

Price: TypeAlias = Callable[[Journey, Step], float]
"""Seconds that a step takes."""


def travel(brokers: Mapping[int, Core], broker: int, publish: Publish, now: float = 0.0) -> Journey:
    """Publish at a broker, and follow the event wherever it goes."""
    done: list[tuple[int, int, int, int, list[int]]] = []
    waiting: deque[tuple[int, Stimulus, list[int]]] = deque([(broker, publish, [])])
    while waiting:
        at, stimulus, siblings = waiting.popleft()
        core = brokers[at]
        before = core.work.compared
        effects = core.handle(now, stimulus)
        sends = [effect for effect in effects if isinstance(effect, Send)]
        sent = sum(len(send.messages) for send in sends)
        delivered = sum(isinstance(effect, Deliver) for effect in effects)
        onward: list[int] = []
        siblings.append(len(done))
        done.append((at, core.work.compared - before, sent, delivered, onward))
        for send in sends:
            neighbour = brokers[send.neighbour & NUMBER]
            waiting.append((neighbour.me, Received(address(neighbour, core), send.messages), onward))
    return tuple(Step(at, compared, sent, got, tuple(onward)) for at, compared, sent, got, onward in done)


@dataclass(frozen=True)
class Load:
    """What came of running journeys at some rate; arrays are by event, in the order of publishing."""

    deliveries: npt.NDArray[np.int64]
    taken: npt.NDArray[np.float64]
    """Seconds from publishing to delivery, summed over the deliveries."""
    slowest: npt.NDArray[np.float64]
    """Seconds until the last delivery."""
    busy: dict[int, float]
    """Seconds that each broker has worked."""
    seconds: float
    """How long there was publishing."""

    @property
    def latency(self) -> float:
        """The mean over all deliveries."""
        return float(self.taken.sum() / max(1, self.deliveries.sum()))

    @property
    def busiest(self) -> float:
        """How much work the busiest broker was given in each second."""
        return max(self.busy.values()) / self.seconds


def run(journeys: Sequence[Journey], interval: float, price: Price, latency: float) -> Load:
    """One journey begins after each interval; links take this latency."""
    deliveries, taken, slowest = [0] * len(journeys), [0.0] * len(journeys), [0.0] * len(journeys)
    priced = {id(journey): [price(journey, step) for step in journey] for journey in journeys}
    free_at: dict[int, float] = {}
    busy: dict[int, float] = {}
    agenda = [(number * interval, number, number, 0) for number in range(len(journeys))]
    order = count(len(journeys))
    while agenda:
        time, _, number, place = heapq.heappop(agenda)
        journey = journeys[number]
        broker, _, _, delivered, onward = journey[place]
        seconds = priced[id(journey)][place]
        done = free_at[broker] = max(time, free_at.get(broker, 0.0)) + seconds
        busy[broker] = busy.get(broker, 0.0) + seconds
        if delivered:
            after = done - number * interval
            deliveries[number] += delivered
            taken[number] += delivered * after
            slowest[number] = max(slowest[number], after)
        for following in onward:
            heapq.heappush(agenda, (done + latency, next(order), number, following))
    return Load(np.array(deliveries), np.array(taken), np.array(slowest), busy, len(journeys) * interval)
