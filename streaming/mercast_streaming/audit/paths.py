"""The way that a wrong event took, hop by hop, and the broker where it went wrong: the last one that had it."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast.protocol.rows import FIRST, WAITED
from mercast_streaming.audit.reading import EVENT, rows_of
from mercast_streaming.audit.report import Named, Step
from mercast_streaming.audit.table import table

_NUMBER = 0xFFFF
"""Bits of an address that are the broker's number; above them is the place."""

_COLUMNS = {
    "published": (*EVENT, "time", "at", "type", "attributes", "publisher", "destinations", "matches"),
    "received": (*EVENT, "at", "neighbour", "hops", "copy", "taken", "interested"),
    "delivered": (*EVENT, "at", "client", "subscriptions"),
    "dropped": (*EVENT, "at", "why"),
}
_ORDER = {kind: place for place, kind in enumerate(("published", "received", "dropped", "delivered"))}


def trace(spark: SparkSession, messages: DataFrame, links: Iterable[Any], named: Sequence[Named]) -> None:
    """Gives each of these its event's content, its path and where it went wrong; `links` are rows about such."""
    ids = table(spark, dict.fromkeys(EVENT, "bigint"), sorted({one.event for one in named}))
    found = rows_of(messages, _COLUMNS).join(F.broadcast(ids), list(EVENT))
    steps: dict[tuple[int, ...], list[Step]] = {}
    contents: dict[tuple[int, ...], Any] = {}
    for row in found.collect():
        event = tuple(row[name] for name in EVENT)
        steps.setdefault(event, []).append(Step(row["broker"], row["at"], row["kind"], _told(row["kind"], row)))
        if row["kind"] == "published":
            contents[event] = row
    near = _neighbours(links)
    for one in named:
        one.path = sorted(steps.get(one.event, ()), key=lambda step: (step.at, _ORDER[step.what]))
        content = contents.get(one.event)
        if content is not None:
            one.type, one.attributes, one.time = content["type"], content["attributes"], content["time"]
        one.last = last(one, near)


def _neighbours(linked: Iterable[Any]) -> dict[int, set[int]]:
    links: dict[int, set[int]] = {}
    for row in linked:
        here, there = row["broker"], row["neighbour"] & _NUMBER
        links.setdefault(here, set()).add(there)
        links.setdefault(there, set()).add(here)
    return links


def last(one: Named, links: Mapping[int, set[int]]) -> int | None:
    """The broker itself, if it had the event; else the nearest to it, by links, that had it; of several, the latest."""
    if one.what != "missing":
        return one.broker
    had = {step.broker: step.at for step in one.path}
    if one.broker in had or not had:
        return one.broker if had else None
    seen, ahead = {one.broker}, deque([one.broker])
    while ahead:
        near = [broker for broker in ahead if broker in had]
        if near:
            return max(near, key=lambda broker: had[broker])
        ahead = deque(sorted({far for broker in ahead for far in links.get(broker, ())} - seen))
        seen.update(ahead)
    return max(had, key=lambda broker: had[broker])


def _told(kind: str, row: Any) -> str:
    match kind:
        case "published":
            return f"by {row['publisher'] or '?'}, {row['destinations']} other brokers, {row['matches']} clients here"
        case "received" if row["copy"] == WAITED:
            return "carried on, after it had waited"
        case "received":
            marks = [f"from broker {row['neighbour'] & _NUMBER}", f"hop {row['hops']}"]
            marks += [] if row["copy"] == FIRST else ["not the first copy"]
            marks += ["for clients here"] if row["interested"] else ["passes by"] if not row["taken"] else ["taken"]
            return ", ".join(marks)
        case "delivered":
            return f"to {row['client'] or '?'}, subscriptions {', '.join(map(str, row['subscriptions'] or ()))}"
        case _:
            return str(row["why"])
