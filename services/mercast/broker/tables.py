"""The tables of a broker in plain data: how much is in each; and, when asked for, what, up to a bound."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from mercast.broker.observed import Observed
from mercast.content.interest import Advertisement, Interest
from mercast.content.types import Declaration
from mercast.overlay.cluster import NUMBER
from mercast.overlay.exchange import Key
from mercast.protocol.messages import Carried, Local
from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.filtering.fbr import FBR
from mercast.routing.rendezvous.static_hash import StaticHash

MOST_ROWS = 1000
"""Of each table that is listed: enough to look around in, and little enough to hold nothing up."""


def tables(broker: Observed, full: bool = False) -> dict[str, Any]:
    core = broker.core
    counts = {
        "clients": len(broker.sessions),
        "advertisements": len(core.clients.advertisements),
        "subscriptions": len(core.clients.subscriptions),
        "types": len(core.types.declared),
    }
    answer = {
        "broker": core.me,
        "strategy": broker.config.strategy,
        "counts": counts,
        "tables": sizes(core),
        "kept": _kept(broker),
    }
    if full:
        answer["full"] = {name: _bounded(rows) for name, rows in _rows(broker).items()}
    return answer


def _bounded(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    taken = list(islice(rows, MOST_ROWS + 1))
    return {"rows": taken[:MOST_ROWS], "more": len(taken) > MOST_ROWS}


def sizes(core: Core) -> dict[str, int]:
    """Of the tables that the strategy keeps of other brokers' clients, by the papers' names."""
    match core:
        case MERC():
            return {
                "R-SRT": sum(origin[0] != core.me for place in core.places for origin in place.advertisements),
                "R-PRT": sum(len(place.matcher) for place in core.places),
            }
        case DDBR():
            return {"R-SRT": sum(map(len, core.r_srt.values())), "R-PRT": len(core.r_prt)}
        case FBR():
            return {"SRT": len(core.srt), "PRT": len(core.prt), "PRT distinct": core.prt.distinct}
        case StaticHash():
            return {"kept": len(core.kept)}
    return {}


def _kept(broker: Observed) -> dict[str, int]:
    """What a broker remembers of others, and forgets in time: these stay as they are while the overlay does."""
    core, exchange = broker.core, broker.core.exchange
    return {
        "members": sum(map(len, broker.members)),
        "records": sum(len(one.state) for one in core.clusters),
        "channels": len(exchange.told),
        "told": sum(map(len, exchange.told.values())),
        "heard": sum(map(len, exchange.said.values())),
        "unsettled": exchange.unsettled,
        "statements": len(core.declared.statements),
        "seen windows": len(core.seen),
        "splits": sum(len(one.neighbourhood.split) for one in core.clusters),
    }


def _rows(broker: Observed) -> dict[str, Iterable[dict[str, Any]]]:
    core = broker.core
    return {
        "clients": (
            {"name": name, "address": session.address, "queued_bytes": session.queued}
            for name, session in broker.sessions.items()
        ),
        "advertisements": (_local(*item) for item in core.clients.advertisements.items()),
        "subscriptions": (_local(*item) for item in core.clients.subscriptions.items()),
        "heard": (_heard(*item) for item in core.heard_items()),
        "types": map(_declared, core.types.declared.values()),
    }


def _local(local: Local, interest: Interest) -> dict[str, Any]:
    return {**local._asdict(), "type": interest.type, "filter": str(interest.filter)}


def _heard(peer: int, key: Key, value: Interest) -> dict[str, Any]:
    """A key is the peer's own name for it, or says where it was made and, for some, along which tree it came."""
    if isinstance(key, Carried):
        made_at, local = key.origin
    else:
        made_at, local = (peer, key) if isinstance(key, Local) else key[-1]
    kind = "advertisement" if isinstance(value, Advertisement) else "subscription"
    return {"from": peer & NUMBER, "kind": kind, "broker": made_at, **_local(local, value)}


def _declared(declaration: Declaration) -> dict[str, Any]:
    attributes = {name: str(kind) for name, kind in declaration.attributes.items()}
    return {"name": declaration.name, "parent": declaration.parent, "open": declaration.open, "attributes": attributes}
