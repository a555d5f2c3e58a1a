"""Into Locust's own statistics, many requests at once: one by one, each would cost more than what it tells of."""

import time
from typing import Any

import numpy as np
from locust.stats import RequestStats, StatsEntry, StatsError, bucket_response_time

from mercast_loadtest.load.facts import Noted

PUBLISH, DELIVER, SUBSCRIBE, CONNECT = "publish", "deliver", "subscribe", "connect"
METHOD = "mercast"
_MS = 1e-6


def record(stats: RequestStats, noted: Noted) -> None:
    """Publishes that were acknowledged, and deliveries."""
    batches = noted.batches
    accepted = batches["accepted"] == 1
    took = np.repeat(batches["took"][accepted], batches["count"][accepted])
    for name, nanoseconds in ((PUBLISH, took), (DELIVER, noted.latencies)):
        if len(nanoseconds):
            _add(stats, _entry(stats, name, nanoseconds * _MS))


def failed(stats: RequestStats, name: str, error: str, count: int = 1) -> None:
    """So many that have no response time, for they never came to an end."""
    if not count:
        return
    entry = StatsEntry(stats, name, METHOD)
    second = int(time.time())
    entry.num_requests = entry.num_none_requests = entry.num_failures = count
    entry.num_reqs_per_sec[second] = entry.num_fail_per_sec[second] = count
    entry.last_request_timestamp = time.time()
    _add(stats, entry)
    key = StatsError.create_key(METHOD, name, error)
    told = stats.errors.setdefault(key, StatsError(METHOD, name, error))
    told.occurred()
    told.occurrences += count - 1


def _entry(stats: RequestStats, name: str, milliseconds: Any) -> StatsEntry:
    entry = StatsEntry(stats, name, METHOD)
    now = time.time()
    entry.num_requests = len(milliseconds)
    entry.num_reqs_per_sec[int(now)] = len(milliseconds)
    entry.last_request_timestamp = now
    # Locust's own are floats too, whatever it says.
    entry.total_response_time = float(milliseconds.sum())  # type: ignore[assignment]
    entry.min_response_time = float(milliseconds.min())  # type: ignore[assignment]
    entry.max_response_time = float(milliseconds.max())  # type: ignore[assignment]
    for value, count in zip(*np.unique(np.rint(milliseconds), return_counts=True), strict=True):
        entry.response_times[bucket_response_time(int(value))] += int(count)
    return entry


def _add(stats: RequestStats, entry: StatsEntry) -> None:
    stats.entries[entry.name, METHOD].extend(entry)
    stats.total.extend(entry)
