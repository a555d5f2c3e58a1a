"""Unicast: a group for each destination. The plainest of the family, and the yardstick for what multicast saves."""

from collections.abc import Sequence

from mercast.matching import Content
from mercast.protocol.messages import Packet
from mercast.routing.destination.ddbr import DDBR


class Unicast(DDBR):
    """Who wants an event is found as in D-DBR; each of them gets a message of its own."""

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        wanted = self.r_prt.destinations_many(contents)
        for brokers, packet in zip(wanted, packets, strict=True):
            for broker in brokers:
                self.multicast([[broker]], [packet])
        return [len(brokers) for brokers in wanted]
