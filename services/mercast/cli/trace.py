"""`mercast trace`: publish one event, and show the way it takes."""

import logging
import sys
from time import monotonic
from typing import Any

import orjson

from mercast.cli.asking import Token, Url, accepted, attributes, say, talking, tell_what_happens
from mercast.client.errors import NotAnswered
from mercast.client.event import Hop
from mercast.protocol.rows import FIRST, WAITED, Copied, Delivered, Dropped, Published


def trace(
    type: str,
    /,
    *attribute: str,
    wait: float = 2.0,
    json: bool = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Publish one event that every broker on its way reports about, and show the reports as they come in.

    Brokers are indented by the links that the event crossed to them. The times are those at which the reports were back
    here, since it was published. Exit status: 0 if the event was accepted, 1 if not.

    Parameters
    ----------
    type
        Its type.
    attribute
        Its attributes: name=value, as for `mercast pub`.
    wait
        Seconds to wait for reports.
    json
        One JSON object per report.
    url
        Where a broker is: mercast://host:port, or several parted by commas.
    token
        What the broker asks for.
    """
    if not 0 < wait < float("inf"):
        sys.exit("mercast trace: --wait is more than 0 seconds")
    tell_what_happens(logging.WARNING)
    values = attributes(attribute)
    with talking("trace", url, token) as client:
        began = monotonic()
        traced = client.trace(type, values)
        if not json:
            say(accepted(traced.receipt, type))
        while (left := began + wait - monotonic()) > 0:
            try:
                hop = traced.get(left)
            except NotAnswered:
                return
            milliseconds = (monotonic() - began) * 1000
            say(_json(hop, milliseconds) if json else _line(hop, milliseconds))


_WIDTH = 60


def _line(hop: Hop, milliseconds: float) -> str:
    hops, what = _told(hop)
    return f"{'  ' * hops}broker {hop.broker}: {what}".ljust(_WIDTH) + f" {milliseconds:7.1f} ms"


def _told(hop: Hop) -> tuple[int, str]:
    """Links crossed, and what happened there."""
    match hop.row:
        case Published(destinations=found, matches=matches):
            return 0, f"published, {_count(found, 'other broker')}, {_count(matches, 'client')} here"
        case Copied(hops=hops, copy=copy) if copy == WAITED:
            return hops, "carried on, after it had waited"
        case Copied(neighbour=neighbour, hops=hops, copy=copy, interested=interested):
            which = "" if copy == FIRST else ", not the first copy"
            return hops, f"{_count(hops, 'hop')}, from broker {neighbour}{which}{'' if interested else ', passes by'}"
        case Delivered(client=client, hops=hops):
            return hops, f"delivered to {client}"
        case Dropped(why=why):
            return 0, f"dropped: {why}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _json(hop: Hop, milliseconds: float) -> str:
    row: dict[str, Any] = hop.row._asdict()
    kind = "received" if isinstance(hop.row, Copied) else type(hop.row).__name__.lower()
    said = {"broker": hop.broker, "ms": round(milliseconds, 3), "kind": kind} | row | {"event": list(hop.row.event)}
    return orjson.dumps(said).decode()
