"""Who brings which advertisements: whatever is put, answers are those of a plain look at all of it."""

import random

from mercast.content import Filter
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import Types
from mercast.protocol.messages import Local
from mercast.routing.destination.sources import Sources

FILTERS = [Filter(), *(Filter.parse(f"price BETWEEN {least} AND {least + 3}") for least in range(6))]
ADVERTISED = [Advertisement(type, filter) for type in ("quote", "trade") for filter in FILTERS]
SUBSCRIBED = [Subscription(type, filter) for type in (None, "quote", "news") for filter in FILTERS]


def test_answers_are_those_of_a_plain_look():
    rng, types, sources, put = random.Random(1), Types(), Sources(), {}
    for _ in range(300):
        origin = rng.randrange(4), Local("p", rng.randrange(1, 4))
        put[origin] = frozenset((rng.randrange(5), rng.choice(ADVERTISED)) for _ in range(rng.randrange(4)))
        sources.put(origin, put[origin])
        subscription = rng.choice(SUBSCRIBED)
        brokers = {broker for some in put.values() for broker, one in some if one.intersects(types, subscription)}
        assert sources.brokers(types, subscription) == brokers
        assert {broker for broker in range(5) if sources.has(broker, types, subscription)} == brokers
    for origin in put:
        sources.put(origin, frozenset())
    assert not any(vars(sources).values())
