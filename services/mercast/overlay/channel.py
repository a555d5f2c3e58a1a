"""The reliable channel between two brokers: control state, in order and once, whatever the network loses or doubles.

- A side numbers its items within a stream. The other applies them in order and answers how far it has come; what is
  not answered in time is sent again.
- A stream is (incarnation, number). A new one starts anew: the other side forgets what it had and takes the items from
  the first. A side starts one when the other was restarted, or has forgotten (it answers 0 to a stream under way).
- An item is *settled* when it is applied there and so are all its consequences (items that it made the other side
  send, to us or to third brokers). The answer names the applied items that are not; so a lost answer does no harm.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from mercast.protocol.messages import Control

NO_STREAM = (-1, -1)

_WINDOW = 256
"""Items in one message at most; the rest follows when these are answered."""


class Arrival(NamedTuple):
    """What a message brought."""

    anew: bool
    """The other side started a new stream: forget what it had told us."""
    items: list[tuple[int, Any]]
    """New items with their numbers, in order."""
    settled: list[int]
    """Our items that are settled now."""


class Channel:
    def __init__(self, me: int, peer: int, resend_after: float) -> None:
        self.peer = peer
        self._me = me
        self._stream = NO_STREAM
        self._resend_after = resend_after
        self._unanswered: deque[tuple[int, Any]] = deque()
        self._unsettled: set[int] = set()
        self._next = 1
        self._sent = 0
        self._send_again = float("inf")
        self.heard = NO_STREAM
        """The peer's stream that we follow."""
        self._applied = 0
        self._consequences: set[int] = set()
        """The peer's items whose consequences are not settled."""
        self._owes_answer = False

    @property
    def unsettled(self) -> bool:
        return bool(self._unsettled)

    def put(self, item: Any) -> int:
        """Queue an item; its number."""
        number, self._next = self._next, self._next + 1
        self._unanswered.append((number, item))
        self._unsettled.add(number)
        return number

    def start(self, stream: tuple[int, int], items: Iterable[Any]) -> None:
        """Start a new stream with these items; they are numbered from 1."""
        self._stream = stream
        self._unanswered.clear()
        self._unsettled.clear()
        self._next, self._sent = 1, 0
        for item in items:
            self.put(item)

    def await_consequences(self, number: int) -> None:
        """The peer's item is applied, but not settled yet."""
        self._consequences.add(number)

    def settle(self, stream: tuple[int, int], number: int) -> None:
        """All consequences of the peer's item are settled."""
        if stream == self.heard and number in self._consequences:
            self._consequences.discard(number)
            self._owes_answer = True

    def receive(self, message: Control) -> Arrival:
        anew = message.stream > self.heard
        if anew:
            self.heard, self._applied = message.stream, 0
            self._consequences.clear()
        items: list[tuple[int, Any]] = []
        if message.stream == self.heard:
            for number, item in enumerate(message.items, message.first):
                if number == self._applied + 1:
                    self._applied = number
                    items.append((number, item))
            self._owes_answer = self._owes_answer or bool(message.items) or anew
        return Arrival(anew, items, self._answered(message))

    def _answered(self, message: Control) -> list[int]:
        if message.heard != self._stream:
            return []
        while self._unanswered and self._unanswered[0][0] <= message.applied:
            self._unanswered.popleft()
        waiting = set(message.unsettled)
        settled = sorted(n for n in self._unsettled if n <= message.applied and n not in waiting)
        self._unsettled.difference_update(settled)
        return settled

    def is_forgotten_by(self, message: Control) -> bool:
        """The peer has confirmed items of this stream before, and now knows none: it lost what it had.

        A late message may look the same; then everything is told once more, which does no harm.
        """
        confirmed = (self._unanswered[0][0] if self._unanswered else self._next) - 1
        return confirmed > 0 and (message.heard != self._stream or message.applied == 0)

    def message(self, now: float) -> Control | None:
        """What to send now, if anything: new items, an answer, or what was not answered in time."""
        again = now >= self._send_again
        start = 0 if again else self._sent
        items = [item for number, item in self._unanswered if number > start][:_WINDOW]
        first = next((number for number, _ in self._unanswered if number > start), self._next)
        if not items and not self._owes_answer and not (again and self._unsettled):
            return None
        self._sent = max(self._sent, first + len(items) - 1)
        self._owes_answer = False
        self._send_again = now + self._resend_after if self._unsettled else float("inf")
        return Control(
            self._me, self.peer, 0, self._stream, first, tuple(items),
            self.heard, self._applied, tuple(sorted(self._consequences)),
        )  # fmt: skip

    def next_deadline(self) -> float:
        return self._send_again if self._unsettled else float("inf")
