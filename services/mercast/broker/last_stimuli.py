"""The last stimuli of a broker, kept in memory for `mercast doctor`: what happened just before somebody asked.

Many events together are kept as the bytes that they came as (packing.py), all else as it is, each with how many effects
it had: one event may have a thousand. Nothing is written before it is asked for.
"""

from collections import deque
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from mercast.broker.packing import Packets, Publishes, packed, unpacked
from mercast.content.interest import Interest
from mercast.content.types import Declaration
from mercast.protocol.messages import Ask, Control, Forward, HeartBeat, Look, Put, Reply, Report, Same, Update, Value
from mercast.protocol.stimuli import (
    Advertise,
    Batch,
    Declare,
    Leave,
    LinkDown,
    LinkUp,
    Publish,
    Received,
    Refuse,
    Retire,
    Stimulus,
    Subscribe,
    Tick,
    Unadvertise,
    Unsent,
    Unsubscribe,
)
from mercast.routing import recording
from mercast.routing.core import Core
from mercast.wire.events import Passing

_EACH = 64
"""Bytes that anything counts for, beside what it holds."""


_stamped = attrgetter("event.stamped")


class Kept(NamedTuple):
    now: float
    packed: Any
    """The stimulus."""
    effects: int
    """How many."""
    size: int


class LastStimuli:
    """At most so many turns, of at most so many bytes as they came over the wire."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: deque[Kept] = deque()
        self._bytes = self._gone = 0
        self._core: Core | None = None

    def begin(self, core: Core) -> None:
        """A broker without a past."""
        self._kept.clear()
        self._bytes = self._gone = 0
        self._core = core

    def add(self, now: float, stimulus: Stimulus, effects: int) -> None:
        kept = packed(stimulus)
        size = _size(kept)
        self._bytes += size
        self._kept.append(Kept(now, kept, effects, size))
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            self._bytes -= self._kept.popleft().size
            self._gone += 1

    def lines(self) -> Iterator[str]:
        """A recording of what is kept now; the tail of one, if there was more before."""
        return _lines(self._core, self._gone, tuple(self._kept))


def _lines(core: Core | None, gone: int, kept: tuple[Kept, ...]) -> Iterator[str]:
    if core is not None:
        yield recording.header(core, gone)
    for now, one, effects, _ in kept:
        yield recording.brief(now, unpacked(one), effects)


def _size(kept: Any) -> int:
    """About the bytes on the wire. Of events that came one by one, what is in memory is some times as much."""
    parts = kept.stimuli if type(kept) is Batch else (kept,)
    return _EACH * len(parts) + sum(_SIZES[type(part)](part) for part in parts)


def _size_of_forward(forward: Forward) -> int:
    packets: Any = forward.packets
    if type(packets) is Packets:
        return len(packets.encoded)
    if isinstance(packets, Passing):
        return len(packets.encoded)
    return _EACH * len(packets) + sum(map(len, map(_stamped, packets)))


def _size_of_control(control: Control) -> int:
    return sum(_EACH + _size_of_value(item.value) for item in control.items if isinstance(item, Put))


def _size_of_value(value: Value) -> int:
    return _size_of_declaration(value) if isinstance(value, Declaration) else _size_of_filter(value)


def _size_of_declaration(declaration: Declaration) -> int:
    names = len(declaration.name) + len(declaration.parent or "") + sum(map(len, declaration.attributes))
    return names + _EACH * len(declaration.attributes)


def _size_of_declare(declare: Declare) -> int:
    return _size_of_declaration(declare.declaration)


def _size_of_publish(publish: Publish) -> int:
    return len(publish.encoded)


def _size_of_publishes(publishes: Publishes) -> int:
    return len(publishes.contents) + publishes.lengths.itemsize * len(publishes.lengths)


def _size_of_refuse(refuse: Refuse) -> int:
    return len(refuse.reason)


def _size_of_filter(asked: Subscribe | Advertise | Interest) -> int:
    return len(str(asked.filter))


def _size_of_update(update: Update) -> int:
    return _EACH * sum(1 + len(record.links) for record in update.records)


def _size_of_ask(ask: Ask) -> int:
    return _EACH * (1 + len(ask.counts))


def _size_of_received(received: Received) -> int:
    return sum(_SIZES[type(message)](message) for message in received.messages)


def _size_of_unsent(unsent: Unsent) -> int:
    """Events of this broker's own clients may be among them."""
    own = (packet.event.encoded for forward in unsent.forwards for packet in forward.packets)
    return sum(map(_size_of_forward, unsent.forwards)) + sum(map(len, own))


def _nothing(_: Any) -> int:
    return 0


def _small(_: Any) -> int:
    return _EACH


_SIZES: dict[type, Callable[[Any], int]] = {
    Received: _size_of_received,
    Unsent: _size_of_unsent,
    Subscribe: _size_of_filter,
    Advertise: _size_of_filter,
    Declare: _size_of_declare,
    Refuse: _size_of_refuse,
    Publish: _size_of_publish,
    Publishes: _size_of_publishes,
    **dict.fromkeys((Unadvertise, Unsubscribe, Leave, LinkUp, LinkDown, Retire, Tick), _nothing),
    Forward: _size_of_forward,
    Control: _size_of_control,
    Update: _size_of_update,
    Ask: _size_of_ask,
    **dict.fromkeys((HeartBeat, Report, Reply, Look, Same), _small),
}
"""Of every kind: what is not measured could fill the memory."""
