"""Control state between brokers: what we told each peer, and what each told us.

A strategy says what a peer should know (`tell`, `untell`) and is told what peers say (`heard`, `unheard`). Underneath,
a reliable channel per peer brings the two sides into agreement; strategies never see loss, repeats or restarts. A peer
that starts anew repeats everything; what it did not repeat is unheard at the end, so nothing flickers. One that had
forgotten us, but lives on, can repeat only what does not depend on what we tell it: with it, the end comes when that is
settled.

Telling has a *cause*: a client's request, or an item heard from a peer. A cause is settled when everything told because
of it is settled at the peers that can be reached. So news of a settled subscription travels back hop by hop, whatever
path a strategy sent it along.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Any, NamedTuple, Protocol, TypeAlias

from mercast.limits import DEFAULTS
from mercast.overlay.channel import NO_STREAM, Channel, Patience
from mercast.overlay.said import Said, Total
from mercast.protocol.messages import Complete, Control, Drop, Put

Key: TypeAlias = tuple[Any, ...]

NEVER = float("inf")

_ALL = 0
"""Stands for all that a peer has to say when it is met; items are numbered from 1."""


_STALE = 64
"""Entries of the agenda that are no longer true, beyond one for each peer."""


class Request(NamedTuple):
    """The cause: a client's request."""

    client: str
    number: int


class Item(NamedTuple):
    """The cause: an item heard from a peer."""

    peer: int
    stream: tuple[int, int]
    number: int


Cause: TypeAlias = Request | Item

NOBODY = Item(-1, NO_STREAM, 0)
"""The cause of what nobody waits for."""

TOLD = Item(-1, NO_STREAM, 1)
"""Causes nothing itself: settled when all is that was told before."""


