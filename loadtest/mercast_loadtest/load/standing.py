"""When each subscription stood settled, and when something was broken: what is due follows from both."""

from typing import Any

import numpy as np

_BITS = 42
"""Of a time in microseconds: some fifty days."""
_EVER = (1 << _BITS) - 1
_US = 1_000
"""Nanoseconds."""


class Standing:
    """Intervals of time, of many subscriptions. Times are nanoseconds, none of them before `origin`."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._open: dict[int, int] = {}
        self._closed: list[tuple[int, int]] = []
        self._edges: Any = None

    def __len__(self) -> int:
        """Subscriptions that stand now."""
        return len(self._open)

    def begin(self, number: int, time: int) -> None:
        self._open[number] = self._edge(number, time)
        self._edges = None

    def end(self, number: int, time: int) -> None:
        began = self._open.pop(number, None)
        if began is not None and (edge := self._edge(number, time)) > began:
            self._closed.append((began, edge))
        self._edges = None

    def forget(self, before: int) -> None:
        """Nobody will ask about times before this."""
        least = self._time(before)
        self._closed = [one for one in self._closed if one[1] & _EVER >= least]
        self._edges = None

    def at(self, numbers: Any, times: Any) -> Any:
        """Of arrays: did that subscription stand at that time?"""
        if self._edges is None:
            lasting = ((began, began | _EVER) for began in self._open.values())
            self._edges = np.array(sorted([*self._closed, *lasting]), np.int64).ravel()
        # Edges are beginnings and ends in turn: what has an odd number of them before it is within.
        return np.searchsorted(self._edges, self._edge(numbers, times), side="right") % 2 == 1

    def _edge(self, number: Any, time: Any) -> Any:
        return (number << _BITS) | self._time(time)

    def _time(self, time: Any) -> Any:
        return (time - self._origin) // _US


class Faults:
    """Connections that were lost and came back, and faults that somebody told of. Around these, events may be lost."""

    def __init__(self, around: int) -> None:
        self._around = around
        self._lost: dict[int, int] = {}
        self._windows: list[tuple[int, int]] = []

    def lost(self, user: int, time: int) -> None:
        self._lost.setdefault(user, time)

    def back(self, user: int, time: int) -> None:
        if user in self._lost:
            self._windows.append((self._lost.pop(user) - self._around, time + self._around))

    def marked(self, time: int) -> None:
        self._windows.append((time - self._around, time + self._around))

    def windows(self, now: int) -> list[tuple[int, int]]:
        """In order, none touches another. Who is not back yet may lose events until now."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self._windows, *((lost - self._around, now) for lost in self._lost.values())]):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return merged

    def around(self, times: Any, now: int) -> Any:
        """Of an array of times: is it around a fault?"""
        edges = np.array(self.windows(now), np.int64).ravel()
        return np.searchsorted(edges, times, side="right") % 2 == 1
