"""A broker's turns: one that goes wrong harms no other."""

import asyncio

from structlog.testing import capture_logs

from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.protocol.effects import Receipts
from mercast.protocol.stimuli import Publish


def test_what_cannot_be_carried_out_is_told_and_the_next_turn_is_as_ever():
    broken = [True]

    async def turns():
        broker = Broker(BrokerConfig(id=1, matcher="scan"))
        broker.begin(lambda _address: None, lambda _address, _reason: None)
        acknowledge = broker._does[Receipts]

        def once(receipts):
            if broken.pop():
                raise ValueError("bytes must be in range(0, 256)")
            acknowledge(receipts)

        broker._does[Receipts] = once
        for number in (1, 2):
            broker.take(Publish("c.1", number, "quote", {}, 0))
            await asyncio.sleep(0)
            broken.append(False)
        return broker.counters

    with capture_logs() as logs:
        counters = asyncio.run(turns())
    assert [(one["event"], one["stimulus"]) for one in logs] == [("defect", "Publish")]
    assert (counters.defects, counters.published) == (1, 1)
