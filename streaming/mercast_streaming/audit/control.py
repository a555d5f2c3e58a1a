"""Who was subscribed when: the lives of subscriptions and advertisements, from the control rows.

Spark gathers the rows of each into one (`lives`); what is uncertain about it then follows from what is known of its
broker's taps (`Known`): where they begin and end, which rows are lost, and what the snapshots do not have.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast_streaming.audit.reading import BROKER, rows_of

SUBSCRIPTION, ADVERTISEMENT = "subscription", "advertisement"
NEVER = 2**62
"""A time that does not come."""

_KEY = (*BROKER, "what", "client", "request")
_MADE, _SETTLED, _ENDED = range(3)
"""In this order, if they happened at the same time."""

BrokerLife: TypeAlias = tuple[int, int]
"""A broker, and its incarnation."""


# -- in Spark ----------------------------------------------------------------------------------------------------------


_ABOUT = {
    "subscribed": ("client", "request", "at", "type", "filter", "echo", "settled_at"),
    "unsubscribed": ("client", "request", "at"),
    "advertised": ("client", "request", "at", "type", "filter"),
    "unadvertised": ("client", "request", "at"),
    "settled": ("client", "request", "at", "missing"),
}
"""Kinds of rows about subscriptions and advertisements."""


def control_rows(messages: DataFrame) -> DataFrame:
    """All of these, alike: `what` they are about, and which `step` of its life."""
    found = rows_of(messages, _ABOUT)
    kind = F.col("kind")
    step = F.when(kind == "settled", _SETTLED).when(kind.startswith("un"), _ENDED).otherwise(_MADE)
    # A request made one thing or the other; what it settles is what it made.
    both = F.array(F.lit(SUBSCRIPTION), F.lit(ADVERTISEMENT))
    one = F.when(kind.endswith("subscribed"), SUBSCRIPTION).otherwise(ADVERTISEMENT)
    whats = F.when(kind == "settled", both).otherwise(F.array(one))
    return found.select("*", step.alias("step"), F.explode(whats).alias("what"))


def lives(control: DataFrame) -> DataFrame:
    """One row for each subscription and advertisement: `since`, `settled`, `ended`, and when it was last spoken of.

    A client may use the number of a request again when nothing is left of what it made.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("at", "step")
    made, before = F.col("step") == _MADE, F.lag("step").over(in_order)
    # Settled rows before it are of another request of that number.
    ended_before = F.last(F.when(F.col("step") != _SETTLED, F.col("step")), ignorenulls=True).over(
        in_order.rowsBetween(Window.unboundedPreceding, -1)
    )
    new = made & (before.isNull() | F.coalesce(ended_before == _ENDED, F.lit(True)))
    numbered = control.withColumn("_new", new.cast("int"))
    numbered = numbered.withColumn("life", F.sum("_new").over(in_order)).where("life > 0")
    agreed = F.when((F.col("step") == _SETTLED) & (F.size("missing") == 0), F.col("at"))
    return numbered.groupBy(*_KEY, "life").agg(
        F.min(F.when(made, F.col("at"))).alias("since"),
        F.max(F.when(made, F.col("at"))).alias("said"),
        F.min(F.least(agreed, F.col("settled_at"))).alias("settled"),
        F.min(F.when(F.col("step") == _ENDED, F.col("at"))).alias("ended"),
        *(F.first(name, ignorenulls=True).alias(name) for name in ("cluster", "type", "filter", "echo")),
    )


# -- what is known of brokers ------------------------------------------------------------------------------------------


class Span(NamedTuple):
    start: int
    end: int


@dataclass
class Known:
    """What the taps of one broker in one of its incarnations cover."""

    begins: int
    """From when on its control state is known: never, if it is never told whole."""
    ends: int
    """When its last row was written."""
    replaced: int = NEVER
    """When its next incarnation was seen."""
    doubts: list[Span] = field(default_factory=list)
    """Control rows are lost: what holds is not known until the next snapshot."""
    gaps: list[tuple[int | None, Span]] = field(default_factory=list)
    """Rows about events are lost, of a partition or of any."""
    snapshots: list[int] = field(default_factory=list)