class Listener(Protocol):
    """Who wants to know what peers say."""

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    def repeated(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        """It says what it has said before: it starts anew, and may have been restarted."""

    def completed(self, peer: int, incarnation: int, cause: Cause) -> None:
        """It has said everything in this incarnation, and nothing is left of what it said before."""


class Exchange:
    def __init__(
        self,
        me: int,
        incarnation: int,
        listener: Listener,
        patience: Patience,
        most_items: int = DEFAULTS.peer_items,
        most_bytes: int = DEFAULTS.peer_bytes,
        most_of_all: tuple[int, int] = (DEFAULTS.all_peer_items, DEFAULTS.all_peer_bytes),
    ) -> None:
        """`most_of_all` are the items and bytes of all peers together: one could make up many others."""
        self._me, self._incarnation, self._patience = me, incarnation, patience
        self._listener = listener
        self._most_items, self._most_bytes, self._most_of_all = most_items, most_bytes, most_of_all
        self._channels: dict[int, Channel] = {}
        self._streams = 0
        self._touched: set[int] = set()
        """Peers whose channels may have something to send."""
        self._lost: set[int] = set()
        """Peers that cannot be reached for now."""
        self._deadlines: dict[int, float] = {}
        """When channels have something to do, whatever happens."""
        self._agenda: list[tuple[float, int]] = []
        """The same as a heap; entries that are no longer true stay in it until they come up."""
        self.differences = 0
        """How often a digest showed that a peer's word and what we have of it were not the same."""
        self.told: dict[int, dict[Key, Any]] = {}
        self.said: dict[int, Said] = {}
        """What each peer has told us."""
        self.said_by_all = Total()
        self._reminded: dict[int, int] = {}
        """Peers that had forgotten us, and the last of the items that tell them everything anew."""
        self.overfull: dict[int, float] = {}
        """Peers that would have us keep more than they may, and when they are to tell everything anew."""
        self.refused = 0
        """How often something was not taken in for that."""
        self._waiting: dict[tuple[int, int], list[tuple[Key, Cause]]] = {}
        """Items told (peer, number) that causes wait for."""
        self._open: dict[Cause, set[tuple[int, int]]] = {}
        """Causes that are not settled, with the items they wait for."""
        self._since: dict[Item, float] = {}
        """When items were heard that are not settled, in that order."""
        self.settled: list[Request] = []
        """Requests that have become settled; whoever reads this empties it."""

    # -- what peers should know --------------------------------------------------------------------------------------

    def meet(self, peer: int, introduce: Callable[[int], None] = lambda _: None) -> None:
        """A peer can be reached for the first time, or was restarted: tell it everything from the start, with what
        `introduce` tells it."""
        channel = self._channels.get(peer)
        if channel is None:
            channel = self._channels[peer] = Channel(self._me, peer, self._patience)
            self.told[peer] = {}
        introduce(peer)
        self._start_anew(channel)

    def part(self, peer: int) -> None:
        """A peer is gone for good: forget it, and what it said."""
        self.lose(peer)
        self._lost.discard(peer)
        self._channels.pop(peer, None)
        self._touched.discard(peer)
        self._deadlines.pop(peer, None)
        self.told.pop(peer, None)
        self.overfull.pop(peer, None)
        self._reminded.pop(peer, None)
        said = self.said.pop(peer, Said())
        said.part()
        for key, value in said.items():
            self._listener.unheard(peer, key, value, NOBODY)

    def lose(self, peer: int) -> None:
        """A peer cannot be reached for now: nobody waits for it."""
        self._lost.add(peer)
        self._deadlines.pop(peer, None)
        for waited in [waited for waited in self._waiting if waited[0] == peer]:
            self._release(waited)

    def regain(self, peer: int) -> None:
        self._lost.discard(peer)
        self._touched.add(peer)

    def tell(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        told = self.told[peer]
        if key not in told or told[key] != value:
            told[key] = value
            self._put(peer, Put(key, value), key, cause)
        else:
            self.wait_for(peer, key, cause)

    def untell(self, peer: int, key: Key, cause: Cause) -> None:
        if self.told[peer].pop(key, None) is not None:
            self._put(peer, Drop(key), key, cause)
        else:
            self.wait_for(peer, key, cause)

    def wait_for(self, peer: int, key: Key, cause: Cause) -> None:
        """Let a cause wait for what others caused to be told of this key, if it is not settled."""
        number = self._channels[peer].waiting_for(key)
        if number is not None:
            self._wait((peer, number), key, cause)

    def wait_for_all(self, peer: int, cause: Cause) -> None:
        """Let a cause wait until a peer that was just met has said everything, and has heard what that leads to."""
        self._wait((peer, _ALL), (), cause)

    def await_told(self, now: float) -> None:
        """Let `TOLD` wait for all that peers have been told so far."""
        self._open[TOLD] = set()
        self._since[TOLD] = now
        for peer, channel in self._channels.items():
            for number, item in channel.unsettled.items():
                self._wait((peer, number), getattr(item, "key", ()), TOLD)
        self.close_if_settled(TOLD)

    def is_open(self, cause: Cause) -> bool:
        """Whether it is not settled, nor given up."""
        return cause in self._open

    def _end_waiting_for_all(self, channel: Channel) -> None:
        at = channel.peer, _ALL
        for key, cause in self._waiting.pop(at, ()):
            for number in channel.unsettled:
                self._wait((channel.peer, number), key, cause)
            self._open[cause].discard(at)
            self.close_if_settled(cause)

    def _put(self, peer: int, item: Put | Drop, key: Key, cause: Cause) -> None:
        self._touched.add(peer)
        channel = self._channels[peer]
        self._wait((peer, channel.put(item)), key, cause)
        if len(channel.unsettled) > 2 * len(self.told[peer]) + DEFAULTS.peer_unsettled:
            self._start_anew(channel)

    def _start_anew(self, channel: Channel) -> None:
        """Tell everything again. Causes that waited for an item wait for it in the new stream."""
        peer, told = channel.peer, self.told[channel.peer]
        before = {at: waiting for at, waiting in self._waiting.items() if at[0] == peer and at[1] != _ALL}
        self._streams += 1
        self._touched.add(peer)
        channel.start((self._incarnation, self._streams), [*(Put(*pair) for pair in told.items()), Complete()])
        number_of = {key: number for number, key in enumerate(told, 1)}
        end = len(told) + 1
        if peer in self._reminded:
            self._reminded[peer] = end
        for at, waiting in before.items():
            del self._waiting[at]
            for _, cause in waiting:
                self._open[cause].discard(at)
        for waiting in before.values():
            for key, cause in waiting:
                self._wait((peer, number_of.get(key, end)), key, cause)

    # -- what peers say ----------------------------------------------------------------------------------------------

    def receive(self, message: Control, now: float) -> None:
        channel = self._channels.get(message.source)
        if channel is None:
            return  # not met yet: it will send again
        if channel.is_forgotten_by(message):
            if message.stream[0] == channel.heard[0]:  # else it was restarted, and all that it said is void
                self._reminded[message.source] = 0
            self._start_anew(channel)
        said = self.said.get(message.source)
        if said is None:
            said = self.said[message.source] = Said(self.said_by_all)
        too_many = self._too_many(said, message, now)
        if too_many:
            message = message._replace(items=message.items[:-too_many])
        arrival = channel.receive(message)
        self._touched.add(message.source)
        for number in arrival.settled:
            self._release((message.source, number))
        if arrival.anew:
            said.begin_anew()
        for number, item in arrival.items:
            self._apply(channel, said, number, item, now)
        self._end_if_repeated(channel, said, NOBODY)
        if channel.can_compare(message) and said.is_whole and message.digest != digest(said):
            self.differences += 1
            channel.forget()
        if too_many and now >= self.overfull[message.source]:
            del self.overfull[message.source]
            channel.forget()

    def _too_many(self, said: Said, message: Control, now: float) -> int:
        """How many of the items, from the end, are more than a peer, or all together, may have us keep.

        These are not acknowledged, so they are not settled, and come again until there is room. What the peer takes
        back meanwhile comes after them: so from time to time it is to tell everything anew, which is what is so then.
        """
        peer, all_ = message.source, self.said_by_all
        alone = said.has_room(self._most_items, self._most_bytes)
        if alone and all_.items < self._most_of_all[0] and all_.bytes < self._most_of_all[1]:
            if message.items:
                self.overfull.pop(peer, None)
            return 0
        taken = takewhile(lambda item: not isinstance(item, Put) or said.get(item.key) == item.value, message.items)
        too_many = len(message.items) - sum(1 for _ in taken)
        if too_many:
            self.refused += 1
            self.overfull.setdefault(peer, now + self._patience.compare_every)
        return too_many

    def _apply(self, channel: Channel, said: Said, number: int, item: Put | Drop | Complete, now: float) -> None:
        peer, cause = channel.peer, Item(channel.peer, channel.heard, number)
        channel.await_consequences(number)
        self._open[cause] = set()
        match item:
            case Put(key, value):
                said.repeat(key)
                if key in said and said[key] != value:
                    self._unheard(said, peer, key, cause)
                if key not in said:
                    said.put(key, value)
                    self._listener.heard(peer, key, value, cause)
                else:
                    self._listener.repeated(peer, key, value, cause)
            case Drop(key):
                if key in said:
                    self._unheard(said, peer, key, cause)
            case Complete():
                said.complete()
                self._end_if_repeated(channel, said, cause)
        self.close_if_settled(cause)
        if cause in self._open:
            self._since[cause] = now

    def _end_if_repeated(self, channel: Channel, said: Said, cause: Cause) -> None:
        """What a peer has not repeated, when it has repeated everything, it no longer says."""
        if said.is_complete and not said.is_whole and not channel.waits_for_any(self._reminded.get(channel.peer, 0)):
            self._reminded.pop(channel.peer, None)
            for key in said.end():
                self._unheard(said, channel.peer, key, cause)
            self._listener.completed(channel.peer, channel.heard[0], cause)
            self._end_waiting_for_all(channel)

    def _unheard(self, said: Said, peer: int, key: Key, cause: Cause) -> None:
        value = said[key]
        said.drop(key)
        self._listener.unheard(peer, key, value, cause)

    # -- settling ----------------------------------------------------------------------------------------------------

    def open(self, request: Request) -> None:
        """From now on things are told because of this request; `close_if_settled` ends that."""
        self._open[request] = set()

    def _wait(self, at: tuple[int, int], key: Key, cause: Cause) -> None:
        if cause in self._open and at[0] not in self._lost:
            self._waiting.setdefault(at, []).append((key, cause))
            self._open[cause].add(at)

    def _release(self, at: tuple[int, int]) -> None:
        for _, cause in self._waiting.pop(at, ()):
            if cause in self._open:
                self._open[cause].discard(at)
                self.close_if_settled(cause)

    def close_if_settled(self, cause: Cause) -> None:
        if self._open.get(cause):
            return
        if self._open.pop(cause, None) is None:
            return
        if isinstance(cause, Request):
            self.settled.append(cause)
            return
        self._since.pop(cause, None)
        if cause.peer in self._channels:
            self._touched.add(cause.peer)
            self._channels[cause.peer].settle(cause.stream, cause.number)

    def missing(self, request: Request) -> tuple[int, ...]:
        """The peers that have not settled a request yet."""
        return tuple(sorted({peer for peer, _ in self._open.get(request, ())}))

    def give_up(self, request: Request) -> None:
        self._wait_no_more(request)
        self._open.pop(request, None)

    @property
    def unsettled(self) -> int:
        """Requests and items that are not settled yet."""
        return len(self._open)

    @property
    def oldest(self) -> float:
        """When the item was heard that has waited longest to be settled."""
        return next(iter(self._since.values()), NEVER)

    def expire(self, now: float, after: float) -> None:
        """Items heard so long ago are settled as far as they will be: who asked for them no longer waits.

        News may go round in circles, each waiting for the next; nobody would ever see that. The sum is the one that
        deadlines are made of: a difference may be rounded the other way, and then the deadline would never be over.
        """
        for item in list(takewhile(lambda item: self._since[item] + after <= now, self._since)):
            self._wait_no_more(item)
            self.close_if_settled(item)

    def _wait_no_more(self, cause: Cause) -> None:
        for at in self._open.get(cause, ()):
            self._waiting[at] = [(key, other) for key, other in self._waiting[at] if other != cause]
            if not self._waiting[at]:
                del self._waiting[at]
        if cause in self._open:
            self._open[cause] = set()

    def validate(self) -> None:
        assert self._channels.keys() == self.told.keys()
        waited = {(at, cause) for at, waiting in self._waiting.items() for _, cause in waiting}
        assert waited == {(at, cause) for cause, ats in self._open.items() for at in ats}
        assert all(ats for ats in self._open.values()), "a cause that waits for nothing is settled"
        sizes = [said.size for said in self.said.values()]
        totals = sum(items for items, _ in sizes), sum(size for _, size in sizes)
        assert (self.said_by_all.items, self.said_by_all.bytes) == totals
        assert self._since.keys() == {cause for cause in self._open if isinstance(cause, Item)}

    # -- time --------------------------------------------------------------------------------------------------------

    def messages(self, now: float) -> list[Control]:
        """What is to be sent now: most stimuli concern no channel."""
        if not self._touched and now < self.next_deadline():
            return []
        while self.next_deadline() <= now:
            self._touched.add(heappop(self._agenda)[1])
        messages = []
        for peer in sorted(self._touched - self._lost):
            channel, told = self._channels[peer], self.told[peer]
            message = channel.message(now, lambda told=told: digest(told))  # type: ignore[misc]
            if message is not None:
                messages.append(message)
            if self._deadlines.get(peer) != channel.next_deadline():
                self._deadlines[peer] = channel.next_deadline()
                heappush(self._agenda, (self._deadlines[peer], peer))
        self._touched &= self._lost
        if len(self._agenda) > 2 * len(self._deadlines) + _STALE:
            self._agenda = [(when, peer) for peer, when in self._deadlines.items()]
            heapify(self._agenda)
        return messages

    def next_deadline(self) -> float:
        while self._agenda and self._deadlines.get(self._agenda[0][1]) != self._agenda[0][0]:
            heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else NEVER


def digest(items: Mapping[Key, Any]) -> int:
    """Equal for equal items, in whatever order."""
    total = 0
    for item in items.items():
        total ^= int.from_bytes(blake2b(repr(item).encode(), digest_size=8).digest())
    return total
