"""What a broker has done since its start, and how it is now, in plain data: what its ticks tell in differences.

Little work, unlike the overlay, and nothing is changed by it, unlike a scrape, which begins the worst lag anew: a
dashboard may ask every second.
"""

from time import process_time
from typing import Any

from mercast.broker.observed import Observed
from mercast.broker.overview import readiness
from mercast.overlay.cluster import NUMBER


def counted(broker: Observed) -> dict[str, Any]:
    counters, clients = broker.counters, broker.core.clients
    return {
        "broker": broker.core.me,
        "incarnation": broker.core.incarnation,
        "cluster": broker.config.cluster,
        "strategy": broker.config.strategy,
        **readiness(broker),
        "draining": broker.draining,
        "counted": {
            "published": counters.published,
            "received": counters.received,
            "forwarded": counters.forwarded,
            "delivered": counters.delivered,
            "bytes_in": counters.bytes_from_peers,
            "bytes_out": counters.bytes_to_peers,
            "bytes_to_clients": counters.bytes_to_clients,
            "cpu_us": int(process_time() * 1e6),
        },
        "dropped": dict(counters.dropped),
        "clients": len(broker.sessions),
        "subscriptions": len(clients.subscriptions),
        "advertisements": len(clients.advertisements),
        "types": len(broker.core.types.declared),
        "queued_bytes": sum(one.queued for one in broker.sessions.values())
        + sum(one.queued for one in broker.links.values()),
        "links": [
            {"neighbour": at & NUMBER, "received": link.received, "queued_bytes": link.queued}
            for at, link in sorted(broker.links.items())
        ],
    }
