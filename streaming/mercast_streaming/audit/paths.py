"""The way that a wrong event took, hop by hop, and the broker where it went wrong: the last one that had it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast.protocol.rows import FIRST
from mercast_streaming.audit.reading import EVENT
from mercast_streaming.audit.report import Named, Step

Rows: TypeAlias = Callable[..., DataFrame]
"""Of a kind, with the columns that are named."""

_NUMBER = 0xFFFF
"""Bits of an address that are the broker's number; above them is the place."""

_COLUMNS = {
    "published": ("at", "type", "attributes", "publisher", "destinations", "matches"),
    "received": ("at", "neighbour", "hops", "copy", "taken", "interested"),
    "delivered": ("at", "client", "subscriptions", "hops"),
    "dropped": ("at", "why"),
}
_ORDER = {kind: place for place, kind in enumerate(("published", "received", "dropped", "delivered"))}


def trace(spark: SparkSession, rows: Rows, named: Sequence[Named]) -> None:
    """Gives each of these its event's content, its path and where it went wrong."""
    ids = spark.createDataFrame(sorted({one.event for one in named}), ", ".join(f"{name} bigint" for name in EVENT))
    steps: dict[tuple[int, ...], list[Step]] = {}
    contents: dict[tuple[int, ...], Any] = {}
    for kind, columns in _COLUMNS.items():
        for row in rows(kind, *EVENT, "time", *columns).join(F.broadcast(ids), list(EVENT)).collect():
            event = tuple(row[name] for name in EVENT)
            steps.setdefault(event, []).append(Step(row["broker"], row["at"], kind, _told(kind, row)))
            if kind == "published":
                contents[event] = row
    linked = rows("linked", "neighbour").select("broker", "neighbour").distinct().collect()
    links: dict[int, set[int]] = {}
    for row in linked:
        here, there = row["broker"], row["neighbour"] & _NUMBER
        links.setdefault(here, set()).add(there)
        links.setdefault(there, set()).add(here)
    for one in named:
        one.path = sorted(steps.get(one.event, ()), key=lambda step: (step.at, _ORDER[step.what]))
        content = contents.get(one.event)
        if content is not None:
            one.type, one.attributes, one.time = content["type"], content["attributes"], content["time"]
        one.last = last(one, links)


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
        case "received":
            marks = [f"from broker {row['neighbour'] & _NUMBER}", f"hop {row['hops']}"]
            marks += [] if row["copy"] == FIRST else ["not the first copy"]
            marks += ["for clients here"] if row["interested"] else ["passes by"] if not row["taken"] else ["taken"]
            return ", ".join(marks)
        case "delivered":
            return f"to {row['client'] or '?'}, subscriptions {', '.join(map(str, row['subscriptions'] or ()))}"
        case _:
            return str(row["why"])
