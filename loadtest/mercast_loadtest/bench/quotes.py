"""Stock quotes of a fixed size and the subscriptions to them, as all live benches use them."""

import random

from mercast.content import Filter, Value
from mercast.matching import Index
from mercast.wire.events import encode_content
from mercast.workloads import Stock

TYPE = "stock.quote"
CONTENT_BYTES = 200
"""Of an event's content: type, attributes, and a payload that fills it up."""

DUE_BYTES = 8
"""The payload ends in the time when the event was due to be published."""

_DRAWN = 256
"""Events drawn at a time."""


def filters(count: int, seed: int) -> list[Filter]:
    rng = random.Random(f"{seed} filters")
    stock = Stock()
    return [stock.filter(rng) for _ in range(count)]


def wanted_events(filters: list[Filter], count: int, seed: int) -> list[dict[str, Value]]:
    """Only events that at least one of the filters matches, so that each has somewhere to go."""
    index = Index()
    for number, filter in enumerate(filters):
        index.add(number, filter)
    rng, stock = random.Random(f"{seed} events"), Stock()
    events: list[dict[str, Value]] = []
    while len(events) < count:
        drawn = [stock.event(rng) for _ in range(_DRAWN)]
        events += [event for event, found in zip(drawn, index.match_many(drawn), strict=True) if found]
    return events[:count]


def contents(events: list[dict[str, Value]], size: int = CONTENT_BYTES) -> list[bytes]:
    """Each encoded, of exactly that size."""
    return [_filled(event, size) for event in events]


def _filled(event: dict[str, Value], size: int) -> bytes:
    room = size - len(encode_content(TYPE, event))
    if room < DUE_BYTES:
        raise ValueError(f"an event of {size - room} bytes leaves no room for a time in {size} bytes")
    return encode_content(TYPE, event, bytes(room))
