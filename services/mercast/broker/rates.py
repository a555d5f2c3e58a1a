"""How much may be published in a second. Time is an argument.

Whoever publishes more is slowed: what was read of it waits, and no more is read, so that TCP slows the sender. Whoever
does so for long is refused what is too much, but never the only event that waits: a publisher that waits for each
receipt is only ever slowed.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

BURST = 1.0
"""Seconds whose worth may come at once after a rest: programs publish in bursts."""

PATIENCE = 5.0
"""Seconds in a row that somebody is slowed before it is refused: less than clients wait for an answer."""

MOMENT = 0.05
"""Seconds that are waited beyond the least: many turns for a few events each would cost more than the events."""

LONGEST = 1.0
"""Seconds that somebody is not read at a stretch: what else it says must be heard."""

EVENTS, BYTES = "publish_events_per_second", "publish_bytes_per_second"
"""Configuration keys, and those of a token."""

_WHAT = {EVENTS: "events", BYTES: "bytes"}


class Pace:
    """One limit, and how far ahead of it those are whom it holds for."""

    __slots__ = ("_due", "_key", "_rate", "_whose")

    def __init__(self, whose: str, key: str, rate: int, since: float = float("-inf")) -> None:
        """`since` it holds: a rest before that does not count."""
        self._whose, self._key, self._rate = whose, key, rate
        self._due = since
        """When all that was published would have been, at the rate."""

    @property
    def name(self) -> str:
        """For metrics: which limit it is, not whose."""
        return f"{self._whose.removeprefix('this ').split()[0]} {self._key}"

    @property
    def reason(self) -> str:
        most = f"{self._rate} {_WHAT[self._key]} a second ({self._key})"
        return f"{self._whose} publishes more than {most}; refused until it is slower"

    def ahead(self, now: float) -> float:
        """Seconds; negative if there is something left."""
        return max(self._due, now - BURST) - now

    def fitting(self, now: float, sizes: Sequence[int]) -> int:
        """How many of these events, one after the other, find that it is not ahead."""
        left = -self.ahead(now) * self._rate
        if left < 0 or not sizes:
            return 0
        if self._key == EVENTS:
            return min(len(sizes), int(left) + 1)
        return bisect_right(list(accumulate(sizes[:-1], initial=0)), left)

    def take(self, now: float, sizes: Sequence[int]) -> None:
        amount = len(sizes) if self._key == EVENTS else sum(sizes)
        self._due = now + self.ahead(now) + amount / self._rate


class Verdict(NamedTuple):
    """On events that were read together."""

    room: int
    """How many may go on, from the first."""
    wait: float = 0.0
    """Seconds before more is read."""
    against: Pace | None = None
    """Why the others are refused; if None, they wait."""


class Rates:
    """The limits that hold for one publisher."""

    def __init__(self, paces: Iterable[Pace]) -> None:
        self.paces = tuple(paces)
        self._since = self._until = float("-inf")
        """How long it has been too fast, without a rest of BURST seconds."""

    def judge(self, now: float, sizes: Sequence[int]) -> Verdict:
        """Of publishes of these sizes; those that may go on are counted."""
        room = min(pace.fitting(now, sizes) for pace in self.paces)
        if room == len(sizes):
            for pace in self.paces:
                pace.take(now, sizes)
            return Verdict(room, self._wait(now))
        against = min(self.paces, key=lambda pace: pace.fitting(now, sizes))
        for pace in self.paces:
            pace.take(now, sizes[:room])
        wait = max(MOMENT, self._wait(now))
        if now - self._until > BURST:
            self._since = now
        self._until = now + wait
        return Verdict(room, wait, against if len(sizes) > 1 and now - self._since > PATIENCE else None)

    def _wait(self, now: float) -> float:
        ahead = max(pace.ahead(now) for pace in self.paces)
        return min(ahead + MOMENT, LONGEST) if ahead > 0 else 0.0


def paces(whose: str, events: int, bytes: int, since: float = float("-inf")) -> tuple[Pace, ...]:
    """Of those that are limited: 0 is no limit."""
    return tuple(Pace(whose, key, rate, since) for key, rate in ((EVENTS, events), (BYTES, bytes)) if rate)
