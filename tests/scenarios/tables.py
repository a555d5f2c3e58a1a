"""The tables of a broker, as the papers have them: what is in each, and where it came from."""

from collections.abc import Iterable
from typing import Any

from scenarios.names import Names

from mercast.overlay.topology import NO_LINK, Topology
from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.rendezvous.static_hash import StaticHash


def tables(core: Core, names: Names) -> str:
    """Of what clients offer and want, those that have something in them."""
    found = {table: ", ".join(sorted(entries)) for table, entries in _entries(core, names).items() if entries}
    return "; ".join(f"{table} {entries}" for table, entries in found.items()) or "nothing"


def _entries(core: Core, names: Names) -> dict[str, list[str]]:
    def said(key: tuple[Any, ...], broker: int) -> str:
        return f"{names.thing(key)} from {names.broker(broker)}"

    l_srt = [f"{names.thing(local)} from {local.client}" for local in core.clients.advertisements]
    l_prt = [f"{names.thing(local)} from {local.client}" for local in core.clients.subscriptions]
    match core:
        case DDBR():
            r_srt = [said(key, peer) for peer, table in core.r_srt.items() for key in table]
            return {
                "L-SRT": l_srt,
                "R-SRT": r_srt,
                "L-PRT": l_prt,
                "R-PRT": [said(key, peer) for peer, key in core.r_prt],
            }
        case FBR():
            srt = [said(origin, tree.last_hop) for origin, tree in core.srt.items() if origin[0] != core.me]
            prt = [f"{said(origin, peer)} for {names.thing(tree)}" for peer, tree, origin in core.prt]
            return {"SRT": l_srt + srt, "PRT": l_prt + prt}
        case StaticHash():
            return {"L-SRT": l_srt, "L-PRT": l_prt, "kept": [said(key, peer) for peer, key in core.kept]}
    return {"L-SRT": l_srt, "L-PRT": l_prt}


def sprt(core: Core, names: Names) -> list[str]:
    """The next hop to every other broker, and what the way costs."""
    topology, routes = core.state.topology, core.state.routes
    distances = topology.distances([core.me])[0]
    return [
        f"to {names.broker(broker)} by {names.broker(routes.next_hop(broker))}, cost {distances[place]:.0f}"
        if broker in routes.reachable
        else f"to {names.broker(broker)} no path"
        for place, broker in enumerate(topology.brokers)
        if broker != core.me
    ]


def trt(cores: Iterable[Core], names: Names) -> list[str]:
    """The matrices of these brokers; those that have the same one share it."""
    views: list[tuple[Topology, list[int]]] = []
    for core in cores:
        for topology, sharers in views:
            if topology == core.state.topology:
                sharers.append(core.me)
                break
        else:
            views.append((core.state.topology, [core.me]))
    return [line for topology, sharers in views for line in (names.brokers(sharers), *_matrix(topology, names))]


def _matrix(topology: Topology, names: Names) -> list[str]:
    heads = [names.broker(broker) for broker in topology.brokers]
    width = max(map(len, heads))
    cells = [[str(cost) if cost != NO_LINK else "." for cost in row] for row in topology.trt]
    rows = [["", *heads], *([head, *row] for head, row in zip(heads, cells, strict=True))]
    return ["  " + " ".join(cell.rjust(width) for cell in row) for row in rows]
