"""What a strategy can be told at its start."""

from dataclasses import dataclass, field
from typing import Literal

from mercast.content.rules import EVERYTHING, Rules
from mercast.limits import DEFAULTS
from mercast.overlay.channel import Patience
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import Rule


@dataclass(frozen=True, slots=True)
class Settings:
    timing: Timing = field(default_factory=Timing)
    rule: Rule = "paper"
    """How destination lists are split among equal paths."""
    repair: bool = True
    """FBR: whether trees follow the shortest paths when those change; else they stay as they were made."""
    covering: bool = False
    """FBR: whether subscriptions that another one covers are not passed on."""
    matcher: Literal["index", "scan"] = "index"
    patience: Patience = field(default_factory=Patience)
    """Of the channels that control state goes through."""
    settle_within: float = 10.0
    """Seconds before a client is told who has not acknowledged its subscription or advertisement."""
    purge_after: float = 60.0
    """Seconds that a broker must be out of reach before what it said is forgotten."""
    wait_for_route: float = 5.0
    """Seconds that an event waits for a route; views differ while news travels."""
    sampling: float = 1.0
    """Share of the events that the taps get rows of (routing/sampling.py); those that are traced are always among
    them."""
    peer_items: int = DEFAULTS.peer_items
    """Advertisements and subscriptions that one peer may have this broker keep."""
    peer_bytes: int = DEFAULTS.peer_bytes
    """The memory of these, about."""
    all_peer_items: int = DEFAULTS.all_peer_items
    """The same of all peers together."""
    all_peer_bytes: int = DEFAULTS.all_peer_bytes
    """The memory of these, about."""
    least_hops: int = DEFAULTS.hops
    """The hop limit in a small cluster; in others it is twice the number of brokers. A safety net: never used while
    views agree."""
    clusters: tuple[int, ...] = (0,)
    """The numbers of the clusters that it is in, its home first. An edge broker is in several."""
    exports: Rules = EVERYTHING
    imports: Rules = EVERYTHING
    """MERC: events of which types an edge carries out of its home, and into it."""
    organise: Literal["off", "carried", "paper"] = "off"
    """Whether links move to where the traffic is, and by which rule (overlay/organise.py). While a broker of a cluster
    takes no part, nothing moves there."""
    organise_every: float = 30.0
    """Seconds of a cycle: how long messages are counted, and how long a step may take."""
    most_links: int = 6
    """MaxDegree, in each cluster."""
    control_rows: bool = False
    """Whether rows are written about control state, too."""
