"""What was due, beside what was delivered.

A pair is an event and a subscription whose filter is true of it. `expected` says of each pair what it means if it was
not delivered; `got` maps deliveries to subscriptions; `compared` puts both together, and `explained` looks again at
what nobody expected.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast_streaming.audit.control import ADVERTISEMENT, NEVER, SUBSCRIPTION, BrokerLife, Known, Life
from mercast_streaming.audit.evaluate import Question, Questions
from mercast_streaming.audit.reading import BROKER, EVENT
from mercast_streaming.audit.table import table

DELIVERY = (*EVENT, *BROKER, "client")
"""What there should be one of at most."""

RIGHT, MISSING, DOUBLED, UNDUE = "right", "missing", "doubled", "undue"
WRONG = (MISSING, DOUBLED, UNDUE)
UNEXPECTED = "unexpected"

GREY = (
    "subscription not settled",
    "subscription about to end",
    "publisher's advertisement not settled",
    "type declared just before",
    "another cluster",
    "near a fault",
)
(_UNSETTLED, _ENDING, _UNADVERTISED, _DECLARED, _ACROSS, _FAULT) = GREY

UNKNOWN = (
    "taps begin later",
    "taps end earlier",
    "control rows lost",
    "rows lost",
    "publish not recorded",
    "attributes not recorded",
    "filter not recorded or not readable",
    "client not recorded",
)
(_BEGINS, _ENDS, _DOUBT, _GAP, _UNPUBLISHED, _UNTOLD, _UNREADABLE, _NAMELESS) = UNKNOWN

UNDUE_BECAUSE = (
    "the filter does not match",
    "no such subscription",
    "the subscription had ended",
    "the client's own event, not wanted back",
    "nobody published it",
)
(_MISMATCH, _NOBODY, _OVER, _OWN, _UNHEARD) = UNDUE_BECAUSE


# -- small tables ------------------------------------------------------------------------------------------------------

_NUMBER, _TEXT, _FLAG = "bigint", "string", "boolean"
_BROKERS = {
    **dict.fromkeys((*BROKER, "begins", "ends"), _NUMBER),
    "doubts": "array<struct<start: bigint, end: bigint>>",
    "gaps": "array<struct<partition: int, start: bigint, end: bigint>>",
}
_LIVES = {
    "life": "int", "question": "int", "broker": _NUMBER, "incarnation": _NUMBER, "of_cluster": _TEXT, "client": _TEXT,
    "request": _NUMBER, "echo": _FLAG, "since": _NUMBER, "before": _NUMBER, "settled": _NUMBER, "ended": _NUMBER,
    "sure": _NUMBER, "gone": _NUMBER, "readable": _FLAG, "asks": _FLAG, "type": _TEXT,
}  # fmt: skip
_ADVERTISEMENTS = {
    "event_broker": _NUMBER, "event_incarnation": _NUMBER, "publisher": _TEXT,
    "advertisements": "array<struct<question: int, settled: bigint, ended: bigint>>",
}  # fmt: skip


def broker_table(spark: SparkSession, brokers: Mapping[BrokerLife, Known]) -> DataFrame:
    rows = [
        (*who, one.begins, one.ends, [span._asdict() for span in one.doubts],
         [{"partition": partition} | span._asdict() for partition, span in one.gaps])
        for who, one in brokers.items()
    ]  # fmt: skip
    return table(spark, _BROKERS, rows)


def question_of(life: Life) -> Question | None:
    return None if life.filter is None else Question(life.type, life.filter)


def subscription_table(spark: SparkSession, lives: Iterable[Life], asked: Questions) -> DataFrame:
    rows = []
    asking = asked.asking
    for life in lives:
        if life.what == SUBSCRIPTION:
            question = question_of(life)
            number = None if question is None else asked.asked[question]
            rows.append(
                (life.number, number, life.broker, life.incarnation, life.cluster, life.client, life.request, life.echo,
                 life.since, life.before, life.settled, life.ended, life.sure, life.gone,
                 number in asked.read, number in asking, life.type)
            )  # fmt: skip
    return table(spark, _LIVES, rows)


def advertisement_table(spark: SparkSession, lives: Iterable[Life], asked: Questions) -> DataFrame:
    """Of each publisher its advertisements; the question is null where nothing says which events they are for."""
    by_client: dict[tuple[int, int, str], list[dict[str, int | None]]] = {}
    for life in lives:
        if life.what == ADVERTISEMENT and life.client is not None:
            question = question_of(life)
            number = None if question is None else asked.asked[question]
            told = {"question": number if number in asked.read else None, "settled": life.settled, "ended": life.gone}
            by_client.setdefault((life.broker, life.incarnation, life.client), []).append(told)
    return table(spark, _ADVERTISEMENTS, [(*who, some) for who, some in by_client.items()])


# -- what was due ------------------------------------------------------------------------------------------------------


def advertised(events: DataFrame, advertisements: DataFrame, skew: int) -> DataFrame:
    """Events with `advertised`: whether an advertisement for it had settled, so that interest elsewhere was known."""
    held = F.expr(
        f"""exists(advertisements, one -> (one.question IS NULL OR array_contains(answers, one.question))
            AND one.settled + {skew} <= time AND time < one.ended)"""
    )
    publisher = ["event_broker", "event_incarnation", "publisher"]
    found = events.join(F.broadcast(advertisements), publisher, "left")
    return found.withColumn("advertised", F.coalesce(held, F.lit(False))).drop("advertisements")


def expected(
    events: DataFrame,
    subscriptions: DataFrame,
    brokers: DataFrame,
    declared: Mapping[tuple[str, str], int],
    *,
    skew: int,
    grace: int,
    across: bool = True,
) -> DataFrame:
    """Pairs, each with what it means if there is no delivery: `missing`, or why it need not be.

    `declared` says since when the second type is a subtype of the first.
    """
    asked = events.select(
        *EVENT, "time", "partition", "cluster", "publisher", "advertised", "fault", F.col("type").alias("event_type"),
        F.explode("answers").alias("question"),
    )  # fmt: skip
    known = subscriptions.join(F.broadcast(brokers), list(BROKER), "left")
    pairs = asked.join(F.broadcast(known), "question").where("time >= since AND time < gone")
    own = "(NOT echo AND publisher <=> client AND broker = event_broker AND incarnation = event_incarnation)"
    pairs = pairs.where(f"NOT {own}")
    unsettled = F.expr(f"settled + {skew} > time")
    cases = [
        (F.col("client").isNull(), _NAMELESS),
        (F.expr(f"time < begins + {skew}"), _BEGINS),
        (F.expr(f"exists(doubts, one -> one.start - {grace} <= time AND time <= one.end + {skew})"), _DOUBT),
        (unsettled, _UNSETTLED),
        (F.expr(f"ended < {NEVER} AND time + {grace} > ended"), _ENDING),
        (F.expr("NOT advertised AND (broker <> event_broker OR incarnation <> event_incarnation)"), _UNADVERTISED),
        *([] if across else [(F.col("of_cluster") != F.col("cluster"), _ACROSS)]),
        *([(_declared_late(declared, grace), _DECLARED)] if declared else []),
        (F.col("fault"), _FAULT),
        (F.expr(f"time + {grace} > sure"), _ENDS),
        (_in_gap("gaps", "partition", "time", skew, grace), _GAP),
    ]
    return pairs.select(*EVENT, "life", _first(cases, F.lit(MISSING)).alias("state"))


def _declared_late(declared: Mapping[tuple[str, str], int], grace: int) -> Column:
    late = F.lit(False)
    for (type_, subtype), since in declared.items():
        late |= (F.col("type") == type_) & (F.col("event_type") == subtype) & (F.col("time") < since + grace)
    return F.coalesce(late, F.lit(False))


def _in_gap(gaps: str, partition: str, time: str, skew: int, grace: int) -> Column:
    return F.expr(
        f"""exists({gaps}, one -> (one.partition IS NULL OR one.partition = {partition})
            AND one.start - {grace} <= {time} AND {time} <= one.end + {skew})"""
    )


def _first(cases: Iterable[tuple[Column, str]], otherwise: Column) -> Column:
    found: Any = F
    for case, name in cases:
        found = found.when(case, F.lit(name))
    chosen: Column = found.otherwise(otherwise)
    return chosen


# -- what was delivered ------------------------------------------------------------------------------------------------


def got(delivered: DataFrame, subscriptions: DataFrame, brokers: DataFrame) -> DataFrame:
    """A row for each delivery and subscription that it names: its `life`, if there is one, and its `state`."""
    each = delivered.withColumn("request", F.explode_outer("subscriptions")).drop("subscriptions")
    wanted = subscriptions.select(*BROKER, "client", "request", "life", "since", "before", "ended")
    of_life = (
        [each[name].eqNullSafe(wanted[name]) for name in (*BROKER, "client", "request")]
        + [each["at"] >= wanted["since"], each["at"] < wanted["before"]]
    )  # fmt: skip
    found = each.join(F.broadcast(wanted), of_life, "left").drop(
        *(wanted[name] for name in (*BROKER, "client", "request"))
    )
    found = found.join(F.broadcast(brokers.select(*BROKER, "begins", "doubts")), list(BROKER), "left")
    doubtful = F.expr("at < begins OR begins IS NULL OR exists(doubts, one -> one.start <= at AND at <= one.end)")
    nameless, homeless = F.col("client").isNull(), F.col("life").isNull()
    cases = [
        (nameless, _NAMELESS),
        (homeless & doubtful, _DOUBT),
        (homeless, _NOBODY),
        (F.col("at") > F.col("ended"), _OVER),
    ]
    return found.select(*EVENT, "time", "partition", *BROKER, "client", "request", "at", "life", _state(cases))


def _state(cases: Iterable[tuple[Column, str]]) -> Column:
    return _first(cases, F.lit(RIGHT)).alias("state")


def doubles(delivered: DataFrame) -> DataFrame:
    """Deliveries of one event to one client, where there is more than one."""
    named = delivered.where(F.col("client").isNotNull())
    return named.groupBy(*DELIVERY).agg(F.count(F.lit(1)).alias("copies")).where("copies > 1")


# -- both --------------------------------------------------------------------------------------------------------------


def compared(due: DataFrame, delivered: DataFrame) -> DataFrame:
    """Each pair once, with its `state`: right, what it means that it was not delivered, or unexpected."""
    names = F.array(*map(F.lit, (MISSING, *GREY, *UNKNOWN)))
    # By its place: Spark sorts what it adds up if there is text among it.
    place = F.array_position(names, F.col("state")).cast("int")
    there = due.select(*EVENT, "life", place.alias("due"), F.lit(0).alias("copies"))
    came = delivered.where(F.col("state") == RIGHT).select(
        *EVENT, "life", F.lit(0).alias("due"), F.lit(1).alias("copies")
    )
    both = there.union(came).groupBy(*EVENT, "life").agg(F.max("due").alias("due"), F.sum("copies").alias("copies"))
    state = F.when(F.col("due") == 0, F.lit(UNEXPECTED)).when(F.col("copies") == 0, F.element_at(names, F.col("due")))
    return both.select(*EVENT, "life", state.otherwise(F.lit(RIGHT)).alias("state"))


def explained(unexpected: DataFrame, events: DataFrame, subscriptions: DataFrame, brokers: DataFrame) -> DataFrame:
    """Deliveries that nobody expected, each with its `state`: right after all, unknown, or why it is undue.

    `unexpected` are rows of `got`.
    """
    publisher = brokers.select(
        F.col("broker").alias("event_broker"), F.col("incarnation").alias("event_incarnation"),
        F.col("ends").alias("_ends"), F.col("gaps").alias("_gaps"),
    )  # fmt: skip
    seen = events.select(*EVENT, "told", "publisher", "answers")
    lives = subscriptions.select("life", "question", "echo", "readable", "asks")
    found = unexpected.drop("state").join(seen, list(EVENT), "left").join(F.broadcast(lives), "life", "left")
    found = found.join(F.broadcast(publisher), ["event_broker", "event_incarnation"], "left")
    heard = F.col("told").isNotNull()
    unrecorded = (
        F.col("_ends").isNull() | (F.col("time") > F.col("_ends")) | _in_gap("_gaps", "partition", "time", 0, 0)
    )
    own = F.expr("NOT echo AND publisher <=> client AND broker = event_broker AND incarnation = event_incarnation")
    cases = [
        (~heard & unrecorded, _UNPUBLISHED),
        (~heard, _UNHEARD),
        (~F.col("readable"), _UNREADABLE),
        (F.col("asks") & ~F.col("told"), _UNTOLD),
        (own, _OWN),
        (F.expr("array_contains(answers, question)"), RIGHT),
    ]
    return found.select(*unexpected.drop("state").columns, _first(cases, F.lit(_MISMATCH)).alias("state"))
