"""One connection to a broker, without its socket: bytes in, bytes and events out, futures fulfilled."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from mercast.client.errors import MercastError, Refused, Unacknowledged
from mercast.client.event import Event, Hop, Receipt
from mercast.client.seen import Handed
from mercast.client.standing import EVENT_BYTES, Awaited, Handle, Wanted
from mercast.wire import replies, requests
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError, frame
from mercast.wire.hello import VERSIONS, field, hello, read_json

LAST_REQUEST = 0xF000_0000
"""Requests have numbers of 32 bits; a connection that comes near their end is changed for a new one."""

BEAT = 5.0
"""Seconds without a word before this side asks whether the broker is there."""

SILENCE = 3 * BEAT
"""Seconds without a word after which it is taken for lost."""


class Welcome(NamedTuple):
    """What a broker says of itself."""

    broker: int
    incarnation: int
    client: str
    """How it names this client."""
    brokers: tuple[str, ...]
    """Where others are."""


class Batch:
    """Events published together, and what became of each."""

    __slots__ = ("future", "left", "outcomes")

    def __init__(self, count: int, future: Any) -> None:
        self.outcomes: list[Receipt | MercastError | None] = [None] * count
        self.left = count
        self.future = future
        """Its result is the outcomes."""

    def put(self, at: int, outcome: Receipt | MercastError) -> None:
        self.outcomes[at] = outcome
        self.left -= 1
        if not self.left and not self.future.done():
            self.future.set_result(self.outcomes)


class Session:
    def __init__(self, name: str, token: str | None, future: Callable[[], Any], handed: Handed[Wanted]) -> None:
        self.welcome: Welcome | None = None
        self.last_words: Refused | None = None
        """The broker's, before it closes."""
        self.moving: tuple[str, ...] | None = None
        """Where to go from here, once it is time to leave."""
        self.drained = False
        """Whether the broker said so."""
        self.hops: Callable[[Hop], None] | None = None
        """Who wants to know of traced events."""
        self._make_future = future
        self._handed = handed
        said = {} if token is None else {"token": token}
        self._out: list[bytes] = [hello(mercast=VERSIONS, role="client", name=name, **said)]
        self._framing = Framing()
        self._next = 1
        self._published: dict[int, tuple[Batch, int]] = {}
        self._standing: dict[int, Handle] = {}
        """By the requests that made them here."""
        self._numbers: dict[Handle, int] = {}
        self._undone: dict[int, Awaited] = {}
        self._unsettled: set[int] = set()
        self._when_settled: list[Awaited] = []
        self._when_idle: list[Awaited] = []
        self._matched: dict[tuple[int, ...], tuple[Wanted, ...]] = {}
        self._does: dict[int, Callable[[bytes], None]] = {
            Kind.RECEIPTS: self._receipts,
            Kind.ANSWER: self._answer,
            Kind.SETTLED: self._settled,
            Kind.REPORTED: self._reported,
            Kind.DRAIN: self._drain,
            Kind.PING: self._ping,
            Kind.HELLO: self._hello,
            Kind.ERROR: self._error,
        }

    def is_with(self, other: "Session") -> bool:
        """Whether both speak with the same broker, not restarted in between."""
        mine, theirs = self.welcome, other.welcome
        return mine is not None and theirs is not None and mine[:2] == theirs[:2]

    # -- bytes -------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Events go to their subscriptions, answers to those who wait. ProtocolError: this is no broker's talk."""
        for kind, body in self._framing.feed(data):
            if kind == Kind.EVENT:
                self._event(body)
            else:
                does = self._does.get(kind)
                if does is not None:
                    does(body)

    def take(self) -> bytes:
        """What is to be sent now."""
        out, self._out = self._out, []
        return b"".join(out)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._published or self._unsettled or self._undone)

    # -- requests ----------------------------------------------------------------------------------------------------

    def publish(self, contents: Sequence[bytes | MercastError], traced: bool = False) -> Batch:
        """Events as bytes; errors among them are outcomes already."""
        batch = Batch(len(contents), self._make_future())
        for at, content in enumerate(contents):
            if not isinstance(content, bytes):
                batch.put(at, content)
                continue
            request = self._number()
            said = requests.publish(request, content, traced)
            if len(said) > requests.CONTENT_BYTES:
                batch.put(at, _too_large(said, requests.CONTENT_BYTES))
                continue
            self._published[request] = batch, at
            self._out.append(said)
        if not contents:
            batch.future.set_result([])
        return batch

    def ask(self, handles: Iterable[Handle]) -> None:
        """Ask for what stands, for the first time or anew."""
        for handle in handles:
            request = self._number()
            said = handle.frame(request)
            if len(said) > FRAME_BYTES:
                handle.refused(str(_too_large(said, FRAME_BYTES)))
                continue
            handle.missing = None
            self._standing[request], self._numbers[handle] = handle, request
            self._unsettled.add(request)
            self._out.append(said)

    def undo(self, handle: Handle) -> Any:
        """Take back what was asked for; the future is fulfilled when the broker has answered."""
        future = self._make_future()
        made = self._numbers.get(handle)
        if made is not None:
            self._forget(made)
            request = self._number()
            said = handle.undoing(request, made)
            if said:
                self._undone[request] = future
                self._out.append(said)
                return future
        future.set_result(None)
        return future

    def settled(self) -> Any:
        """A future that is fulfilled as soon as nothing that was asked for is unsettled."""
        return self._wait_in(self._when_settled, not self._unsettled)

    def idle(self) -> Any:
        """A future that is fulfilled as soon as all that was published is acknowledged."""
        return self._wait_in(self._when_idle, not self._published)

    def ask_for_life(self) -> None:
        self._out.append(frame(Kind.PING, b""))

    def leave(self) -> None:
        self._out.append(requests.leave())

    def lost(self, why: str) -> None:
        """The connection is no more. What stands will be asked for elsewhere; publishes are told of it."""
        for batch, at in list(self._published.values()):
            batch.put(
                at,
                Unacknowledged(f"not acknowledged: {why}; the event may have been delivered or not, and is not resent"),
            )
        for future in self._undone.values():
            _fulfil(future)  # gone with the connection
        self._published.clear()
        self._undone.clear()
        self._unsettled.clear()
        self._wake(self._when_idle)
        self._wake(self._when_settled)

    def _number(self) -> int:
        number = self._next
        self._next += 1
        if number >= LAST_REQUEST and self.moving is None:
            self.moving = ()
        return number

    def _wait_in(self, line: list[Awaited], now: bool) -> Any:
        future = self._make_future()
        if now:
            future.set_result(None)
        else:
            line.append(future)
        return future

    def _wake(self, line: list[Awaited]) -> None:
        for future in line:
            _fulfil(future)
        line.clear()

    # -- what the broker says ----------------------------------------------------------------------------------------

    def _hello(self, body: bytes) -> None:
        said = read_json(body)
        version = field(said, "mercast", int)
        if not VERSIONS[0] <= version <= VERSIONS[1]:
            raise ProtocolError(
                f"the broker chose version {version} of the wire; this client speaks {VERSIONS[0]} to {VERSIONS[1]}"
            )
        brokers = field(said, "brokers", list, [])
        self.welcome = Welcome(
            *(field(said, "broker", int), field(said, "incarnation", int), field(said, "client", str)),
            tuple(one for one in brokers if isinstance(one, str)),
        )
        self._framing.limit = FRAME_BYTES

    def _error(self, body: bytes) -> None:
        said = read_json(body)
        self.last_words = Refused(field(said, "reason", str, "no reason given"), field(said, "code", str, "error"))

    def _ping(self, body: bytes) -> None:
        self._out.append(frame(Kind.PONG, body))

    def _drain(self, body: bytes) -> None:
        self.moving, self.drained = replies.read_drain(body), True

    def _reported(self, body: bytes) -> None:
        if self.hops is not None:
            self.hops(Hop(*replies.read_reported(body)))

    def _event(self, body: bytes) -> None:
        arrived, numbers = replies.read_event(body)
        matched = self._matched.get(numbers)
        if matched is None:
            matched = self._match(numbers)
        id_, type_, attributes, time, publisher, content_type, trace, payload = arrived[:8]
        to = self._handed.hand(id_, matched)
        if not to:
            return
        event = Event(type_, attributes, payload, content_type, time, publisher, id_, to, trace)
        size = len(body) + EVENT_BYTES
        for wanted in to:
            wanted.push(event, size)

    def _match(self, numbers: tuple[int, ...]) -> tuple[Wanted, ...]:
        """Subscriptions by their requests; without those that have been taken back meanwhile."""
        found = (self._standing.get(number) for number in numbers)
        matched = tuple(one for one in found if isinstance(one, Wanted))
        if len(self._matched) >= _MATCHED:
            self._matched.clear()
        self._matched[numbers] = matched
        return matched

    def _receipts(self, body: bytes) -> None:
        first, counts = replies.read_receipts(body)
        broker = self.welcome.broker if self.welcome else 0
        pop = self._published.pop
        for request, count in enumerate(counts, first):
            published = pop(request, None)
            if published is not None:
                batch, at = published
                batch.put(at, Receipt(count, broker))
        if self._when_idle and not self._published:
            self._wake(self._when_idle)

    def _answer(self, body: bytes) -> None:
        request, refused = replies.read_answer(body)
        if request in self._published:
            batch, at = self._published.pop(request)
            batch.put(at, Refused(refused))
            if not self._published:
                self._wake(self._when_idle)
        elif request in self._standing:
            if refused:
                self._standing[request].refused(refused)
                self._forget(request)
            else:
                self._standing[request].accepted()
        elif request in self._undone:
            _fulfil(self._undone.pop(request))

    def _settled(self, body: bytes) -> None:
        request, missing = replies.read_settled(body)
        handle = self._standing.get(request)
        if handle is not None:
            handle.settled(missing)
            self._is_settled(request)

    def _is_settled(self, request: int) -> None:
        self._unsettled.discard(request)
        if not self._unsettled:
            self._wake(self._when_settled)

    def _forget(self, request: int) -> None:
        handle = self._standing.pop(request)
        self._numbers.pop(handle, None)
        self._matched.clear()
        self._is_settled(request)


_MATCHED = 10_000
"""Combinations of subscriptions that are remembered."""


def _too_large(said: bytes, most: int) -> Refused:
    return Refused(f"a request of {len(said)} bytes is too large; it may have {most}")


def _fulfil(future: Awaited) -> None:
    if not future.done():
        future.set_result(None)
