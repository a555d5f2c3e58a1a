"""What a client has asked for and what stands until it is taken back: asked again on every new connection."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from mercast.client.arguments import kinds, size, text, text_or_none
from mercast.client.errors import MercastError, Refused, SubscriberTooSlow
from mercast.client.event import Event
from mercast.wire import requests

log = logging.getLogger("mercast.client")

BUFFER_BYTES = 16 * 1024 * 1024
"""Of one subscription, unless told otherwise: some ten thousand small events."""

EVENT_BYTES = 1024
"""What an event takes in memory beyond its bytes on the wire, about."""

SLACK_BYTES = 16 * 1024 * 1024
"""How far a buffer may be overfull: by what one read brings, and by what lies before the answer to a call."""


class Awaited(Protocol):
    """A future of asyncio or of concurrent.futures."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...


class Handle(ABC):
    """A request that stands. One connection after the other tells it how the request fares there."""

    def __init__(self, future: Awaited, settled: bool) -> None:
        self.first: Any = future
        """Who asked waits for this: until the request was first settled, or only accepted."""
        self.waits_for_settled = settled
        self.missing: tuple[int, ...] | None = None
        """Brokers that had not acknowledged it when time was up; None before it is settled, and again after every
        change of brokers until it is settled there."""
        self.over = False
        """Taken back, refused or ended: it is asked for no more."""
        self.insists = True
        """Whether not being settled in time is a failure."""

    @abstractmethod
    def frame(self, request: int) -> bytes:
        """The request."""

    @abstractmethod
    def undoing(self, request: int, made: int) -> bytes:
        """The request that takes back what another made; empty for what cannot be taken back."""

    def accepted(self) -> None:
        if not self.waits_for_settled and not self.first.done():
            self.first.set_result(())

    def settled(self, missing: tuple[int, ...]) -> None:
        self.missing = missing
        if not self.first.done():
            self.first.set_result(missing)
        elif missing:
            log.warning("%s is not settled: no word from broker %s", self, ", ".join(map(str, missing)))
        else:
            log.info("%s is settled", self)

    def refused(self, reason: str) -> None:
        if not self.first.done():
            self.over = True
            self.first.set_exception(Refused(reason))
        else:
            self.refused_anew(reason)

    def refused_anew(self, reason: str) -> None:
        """What one broker had accepted, another refuses."""
        self.over = True
        log.warning("%s was refused by the broker that is used now: %s", self, reason)


class Advertised(Handle):
    def __init__(self, type: str, where: str | None, future: Awaited, settled: bool, implied: bool = False) -> None:
        super().__init__(future, settled)
        self.type, self.where = text(type, "a type"), text_or_none(where, "a condition") or ""
        self.implied = implied
        """Made by the first event of its type, not asked for; it stands even if not all brokers know of it in time."""
        self.insists = not implied

    def __str__(self) -> str:
        return f"the advertisement of {self.type}{self.where and f' where {self.where}'}"

    def frame(self, request: int) -> bytes:
        return requests.advertise(request, self.type, self.where)

    def undoing(self, request: int, made: int) -> bytes:
        return requests.unadvertise(request, made)


class Declared(Handle):
    def __init__(
        self, name: str, attributes: Mapping[str, str], parent: str | None, open: bool, future: Awaited
    ) -> None:
        super().__init__(future, True)
        self.name, self._attributes = text(name, "a type"), kinds(attributes)
        self._parent, self._open = text_or_none(parent, "a parent"), bool(open)

    def __str__(self) -> str:
        return f"the declaration of {self.name}"

    def frame(self, request: int) -> bytes:
        return requests.declare(request, self.name, self._parent, self._attributes, self._open)

    def undoing(self, request: int, made: int) -> bytes:  # noqa: ARG002
        return b""

    def refused_anew(self, reason: str) -> None:
        """Somebody has declared more of the type since: no harm."""
        self.over = True
        log.debug("%s: %s", self, reason)


