"""The events of one link on their way out: which wait here, which the network was given, which the neighbour has read.

Heart-beats tell how far the neighbour has read: its echo of one means that it has also read what went before that one.
So does its answer to a question; that is how it is known at once, before a link is given up.
"""

from collections import deque

from mercast.protocol.messages import Forward

_BEATS = 64
"""Heart-beats without an echo that are remembered, and questions: one a second, of a neighbour that is given up after
some."""


class OnTheWay:
    def __init__(self) -> None:
        self.bytes = 0
        """Of the events that wait."""
        self._waiting: deque[tuple[Forward, bytes]] = deque()
        self._given: deque[tuple[int, int, Forward]] = deque()
        """What may be in this process yet: where it begins and ends in all that was written to the link."""
        self._events = self._read = 0
        """Events in all that the network was given, and those that the neighbour has surely read."""
        self._beats: deque[tuple[float, int]] = deque(maxlen=_BEATS)
        """When heart-beats were sent, and how many events went before each."""
        self._asked: deque[int] = deque(maxlen=_BEATS)
        """How many events went before each question that is not answered yet."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, forward: Forward, encoded: bytes) -> None:
        self._waiting.append((forward, encoded))
        self.bytes += len(encoded)

    def give(self, at: int) -> tuple[Forward, bytes]:
        """The next, to be written at this place of all that is written to the link."""
        forward, encoded = self._waiting.popleft()
        self.bytes -= len(encoded)
        self._given.append((at, at + len(encoded), forward))
        self._events += len(forward.packets)
        return forward, encoded

    def taken(self, upto: int) -> None:
        """So many of the bytes have left this process."""
        while self._given and self._given[0][1] <= upto:
            self._given.popleft()

    def beat(self, sent: float) -> None:
        self._beats.append((sent, self._events))

    def echoed(self, sent: float) -> None:
        while self._beats and self._beats[0][0] <= sent:
            self._read = max(self._read, self._beats.popleft()[1])

    def ask(self) -> None:
        self._asked.append(self._events)

    def answered(self) -> None:
        """Answers come in the order of the questions."""
        if self._asked:
            self._read = max(self._read, self._asked.popleft())

    def end(self, upto: int) -> tuple[tuple[Forward, ...], int]:
        """The link is no more. What surely has not left, for it begins beyond so many bytes; and how many other events
        the neighbour may not have read."""
        kept = [forward for begin, _, forward in self._given if begin >= upto]
        uncertain = self._events - self._read - sum(len(forward.packets) for forward in kept)
        unsent = (*kept, *(forward for forward, _ in self._waiting))
        self.__init__()  # type: ignore[misc]
        return unsent, uncertain
