"""What users note while they work, as cheaply as can be: appended to flat arrays, handed over some times a second.

Each process has its own; those of Locust's workers are sent to its master as they are. All times are nanoseconds since
1970: users of several processes share the clock of their host, across hosts clocks must agree.
"""

import struct
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

STAMP = struct.Struct(">IIIq")
"""An event's payload: the run, the publisher, the event's number there, and when it was published."""
_STAMP = np.dtype([("run", ">u4"), ("publisher", ">u4"), ("number", ">u4"), ("time", ">i8")])

_BATCH = ("publisher", "first", "count", "time", "took", "accepted")


class Change(NamedTuple):
    """Of what stands, or of a user's connection."""

    what: str
    """settled, taken back; ready, lost, back; marked."""
    number: int
    """Of the subscription or of the user."""
    time: int


class Facts:
    def __init__(self, process: int = 0) -> None:
        self._process = process
        self._batches = array("q")
        self._changes: list[Change] = []
        self.stamps, self.subscriptions, self.times = bytearray(), array("q"), array("q")
        """Of deliveries, which are many: whoever receives one appends to these three."""
        self.strangers = 0
        """Events without a stamp."""
        self.copies = 0
        """Events that clients got, however many of their subscriptions they matched."""
        self.open = 0
        """Publishers that wait for their broker's word."""

    def published(self, publisher: int, first: int, count: int, time: int, took: int, accepted: bool) -> None:
        """Events with consecutive numbers, and whether the broker has accepted them."""
        self._batches.extend((publisher, first, count, time, took, accepted))

    def change(self, what: str, number: int, time: int) -> None:
        self._changes.append(Change(what, number, time))

    def hand_over(self) -> dict[str, Any]:
        """All that was noted since, in a form that can be sent."""
        given = {
            "batches": self._batches.tobytes(),
            "stamps": bytes(self.stamps),
            "subscriptions": self.subscriptions.tobytes(),
            "times": self.times.tobytes(),
            "changes": [tuple(change) for change in self._changes],
            "strangers": self.strangers,
            "copies": self.copies,
            "process": self._process,
            "open": self.open,
        }
        for noted in (self._batches, self.subscriptions, self.times):
            del noted[:]
        self.stamps.clear()
        self._changes, self.strangers, self.copies = [], 0, 0
        return given


class Noted:
    """What was handed over, as arrays."""

    def __init__(self, given: Mapping[str, Any], run: int) -> None:
        batches = np.frombuffer(given["batches"], np.int64).reshape(-1, len(_BATCH))
        self.batches: dict[str, Any] = dict(zip(_BATCH, batches.T, strict=True))
        stamps = np.frombuffer(given["stamps"], _STAMP)
        ours = stamps["run"] == run
        self.strangers = given["strangers"] + int((~ours).sum())
        """Deliveries of events that are not of this run."""
        stamps = stamps[ours]
        self.publishers, self.numbers = stamps["publisher"].astype(np.int64), stamps["number"].astype(np.int64)
        self.subscriptions = np.frombuffer(given["subscriptions"], np.int64)[ours]
        self.latencies = np.frombuffer(given["times"], np.int64)[ours] - stamps["time"].astype(np.int64)
        self.changes = [Change(*change) for change in given["changes"]]