class Wanted(Handle):
    """A subscription, with the events that nobody has taken yet.

    Its buffer is bounded. When it is full, the client stops reading from its connection until there is room again, so
    that the broker sees a slow subscriber, and deals with it. Two things end the subscription with SubscriberTooSlow
    instead, once the events in the buffer have been taken: if it is left full, since the client's other subscriptions
    wait meanwhile; and if it runs over, since reading goes on while a call waits for its answer.
    """

    def __init__(
        self,
        type: str | None,
        where: str | None,
        echo: bool,
        buffer: int,
        full: set["Wanted"],
        future: Awaited,
        settled: bool,
    ) -> None:
        super().__init__(future, settled)
        self.type, self.where = text_or_none(type, "a type"), text_or_none(where, "a condition") or ""
        self.echo = bool(echo)
        self.buffer_bytes = size(buffer)
        self.full_since: float | None = None
        self._full = full
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._end: MercastError | None = None

    def __str__(self) -> str:
        return f"the subscription to {self.type or 'any type'}{self.where and f' where {self.where}'}"

    def frame(self, request: int) -> bytes:
        return requests.subscribe(request, self.type, self.where, self.echo)

    def undoing(self, request: int, made: int) -> bytes:
        return requests.unsubscribe(request, made)

    def refused_anew(self, reason: str) -> None:
        super().refused_anew(reason)
        self.end(Refused(reason))

    def push(self, event: Event, size: int) -> None:
        if self._ended:
            return
        self._events.append((event, size))
        self._bytes += size
        if self._bytes >= self.buffer_bytes:
            self._full.add(self)
            if self._bytes >= self.buffer_bytes + SLACK_BYTES:
                self.end(SubscriberTooSlow(f"{self} has ended: its buffer of {self.buffer_bytes} bytes ran over"))
        self.wake()

    def take(self) -> Event | None:
        """The next event; None if there is none yet. At the end StopIteration, or why it has ended."""
        if self._events:
            event, size = self._events.popleft()
            self._bytes -= size
            if self in self._full and self._bytes * 2 <= self.buffer_bytes:
                self._full.discard(self)
                self.full_since = None
                self.make_room()
            return event
        if self._end is not None:
            raise self._end
        if self._ended:
            raise StopIteration
        return None

    def end(self, why: MercastError | None = None) -> None:
        """No more events; those that are here may still be taken."""
        if self._ended:
            return
        self.over = self._ended = True
        self._end = why
        self._full.discard(self)
        self.wake()
        self.make_room()

    def wake(self) -> None:
        """There is an event, or an end."""

    def make_room(self) -> None:
        """The buffer is no longer full."""


class Standing:
    """All of a client's."""

    def __init__(self) -> None:
        self.full: set[Wanted] = set()
        """Subscriptions with no room for more."""
        self._handles: dict[Handle, None] = {}

    @property
    def advertises(self) -> bool:
        """Whether the user says what will be published: then nothing is implied beside it."""
        return any(isinstance(one, Advertised) and not one.implied and not one.over for one in self._handles)

    def add(self, handle: Handle) -> None:
        self._handles[handle] = None

    def remove(self, handle: Handle) -> None:
        handle.over = True
        self._handles.pop(handle, None)

    def all(self) -> list[Handle]:
        """In the order in which they were asked for."""
        self._handles = {handle: None for handle in self._handles if not handle.over}
        return list(self._handles)

    def end(self, why: MercastError) -> None:
        """The client is closed: subscriptions come to their end, and who still waits to have one is told why."""
        for handle in self.all():
            handle.over = True
            if isinstance(handle, Wanted):
                handle.end()
            if not handle.first.done():
                handle.first.set_exception(why)

    def tick(self, now: float, patience: float) -> list[Handle]:
        """Ends subscriptions that were left full for too long; all that ended by themselves since the last time."""
        for wanted in list(self.full):
            if wanted.full_since is None:
                wanted.full_since = now
            elif now - wanted.full_since > patience:
                wanted.end(SubscriberTooSlow(f"{wanted} has ended: its buffer was left full for {patience:g} s"))
        ended = [handle for handle in self._handles if handle.over]
        for handle in ended:
            del self._handles[handle]
        return ended
