"""How brokers of several clusters know each other."""

from mercast.overlay.cluster import Cluster, address_of
from mercast.routing.core import Core


def meeting(core: Core, other: Core) -> Cluster:
    """A broker's place where a neighbour is: two brokers have one link, in the first of the clusters that they
    share."""
    return next(one for one in core.clusters if one.number in other.settings.clusters)


def address(core: Core, other: Core) -> int:
    """How a broker knows its neighbour."""
    return address_of(meeting(core, other).place, other.me)
