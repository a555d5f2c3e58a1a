"""Where the time of one broker goes: its steps one after the other on the same events, without sockets and loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any

from mercast import garbage
from mercast.content import Filter
from mercast.protocol.effects import Deliver, Receipts
from mercast.protocol.messages import Packet
from mercast.protocol.stimuli import Advertise, Batch, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.settings import Settings
from mercast.wire import replies, requests
from mercast.wire.frames import FRAME_BYTES, Framing
from mercast_loadtest.bench.quotes import TYPE

_TOGETHER = 256
"""Events that are read at a time, as a broker under load does."""

_ROUNDS = 50
_PUBLISHER, _SUBSCRIBER = "p", "s"

WITHIN = "of it matching"
"""The step that is part of the one before."""


def measure(filters: list[Filter], contents: list[bytes]) -> dict[str, float]:
    """µs an event, by step."""
    garbage.seldom()
    core = DDBR(1, 1, Settings(sampling=0.0))
    core.handle(0.0, Advertise(_PUBLISHER, 1, TYPE, Filter()))
    core.handle(
        0.0, Batch(tuple(Subscribe(_SUBSCRIBER, number, TYPE, filter) for number, filter in enumerate(filters, 1)))
    )
    some = contents[:_TOGETHER]
    data = b"".join(requests.publish(number, content) for number, content in enumerate(some, 2))
    times: dict[str, list[float]] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        started = perf_counter()
        yield
        times.setdefault(name, []).append(1e6 * (perf_counter() - started) / len(some))

    for _ in range(_ROUNDS):
        with step("cutting frames"):
            frames = Framing(FRAME_BYTES).feed(data)
        with step("reading events"):
            asked = requests.read_publishes(_PUBLISHER, [body for _, body in frames], 0)
        with step("the core"):
            effects = core.handle(0.0, Batch(tuple(asked)))
        packets = [Packet(effect.event) for effect in effects if type(effect) is Deliver]
        found = core.contents(packets)
        with step(WITHIN):
            core.clients.interested(found, packets, True)
        with step("writing frames"):
            b"".join(map(_frame, effects))
    return {name: median(each) for name, each in times.items()}


def _frame(effect: Any) -> bytes:
    if type(effect) is Deliver:
        return replies.event(effect.event, effect.subscriptions)
    return replies.receipts(effect.first, effect.counts) if type(effect) is Receipts else b""
