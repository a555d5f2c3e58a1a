"""The overlay as a broker sees it, in plain data: itself, members, its links, and all brokers and links it knows of."""

from collections import Counter
from os import getpid
from time import monotonic
from typing import Any

from mercast import __version__
from mercast.broker.clashes import clashes
from mercast.broker.observed import Observed
from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.linkstate import LinkState
from mercast.protocol.messages import Record
from mercast.routing.destination.merc import MERC

UP, ONE_END, OUT_OF_REACH = "up", "one end only", "out of reach"
"""States of a link: both ends list it, or one does (it is coming up, or dead), or neither end can be reached."""

_MS = 1000.0


def overview(broker: Observed) -> dict[str, Any]:
    """Of its own cluster; and, if it is an edge, of the others that it is in."""
    home, *others = broker.core.clusters
    numbered = [{"cluster": broker.config.clusters()[one.place].name, "number": one.number} for one in others]
    views = [_cluster(broker, one) for one in others]
    return {
        "broker": _self(broker),
        **_cluster(broker, home),
        "clashes": clashes(broker),
        "others": [name | view for name, view in zip(numbered, views, strict=True)],
    }


def _cluster(broker: Observed, cluster: Cluster) -> dict[str, Any]:
    return {
        "members": [
            {
                "id": who,
                "peer_address": member.peer,
                "client_address": member.clients,
                "also_in": list(member.also_in),
            }
            for who, member in sorted(broker.members[cluster.place].items())
        ],
        "links": _own_links(broker, cluster),
        "overlay": {"brokers": _brokers(cluster.state), "links": _all_links(cluster.state)},
        "carried": _carried(broker, cluster),
    }


def _carried(broker: Observed, cluster: Cluster) -> list[dict[str, Any]]:
    """What each edge brings into a cluster from others. Of one that is gone it is kept, but counts for nothing."""
    if not isinstance(broker.core, MERC):
        return []
    place, is_there = broker.core.places[cluster.place], broker.core.is_there
    kinds = {"advertisements": place.advertisements, "subscriptions": place.subscriptions}
    brought = {
        kind: Counter(one.broker for origin in table for one in table.of(origin) if one.crossed)
        for kind, table in kinds.items()
    }
    edges = [record.broker for record in _records(cluster.state) if len(record.clusters) > 1]
    others = {who: list(member.also_in) for who, member in broker.members[cluster.place].items()}
    others[broker.core.me] = [one.name for one in broker.config.clusters() if one.number != cluster.number]
    return [
        {"edge": edge, "also_in": others.get(edge, []), "reachable": edge in cluster.state.reachable}
        | {kind: some[edge] * is_there(cluster.address(edge)) for kind, some in brought.items()}
        for edge in edges
    ]


def readiness(broker: Observed) -> dict[str, Any]:
    ready, reason = broker.ready()
    if broker.draining:
        ready, reason = False, reason or "draining"
    return {"ready": ready, "reason": "" if ready else reason}


def _self(broker: Observed) -> dict[str, Any]:
    return {
        "id": broker.core.me,
        "incarnation": broker.core.incarnation,
        "cluster": broker.config.cluster,
        "cluster_number": broker.config.cluster_number,
        "exports": broker.config.exports,
        "imports": broker.config.imports,
        "strategy": broker.config.strategy,
        "version": __version__,
        "pid": getpid(),
        "uptime_seconds": round(monotonic() - broker.started, 3),
        **readiness(broker),
        "draining": broker.draining,
    }


def _own_links(broker: Observed, cluster: Cluster) -> list[dict[str, Any]]:
    """A connection and the neighbour that the core has at its end come and go together, but not in one instant."""
    neighbours = cluster.neighbourhood.neighbours
    links = {at & NUMBER: link for at, link in broker.links.items() if place_of(at) == cluster.place}
    rows = []
    for who in sorted(neighbours.keys() | links.keys()):
        neighbour, link = neighbours.get(who), links.get(who)
        rows.append(
            {
                "neighbour": who,
                "address": link and link.address,
                "wire_version": link and link.version,
                "cost": neighbour and neighbour.cost,
                "rtt_ms": neighbour and _in_ms(neighbour.rtt),
                "clock_offset_ms": neighbour and _in_ms(neighbour.clock_offset),
                "queued_bytes": link and link.queued,
            }
        )
    return rows


def _in_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * _MS, 3)


def _records(state: LinkState) -> list[Record]:
    return [state[who] for who in sorted(state.reachable | state.unreachable())]


def _brokers(state: LinkState) -> list[dict[str, Any]]:
    costs = dict(zip(state.topology.brokers, state.topology.distances([state.me])[0], strict=True))
    rows = []
    for record in _records(state):
        reachable = record.broker in state.reachable
        rows.append(
            {
                "id": record.broker,
                "incarnation": record.incarnation,
                "sequence": record.sequence,
                "reachable": reachable,
                "cost": int(costs[record.broker]) if reachable else None,
                "next_hop": state.routes.next_hop(record.broker) if reachable else None,
            }
        )
    return rows


def _all_links(state: LinkState) -> list[dict[str, Any]]:
    listed: dict[tuple[int, int], list[int]] = {}
    for record in _records(state):
        for neighbour, cost in record.links:
            listed.setdefault((min(record.broker, neighbour), max(record.broker, neighbour)), []).append(cost)
    return [
        {"between": list(ends), "cost": max(costs), "state": _state(state, ends, costs)}
        for ends, costs in sorted(listed.items())
    ]


def _state(state: LinkState, ends: tuple[int, int], costs: list[int]) -> str:
    if not state.reachable & set(ends):
        return OUT_OF_REACH
    return UP if len(costs) == len(ends) else ONE_END
