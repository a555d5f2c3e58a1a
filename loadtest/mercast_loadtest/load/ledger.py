"""What was due, and what has arrived of it.

A delivery is due if a filter matches the event (by `Plan`) and its subscription stood settled when the event was
published; what was refused, or never acknowledged, is due to nobody. Events are judged a while after they were
published, their `patience`: until then a delivery may still come, and a subscription that was taken back meanwhile
does not count. What has not come by then is missing, unless it comes later; missing around a fault is counted apart.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mercast_loadtest.load.facts import Change, Noted
from mercast_loadtest.load.latency import Latency
from mercast_loadtest.load.plan import Plan
from mercast_loadtest.load.standing import Faults, Standing

NUMBER_BITS, PUBLISHER_BITS, SUBSCRIPTION_BITS = 30, 12, 21
"""A delivery is an event's number, its publisher and a subscription, in one number of 63 bits."""

_REMEMBERED = 15
"""Judgements whose deliveries are remembered, to know one that comes again; later it counts as `uncounted`."""

_MOST_MISSING = 1_000_000
"""That are remembered one by one, in case they come after all."""

_EMPTY = np.zeros(0, np.int64)


class Tally(NamedTuple):
    published: int
    """Accepted by a broker."""
    not_accepted: int
    due: int
    """Deliveries; those around faults are among them."""
    delivered: int
    """Of those that were due."""
    missing: int
    missing_around_faults: int
    late: int
    """Deliveries that took longer than the patience."""
    doubled: int
    undue: int
    uncounted: int
    """Deliveries that came, and nobody can say whether they were due: the subscription was about to come or to go, or
    the event was not acknowledged."""
    strangers: int
    """Deliveries of events that somebody else has published."""

    @property
    def kept(self) -> bool:
        """Whether all that is promised was kept."""
        return not (self.missing or self.doubled or self.undue)


