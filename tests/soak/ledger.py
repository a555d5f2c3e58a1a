"""What was published, and what has arrived of it. What is due is decided by trying every filter on every quote."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from mercast.content import Filter, Value

PERCENTILES = (50, 95, 99)

_MS = 1e-6
"""Milliseconds in a nanosecond."""


class Window(NamedTuple):
    """Nanoseconds of the monotonic clock, from a fault until all is as it should be again."""

    start: int
    end: int


class Part(NamedTuple):
    """Of the events that were published in some part of the time."""

    published: int
    due: int
    """Deliveries that should have been made."""
    delivered: int

    @property
    def missing(self) -> int:
        return self.due - self.delivered


class Report(NamedTuple):
    quiet: Part
    fault: Part
    not_accepted: int
    """Events that a broker has refused or not acknowledged; they are due to nobody."""
    doubled: int
    undue: int
    missing_times: tuple[int, ...]
    """When those events were published of which a delivery is missing away from the fault, in order."""

    @property
    def as_promised(self) -> bool:
        return not (self.quiet.missing or self.not_accepted or self.doubled or self.undue)


class Ledger:
    """Events are numbered as they are published; so are quotes and filters. Subscriptions stand from the start."""

    def __init__(self, quotes: Sequence[Mapping[str, Value]], filters: Sequence[Filter]) -> None:
        self._wanted = [[number for number, one in enumerate(filters) if one.matches(quote)] for quote in quotes]
        self._filters = len(filters)
        self._quotes = array("q")
        self._times = array("q")
        self._not_accepted: set[int] = set()
        self._deliveries = array("q")
        """Each an event and a filter, in one number."""
        self._latencies = array("q")
        self._unknown = 0
        self.due = 0

    @property
    def published(self) -> int:
        return len(self._quotes)

    @property
    def delivered(self) -> int:
        return len(self._deliveries)

    def publish(self, quote: int, now: int) -> int:
        """The number of the event."""
        self._quotes.append(quote)
        self._times.append(now)
        self.due += len(self._wanted[quote])
        return len(self._quotes) - 1

    def not_accepted(self, event: int) -> None:
        self._not_accepted.add(event)
        self.due -= len(self._wanted[self._quotes[event]])

    def deliver(self, event: int, filter: int, now: int) -> None:
        if event < len(self._times):
            self._deliveries.append(event * self._filters + filter)
            self._latencies.append(now - self._times[event])
        else:
            self._unknown += 1

    def latency(self, since: int = 0) -> list[float]:
        """Percentiles in milliseconds, of the deliveries after so many; empty if there were none."""
        some = self._latencies[since:]
        return [float(one) * _MS for one in np.percentile(some, PERCENTILES)] if some else []

    def slowest(self, of: int) -> int:
        """Nanoseconds that the slowest of so many last deliveries took."""
        return max(self._latencies[-of:], default=0)

    def report(self, *faults: Window) -> Report:
        quotes, times = np.array(self._quotes), np.array(self._times)
        accepted = np.ones(len(quotes), bool)
        accepted[list(self._not_accepted)] = False
        due = self._all_due(quotes)
        made, copies = np.unique(np.array(self._deliveries), return_counts=True)
        arrived = np.isin(due, made)
        in_fault = np.zeros(len(quotes), bool)
        for start, end in faults:
            in_fault |= (start <= times) & (times <= end)

        def part(events: Any) -> Part:
            those = (events & accepted)[due // self._filters]
            return Part(int(events.sum()), int(those.sum()), int((those & arrived).sum()))

        undue = self._unknown + int((~np.isin(made, due)).sum())
        doubled = int((copies - 1).sum())
        lost = np.unique(due[~arrived] // self._filters)
        missing_times = tuple(times[lost[(accepted & ~in_fault)[lost]]].tolist())
        return Report(part(~in_fault), part(in_fault), len(self._not_accepted), doubled, undue, missing_times)

    def _all_due(self, quotes: Any) -> Any:
        """Deliveries of all events, numbered as those that were made."""
        counts = np.array([len(one) for one in self._wanted])[quotes]
        filters = np.fromiter(chain.from_iterable(self._wanted[quote] for quote in quotes), np.int64, counts.sum())
        return np.repeat(np.arange(len(quotes)), counts) * self._filters + filters