def known(extents: Iterable[Any], snapshots: Iterable[Any]) -> dict[BrokerLife, Known]:
    """From small tables: each broker's extent and losses (reading.py), and complete snapshots."""
    found: dict[BrokerLife, Known] = {}
    extents = list(extents)
    for row in extents:
        one = found[row["broker"], row["incarnation"]] = Known(0, row["to"] or 0)
        one.gaps += [(None, Span(at - row["interval"], at)) for at in row["lost"]]
    for row in snapshots:
        found[row["broker"], row["incarnation"]].snapshots.append(row["at"])
    for one in found.values():
        one.snapshots.sort()
    _replace(found)
    for row in extents:
        one = found[row["broker"], row["incarnation"]]
        for gap in row["gaps"]:
            _leave_out(one, gap)
        if not one.snapshots:
            one.begins = NEVER
    return found


def _leave_out(one: Known, gap: Any) -> None:
    start = 0 if gap["from"] is None else gap["from"]
    end = NEVER if gap["to"] is None else gap["to"]
    if not gap["control"]:
        one.gaps.append((gap["partition"], Span(start, end)))
        return
    again = bisect_right(one.snapshots, end)  # of one that is spoken of right after the gap, a part may be lost
    span = Span(start, one.snapshots[again] if again < len(one.snapshots) else NEVER)
    if start == 0:
        one.begins = span.end
    else:
        one.doubts.append(span)


def _replace(found: Mapping[BrokerLife, Known]) -> None:
    """A broker lives once at a time: where its next incarnation has a snapshot, this one is no more."""
    for (broker, incarnation), one in found.items():
        later = [other for other in found if other[0] == broker and other[1] > incarnation]
        if later:
            following = found[min(later)]
            one.replaced = following.snapshots[0] if following.snapshots else following.ends


# -- both together -----------------------------------------------------------------------------------------------------


class Life(NamedTuple):
    """A subscription or an advertisement, and how sure that is."""

    number: int
    what: str
    broker: int
    incarnation: int
    cluster: str
    client: str | None
    request: int
    type: str | None
    filter: str | None
    echo: bool
    since: int
    before: int
    """Deliveries from `since` until then are of this life: another has the number of its request after that."""
    settled: int
    """NEVER, if it did not."""
    ended: int
    """When it was taken back: NEVER, if nothing says so."""
    sure: int
    """Until when it is certain that it was there, or was taken back."""
    gone: int
    """From when on it is certain that it was not there."""


def assemble(rows: Iterable[Any], brokers: Mapping[BrokerLife, Known], grace: int) -> list[Life]:
    """Advertisements that publishing implied are never told to have settled: they are taken to after the grace."""
    found: list[Life] = []
    in_order = sorted(rows, key=lambda row: (*_sortable(row), row["since"]))
    for number, row in enumerate(in_order):
        following = in_order[number + 1] if number + 1 < len(in_order) else None
        again = following is not None and _sortable(following) == _sortable(row)
        broker = brokers[row["broker"], row["incarnation"]]
        ended = NEVER if row["ended"] is None else row["ended"]
        without = bisect_right(broker.snapshots, row["said"])
        vanished = broker.snapshots[without] if without < len(broker.snapshots) else NEVER
        settled = row["settled"]
        if settled is None:
            settled = row["since"] + grace if row["what"] == ADVERTISEMENT else NEVER
        found.append(
            Life(
                number, row["what"], row["broker"], row["incarnation"], row["cluster"], row["client"], row["request"],
                row["type"], row["filter"], row["echo"] is not False, row["since"],
                following["since"] if again and following is not None else NEVER, settled, ended,
                min(ended, row["said"] if vanished < min(ended, NEVER) else broker.ends),
                min(ended, vanished, broker.replaced),
            )
        )  # fmt: skip
    return found


def _sortable(row: Any) -> tuple[int, int, str, str, int]:
    return row["broker"], row["incarnation"], row["what"], row["client"] or "", row["request"]


# -- types and links ---------------------------------------------------------------------------------------------------


def descendants(declared: Iterable[Any]) -> dict[str, dict[str, int]]:
    """Of each type its subtypes, and since when they are: since the last declaration between the two."""
    parents: dict[str, tuple[str, int]] = {}
    for row in declared:
        if row["parent"] is not None:
            since = min(row["at"], parents.get(row["type"], (row["parent"], NEVER))[1])
            parents[row["type"]] = row["parent"], since
    found: dict[str, dict[str, int]] = {}
    for type_ in parents:
        at, since, seen = type_, 0, {type_}
        while at in parents and parents[at][0] not in seen:
            at, declared_at = parents[at]
            since = max(since, declared_at)
            seen.add(at)
            found.setdefault(at, {})[type_] = since
    return found