class Ledger:
    def __init__(self, plan: Plan, run: int, now: int, *, patience: int, around: int) -> None:
        self._plan, self._run, self._patience = plan, run, patience
        self.standing, self.faults = Standing(now), Faults(around)
        self.latency, self.acknowledged = Latency(), Latency()
        self.in_pulse, self.in_step = Latency(), Latency()
        """Of deliveries since `new_pulse` and `new_step`."""
        self.ready: set[int] = set()
        """Users that are connected and set up."""
        self._highest = 0
        """Of the subscriptions' numbers so far."""
        self.arrived = self.copies = 0
        """Deliveries to subscriptions, and events to clients: one may be for several subscriptions."""
        self._open: dict[int, int] = {}
        """By process: publishers that wait for their broker's word."""
        self.published = self.not_accepted = 0
        self._late = self._doubled = self._undue = self._uncounted = self._strangers = 0
        self._due = self._delivered = 0
        self._batches: list[Any] = []
        self._arrivals: list[Any] = []
        """Publisher, number and subscription of each that is not judged yet."""
        self._judged = np.zeros(1 << PUBLISHER_BITS, np.int64)
        """By publisher: the number before which all events are."""
        self._seen: deque[Any] = deque(maxlen=2 * _REMEMBERED)
        """Of each, those that came in time and those that came later."""
        self._missing, self._missing_times, self._told = _EMPTY, _EMPTY, np.zeros(0, bool)
        self._given_up = np.zeros(2, np.int64)
        """Missing ones that are only counted: away from faults, and around them."""

    # -- what is noted -----------------------------------------------------------------------------------------------

    def take(self, given: Mapping[str, Any]) -> Noted:
        noted = Noted(given, self._run)
        for change in noted.changes:
            self._change(change)
        batches = noted.batches
        accepted = batches["accepted"] == 1
        self.published += int(batches["count"][accepted].sum())
        self.not_accepted += int(batches["count"][~accepted].sum())
        self.acknowledged.add(np.repeat(batches["took"][accepted], batches["count"][accepted]))
        self._batches.append(np.stack([batches[name] for name in ("publisher", "first", "count", "time", "accepted")]))
        self._arrivals.append(np.stack([noted.publishers, noted.numbers, noted.subscriptions]))
        self.arrived += len(noted.latencies)
        for latency in (self.latency, self.in_pulse, self.in_step):
            latency.add(noted.latencies)
        self.copies += given["copies"]
        self._open[given["process"]] = given["open"]
        self._late += int((noted.latencies > self._patience).sum())
        self._strangers += noted.strangers
        return noted

    def _change(self, change: Change) -> None:
        what, number, time = change
        match what:
            case "ready":
                self.ready.add(number)
            case "settled":
                self._highest = max(self._highest, number)
                self.standing.begin(number, time)
            case "taken back":  # what was on its way then need not have come
                self.standing.end(number, time - self._patience)
            case "lost":
                self.faults.lost(number, time)
            case "back":
                self.faults.back(number, time)
            case "marked":
                self.faults.marked(time)

    def new_pulse(self) -> None:
        self.in_pulse = Latency()

    def new_step(self) -> None:
        self.in_step = Latency()

    # -- what is due -------------------------------------------------------------------------------------------------

    def judge(self, until: int) -> None:
        """All events that were published before that time and that are known of."""
        batches = np.concatenate(self._batches, axis=1) if self._batches else np.zeros((5, 0), np.int64)
        now = batches[3] <= until
        self._batches = [batches[:, ~now]]
        before = self._judged.copy()
        np.maximum.at(self._judged, batches[0, now], batches[1, now] + batches[2, now])
        made = self._made(before)
        self._settle(*self._all_due(batches[:, now]), made)
        self.standing.forget(until)

    def _all_due(self, batches: Any) -> tuple[Any, Any, Any]:
        """Keys of the deliveries that filters ask for, when their events were published, whether they count."""
        first, count = batches[1], batches[2]
        publisher, time, accepted = (np.repeat(batches[row], count) for row in (0, 3, 4))
        number = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        wanted, event = self._plan.wanted(self._plan.place(publisher, number), self._highest)
        keys = key(publisher[event], number[event], wanted)
        counts = (accepted[event] == 1) & self.standing.at(wanted, time[event])
        return keys, time[event], counts

    def _made(self, before: Any) -> Any:
        """Keys of the deliveries whose events are judged now; of those judged before, they are dealt with."""
        arrivals = np.concatenate(self._arrivals, axis=1) if self._arrivals else np.zeros((3, 0), np.int64)
        publishers, numbers, _ = arrivals
        now = numbers < self._judged[publishers]
        later = numbers < before[publishers]
        self._arrivals = [arrivals[:, ~now]]
        self._come_later(arrivals[:, now & later])
        return key(*arrivals[:, now & ~later])

    def _come_later(self, arrivals: Any) -> None:
        keys, copies = np.unique(key(*arrivals), return_counts=True)
        self._doubled += int((copies - 1).sum())
        found = np.isin(keys, self._missing)
        came = np.isin(self._missing, keys[found])
        self._delivered += int(came.sum())
        self._drop_missing(came)
        again = np.isin(keys[~found], np.concatenate([_EMPTY, *self._seen]))
        self._doubled += int(again.sum())
        others = keys[~found][~again]
        publishers, numbers, _ = unpack(others)
        wanted, event = self._plan.wanted(self._plan.place(publishers, numbers), self._highest)
        due = np.isin(others, key(publishers[event], numbers[event], wanted))
        self._uncounted += int(due.sum())
        self._undue += int((~due).sum())
        self._seen.append(keys)

    def _settle(self, due: Any, times: Any, counts: Any, made: Any) -> None:
        keys, copies = np.unique(made, return_counts=True)
        self._doubled += int((copies - 1).sum())
        self._undue += int((~np.isin(keys, due)).sum())
        self._uncounted += int(np.isin(due[~counts], keys).sum())
        due, times = due[counts], times[counts]
        arrived = np.isin(due, keys)
        self._due += len(due)
        self._delivered += int(arrived.sum())
        self._missing = np.concatenate([self._missing, due[~arrived]])
        self._missing_times = np.concatenate([self._missing_times, times[~arrived]])
        self._told = np.concatenate([self._told, np.zeros(int((~arrived).sum()), bool)])
        self._seen.append(keys)
        self._give_up()

    def _give_up(self) -> None:
        """Memory is bounded: of the very many that are missing, the oldest will not come any more."""
        oldest = np.arange(len(self._missing)) < len(self._missing) - _MOST_MISSING
        if oldest.any():
            around = self.faults.around(self._missing_times[oldest], int(self._missing_times[-1]))
            self._given_up += np.array([(~around).sum(), around.sum()])
            self._drop_missing(oldest)

    def _drop_missing(self, which: Any) -> None:
        self._missing, self._missing_times = self._missing[~which], self._missing_times[~which]
        self._told = self._told[~which]

    # -- what came of it ---------------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> bool:
        """Whether something that is due, of the events judged so far, has not come; or an event is not judged; or a
        publisher does not know yet what became of its events."""
        return bool(len(self._missing) or sum(some.shape[1] for some in self._batches) or any(self._open.values()))

    def overdue(self, now: int) -> int:
        """Deliveries that have not come in their time and were not told of before."""
        these = ~self._told & (self._missing_times <= now - self._patience)
        self._told |= these
        return int(these.sum())

    def missing_times(self, now: int) -> Any:
        """When the events were published of which a delivery is missing, away from faults."""
        return np.sort(self._missing_times[~self.faults.around(self._missing_times, now)])

    def tally(self, now: int) -> Tally:
        missing = len(self.missing_times(now))
        given_up, given_up_around = self._given_up.tolist()
        return Tally(
            self.published, self.not_accepted, self._due, self._delivered,
            missing + given_up, len(self._missing) - missing + given_up_around,
            self._late, self._doubled, self._undue, self._uncounted, self._strangers,
        )  # fmt: skip


def key(publisher: Any, number: Any, subscription: Any) -> Any:
    return (((number << PUBLISHER_BITS) | publisher) << SUBSCRIPTION_BITS) | subscription


def unpack(keys: Any) -> tuple[Any, Any, Any]:
    """Publishers, numbers, subscriptions."""
    events = keys >> SUBSCRIPTION_BITS
    return (
        events & ((1 << PUBLISHER_BITS) - 1),
        events >> PUBLISHER_BITS,
        keys & ((1 << SUBSCRIPTION_BITS) - 1),
    )
