"""The strategies by name: what configuration, recordings and the command line call them."""

from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash

STRATEGIES: dict[str, type[Core]] = {
    "ddbr": DDBR,
    "merc": MERC,
    "fbr": FBR,
    "flooding": Flooding,
    "unicast": Unicast,
    "static-hash": StaticHash,
}


def strategy_named(name: str) -> type[Core]:
    if name not in STRATEGIES:
        raise ValueError(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def name_of(core: Core) -> str:
    """A subclass goes by no name but its own: what it does differently would be lost."""
    for name, strategy in STRATEGIES.items():
        if type(core) is strategy:
            return name
    raise ValueError(f"{type(core).__name__} is not among the strategies: {', '.join(STRATEGIES)}")
