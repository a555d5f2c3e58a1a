"""Unicast: a group for each destination. The plainest of the family, and the yardstick for what multicast saves."""

from mercast.protocol.messages import Packet
from mercast.routing.destination.ddbr import DDBR


class Unicast(DDBR):
    """Who wants an event is found as in D-DBR; each of them gets a message of its own."""

    def published(self, packet: Packet) -> int:
        event = packet.event
        brokers = self.r_prt.destinations(self.types.lineage(event.type), event.attributes)
        for broker in brokers:
            self.multicast([broker], packet)
        return len(brokers)
