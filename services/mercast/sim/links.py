"""What lies between brokers: links with latency, bandwidth and noise, and clocks that differ."""

from math import inf, nextafter
from typing import Any, NamedTuple

from mercast.content.event import Event
from mercast.overlay.split import ENTRY
from mercast.protocol.messages import Control, Forward, Update

HEADER = 44
"""Bytes of a message without its list and content, as MEDYM counts it."""

_ITEM = 100
"""Bytes of one piece of control state, a plain guess: a subscription of a few predicates."""


class Noise(NamedTuple):
    """What a link does to messages, each with some probability."""

    loss: float = 0.0
    doubling: float = 0.0
    reordering: float = 0.0


QUIET = Noise()


class Clock(NamedTuple):
    """A broker's clock: it starts off by some seconds, and goes too fast or too slow."""

    offset: float = 0.0
    rate: float = 1.0

    def shows(self, time: float) -> float:
        return time * self.rate + self.offset

    def time_of(self, shown: float) -> float:
        """When it will show this, or a little more: never less, by however little that rounding may give."""
        time = (shown - self.offset) / self.rate
        while self.shows(time) < shown:
            time = nextafter(time, inf)
        return time


class Link:
    """The way from one broker to a neighbour; the way back is a link of its own."""

    def __init__(self, latency: float, bandwidth: float = float("inf"), cost: int = 1) -> None:
        self.latency = latency
        self.bandwidth = bandwidth
        self.cost = cost
        """What the end that sends says of it in its record."""
        self.cut = False
        """Everything is lost, and neither end is told."""
        self.noise = QUIET
        self._free_at = 0.0
        """When the last message has left: they do not overtake each other."""

    def arrival(self, now: float, messages: tuple[Any, ...]) -> float:
        """When messages that are sent now, in one go, have arrived."""
        size = 0 if self.bandwidth == float("inf") else sum(map(size_of, messages))
        self._free_at = max(now, self._free_at) + size / self.bandwidth
        return self._free_at + self.latency


def count_of(messages: tuple[Any, ...]) -> int:
    """Messages as the papers count them: events that travel together count one each."""
    return sum(len(message.packets) if type(message) is Forward else 1 for message in messages)


def size_of(message: Any) -> int:
    """Bytes of a message, near enough for bandwidth."""
    match message:
        case Forward(destinations, _, packets):
            return sum(HEADER + len(destinations) + _size_of_event(packet.event) for packet in packets)
        case Control(items=items):
            return HEADER + _ITEM * len(items)
        case Update(destinations, _, records):
            return HEADER + len(destinations) + sum(ENTRY * (4 + 2 * len(record.links)) for record in records)
    return HEADER


def _size_of_event(event: Event) -> int:
    items = event.attributes.items()
    return len(event.payload) + sum(len(name) + (len(value) if isinstance(value, str) else 8) for name, value in items)
