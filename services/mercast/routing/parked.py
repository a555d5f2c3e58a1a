"""Events that have no route now and wait for one, each for a bounded time, all within a bounded number."""

from collections import deque

from mercast.protocol.messages import Forward


class Parked:
    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[tuple[float, Forward]] = deque()
        """With the time that each waits until; in the order that they came in, so nearly by that time."""
        self._events = 0

    def __len__(self) -> int:
        return self._events

    def add(self, until: float, forward: Forward) -> list[Forward]:
        """The oldest, if there are too many now: they wait no longer."""
        self._waiting.append((until, forward))
        self._events += len(forward.packets)
        given_up = []
        while self._events > self._most:
            given_up.append(self._next())
        return given_up

    def due(self, now: float) -> list[Forward]:
        """Those that have waited long enough; they wait no longer."""
        due = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(self._next())
        return due

    def take(self) -> list[tuple[float, Forward]]:
        """All, to be tried again."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._events = 0
        return taken

    def next_deadline(self) -> float:
        return self._waiting[0][0] if self._waiting else float("inf")

    def _next(self) -> Forward:
        _, forward = self._waiting.popleft()
        self._events -= len(forward.packets)
        return forward
