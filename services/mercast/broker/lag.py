"""How late the event loop is: a call now and then that looks at how long after its time it was made."""

import asyncio
from bisect import bisect_left
from time import monotonic

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the histogram, in seconds; what is later has a bucket of its own."""

_EVERY = 0.1
"""Seconds. A stall of this length is surely seen; looking costs microseconds."""


class LagProbe:
    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        """How many calls were so late, by `BOUNDS`."""
        self.total = 0.0
        """Seconds, of all calls together."""
        self._worst = 0.0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """In the loop to be watched."""
        self._due = monotonic() + _EVERY
        self._timer = asyncio.get_running_loop().call_later(_EVERY, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self.saw(max(0.0, monotonic() - self._due))
        self.start()

    def saw(self, lag: float) -> None:
        self.buckets[bisect_left(BOUNDS, lag)] += 1
        self.total += lag
        self._worst = max(self._worst, lag)

    def take_worst(self) -> float:
        """The longest since it was last asked for, the stall that is still going on included."""
        waiting = monotonic() - self._due if self._timer is not None else 0.0
        worst, self._worst = max(self._worst, waiting), 0.0
        return worst
