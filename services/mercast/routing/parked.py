"""Events that have no route now and wait for one, each for a bounded time, all within a bounded number and size."""

from collections import deque
from collections.abc import Iterator

from mercast.limits import Limits
from mercast.protocol.messages import Forward, Packet


class Parked:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[tuple[float, int, Forward]] = deque()
        """One event each, with the time that it waits until and the place that it is in (overlay/cluster.py); in the
        order that they came in, so nearly by that time."""
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, until: float, place: int, forward: Forward) -> list[Forward]:
        """The oldest, if there are too many now: they wait no longer."""
        for packet in forward.packets:
            self._waiting.append((until, place, forward._replace(packets=(packet,))))
            self._bytes += _size(packet)
        given_up = []
        while len(self._waiting) > self._limits.parked or self._bytes > self._limits.parked_bytes:
            given_up.append(self._next())
        return given_up

    def due(self, now: float) -> list[Forward]:
        """Those that have waited long enough; they wait no longer."""
        due = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(self._next())
        return due

    def take(self) -> Iterator[tuple[float, int, Forward]]:
        """All, to be tried again."""
        taken, self._waiting, self._bytes = self._waiting, deque(), 0
        return iter(taken)

    def next_deadline(self) -> float:
        return self._waiting[0][0] if self._waiting else float("inf")

    def _next(self) -> Forward:
        *_, forward = self._waiting.popleft()
        self._bytes -= _size(forward.packets[0])
        return forward


def _size(packet: Packet) -> int:
    """By and large: what makes an event large is its payload."""
    return max(len(packet.event.payload), len(packet.event.encoded), len(packet.event.stamped))
