"""Links from a member list: everybody works out the same overlay, without asking anybody.

Members are put on rings, each in another order given by a hash; neighbours on a ring are linked. Each ring keeps the
overlay connected; together they are like a random regular graph, so its diameter is small. A member that comes or goes
changes two or three links of each ring and no others.
"""

from collections.abc import Collection
from hashlib import blake2b


def neighbours(members: Collection[int], me: int, degree: int = 6) -> set[int]:
    """The members to be linked to: at most `degree` (an even number, at least 2)."""
    found: set[int] = set()
    for ring in range(max(1, degree // 2)):
        order = sorted(members, key=lambda member: (_height(ring, member), member))
        place = order.index(me)
        found |= {order[place - 1], order[(place + 1) % len(order)]}
    return found - {me}


def _height(ring: int, member: int) -> bytes:
    return blake2b(b"%d %d" % (ring, member), digest_size=8).digest()
