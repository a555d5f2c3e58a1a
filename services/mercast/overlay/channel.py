"""The reliable channel between two brokers: control state, in order and once, whatever the network loses or doubles.

- A side numbers its items within a stream. The other applies them in order and answers how far it has come. If the
  answers make no progress for a while, all that was not answered is sent again, and an answer is asked for.
- A stream is (incarnation, number). A new one starts anew: the other side forgets what it had and takes the items from
  the first. A side starts one when the other was restarted, or has forgotten (it answers 0 to a stream under way).
- From time to time, when all is answered, a side sends a digest of what it has told. If the other's is not the same it
  says that it knows nothing, and is told everything anew.
- An item is *settled* when it is applied there and so are all its consequences (items that it made the other side
  send, to us or to third brokers). The answer names the applied items that are not; so a lost answer does no harm.
"""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

from mercast.protocol.messages import Complete, Control

NO_STREAM = (-1, -1)

_WINDOW = 256
"""Items in one message at most; the rest follows when these are answered."""


class Patience(NamedTuple):
    """Seconds."""

    resend_after: float = 1.0
    """Before control state that was not answered is sent again."""
    compare_every: float = 60.0
    """Between two digests. What they find should never happen: this bounds how long it lasts."""


class Arrival(NamedTuple):
    """What a message brought."""

    anew: bool
    """The other side started a new stream: forget what it had told us."""
    items: list[tuple[int, Any]]
    """New items with their numbers, in order."""
    settled: list[int]
    """Our items that are settled now."""


class Channel:
    def __init__(self, me: int, peer: int, patience: Patience) -> None:
        self.peer = peer
        self._me = me
        self._stream = NO_STREAM
        self._patience = patience
        self._unanswered: deque[tuple[int, Any]] = deque()
        self.unsettled: dict[int, Any] = {}
        """Our items that are not settled, by their numbers."""
        self._latest: dict[Any, int] = {}
        """The newest of these about each key."""
        self._next = 1
        self._sent = 0
        self._send_again = float("inf")
        self._compare_at = float("inf")
        self.heard = NO_STREAM
        """The peer's stream that we follow."""
        self._applied = 0
        self._consequences: set[int] = set()
        """The peer's items whose consequences are not settled."""
        self._owes_answer = False

    def put(self, item: Any) -> int:
        """Queue an item; its number."""
        number, self._next = self._next, self._next + 1
        self._unanswered.append((number, item))
        self.unsettled[number] = item
        if not isinstance(item, Complete):
            self._latest[item.key] = number
        return number

    def start(self, stream: tuple[int, int], items: Iterable[Any]) -> None:
        """Start a new stream with these items; they are numbered from 1."""
        self._stream = stream
        self._unanswered.clear()
        self.unsettled.clear()
        self._latest.clear()
        self._send_again = float("inf")
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
            self._owes_answer = self._owes_answer or bool(message.items) or anew or message.asks
        return Arrival(anew, items, self._answered(message))

    def _answered(self, message: Control) -> list[int]:
        if message.heard != self._stream:
            return []
        while self._unanswered and self._unanswered[0][0] <= message.applied:
            self._unanswered.popleft()
            self._send_again = float("inf")  # there is progress: wait anew
        waiting = set(message.unsettled)
        settled = sorted(n for n in self.unsettled if n <= message.applied and n not in waiting)
        for number in settled:
            item = self.unsettled.pop(number)
            if not isinstance(item, Complete) and self._latest.get(item.key) == number:
                del self._latest[item.key]
        return settled

    def waiting_for(self, key: Any) -> int | None:
        """The number of our newest item about this key, if it is not settled."""
        return self._latest.get(key)

    def waits_for_any(self, last: int) -> bool:
        """Whether one of our items up to this one is not settled."""
        return next(iter(self.unsettled), last + 1) <= last

    def is_forgotten_by(self, message: Control) -> bool:
        """The peer has confirmed items of this stream before, and now knows none: it lost what it had.

        A late message may look the same; then everything is told once more, which does no harm.
        """
        confirmed = (self._unanswered[0][0] if self._unanswered else self._next) - 1
        return confirmed > 0 and (message.heard != self._stream or message.applied == 0)

    def forget(self) -> None:
        """Say that we know nothing, so that we are told everything anew."""
        self.heard, self._applied = NO_STREAM, 0
        self._consequences.clear()
        self._owes_answer = True

    def can_compare(self, message: Control) -> bool:
        """Whether the message has a digest of just what we have applied."""
        return (message.digest is not None) and (message.stream, message.first - 1) == (self.heard, self._applied)

    def message(self, now: float, digest: Callable[[], int]) -> Control | None:
        """What to send now, if anything: new items, an answer, what was not answered in time, or a digest."""
        compare = now >= self._compare_at and not self._unanswered
        if now >= self._compare_at or self._compare_at == float("inf"):
            self._compare_at = now + self._patience.compare_every
        again = now >= self._send_again and bool(self.unsettled)
        answered = (self._unanswered[0][0] if self._unanswered else self._next) - 1
        if again:
            self._sent = answered
        if again or not self.unsettled or self._send_again == float("inf"):
            self._send_again = now + self._patience.resend_after if self.unsettled else float("inf")
        first = max(self._sent, answered) + 1
        items = tuple(
            item for _, item in islice(self._unanswered, first - 1 - answered, first - 1 - answered + _WINDOW)
        )
        if not items and not self._owes_answer and not again and not compare:
            return None
        self._sent = first + len(items) - 1
        self._owes_answer = False
        return Control(
            self._me, self.peer, 0, self._stream, first, items,
            self.heard, self._applied, tuple(sorted(self._consequences)), again, digest() if compare else None,
        )  # fmt: skip

    def next_deadline(self) -> float:
        return min(self._compare_at, self._send_again if self.unsettled else float("inf"))
