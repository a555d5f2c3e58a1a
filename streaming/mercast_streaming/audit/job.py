"""The audit from end to end: a source of tap messages in, a report out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast_streaming.audit import control, judging, paths, reading
from mercast_streaming.audit.control import Life
from mercast_streaming.audit.evaluate import Questions, answered, kinds, questions
from mercast_streaming.audit.judging import GREY, MISSING, RIGHT, UNDUE_BECAUSE, UNEXPECTED, UNKNOWN
from mercast_streaming.audit.reading import BROKER, EVENT
from mercast_streaming.audit.report import Named, Report

_SECOND = 1_000_000


@dataclass(frozen=True)
class Setting:
    since: int | None = None
    """Microseconds since 1970: events from then on. None: all."""
    until: int | None = None
    """Events before that."""
    grace: float = 5.0
    """Seconds that an event may be on its way, and news may take where nothing says that it has settled."""
    around_faults: float | None = None
    """Seconds: events so near to the end of a link are not expected. None: they are."""
    across: bool = True
    """Whether events are due in other clusters than the one that they are published in."""
    held: Collection[str] | None = None
    """The attributes that taps hold, if not all."""
    named: int = 1_000
    """How many wrong deliveries are named at most; all are counted."""


@dataclass
class _Audit:
    """One run: what it reads, and what it knows by now."""

    spark: SparkSession
    source: DataFrame
    setting: Setting
    doubled: bool = False
    """Whether messages are there twice."""
    grace: int = 0
    skew: int = 0
    lives: list[Life] = field(default_factory=list)
    asked: Questions = field(default_factory=lambda: questions(()))
    kinds: dict[str, str] = field(default_factory=dict)
    declared: dict[str, dict[str, int]] = field(default_factory=dict)
    faults: list[int] = field(default_factory=list)

    def rows(self, kind: str, *columns: str) -> DataFrame:
        return reading.rows(self.source, kind, columns, self.doubled)

    def event_rows(self, kind: str, *columns: str) -> DataFrame:
        """Those of events in the time that is asked for."""
        found = self.rows(kind, *EVENT, "time", *columns)
        if self.setting.since is not None:
            found = found.where(F.col("time") >= self.setting.since)
        if self.setting.until is not None:
            found = found.where(F.col("time") < self.setting.until)
        return found

    def events(self, only: DataFrame | None = None) -> DataFrame:
        """With the questions that they answer; only those with these ids, if they are given."""
        published = self.event_rows("published", "type", "attributes", "publisher")
        if only is not None:
            published = published.join(F.broadcast(only), list(EVENT), "left_semi")
        return answered(published, self.asked, self.kinds, self.declared)

    def delivered(self) -> DataFrame:
        return self.event_rows("delivered", "client", "subscriptions", "at")


def audit(spark: SparkSession, source: DataFrame, setting: Setting) -> Report:
    """Of all messages of `source` (reading.py), which is read several times."""
    run = _Audit(spark, source, setting, grace=round(setting.grace * _SECOND))
    report = Report(since=setting.since, until=setting.until)
    brokers = _know_brokers(run, report)
    _know_control(run, report, brokers)
    _judge(run, report, brokers)
    return report


# -- what is known -----------------------------------------------------------------------------------------------------


def _know_brokers(run: _Audit, report: Report) -> dict[control.BrokerLife, control.Known]:
    seen = Observation("messages")
    header = reading.headers(run.source.observe(seen, F.count(F.lit(1)).alias("messages"))).persist()
    report.messages = header.count()
    report.repeated_messages = report.messages - reading.distinct(header)
    # Those that are none, or of a newer version: their rows show as gaps besides.
    report.unreadable_messages = seen.get["messages"] - report.messages
    run.doubled = report.repeated_messages > 0
    lost = F.collect_list(F.when(F.col("lost"), F.col("to")))
    streams = header.groupBy(*BROKER).agg(
        F.max("to").alias("to"), lost.alias("lost"), F.coalesce(F.max("interval"), F.lit(0)).alias("interval"),
        F.sum("count").alias("rows"),
    ).collect()  # fmt: skip
    gaps = reading.gaps(header).collect()
    run.skew = reading.skew(header)
    header.unpersist()
    report.rows, report.lost_rows = sum(row["rows"] for row in streams), sum(row["lost_rows"] for row in gaps)
    report.brokers, report.skew_us = len(streams), run.skew
    whole = run.rows("snapshot", "ends", "rows", "at").where("ends").collect()
    return control.known(streams, gaps, whole)


def _know_control(run: _Audit, report: Report, brokers: dict[control.BrokerLife, control.Known]) -> None:
    rows = control.lives(control.control_rows(run.source, run.doubled)).collect()
    run.lives = control.assemble(rows, brokers, run.grace)
    asked = filter(None, map(judging.question_of, run.lives))
    run.asked = questions(asked, run.setting.held)
    run.declared = control.descendants(run.rows("declared", "type", "parent", "at").collect())
    if run.setting.around_faults is not None:
        run.faults = [row["at"] for row in run.rows("unlinked", "at").distinct().collect()]
    run.kinds = kinds(run.event_rows("published", "attributes"), run.asked.names)
    subscriptions = [life for life in run.lives if life.what == control.SUBSCRIPTION]
    report.subscriptions = len(subscriptions)
    report.advertisements = len(run.lives) - len(subscriptions)
    report.questions = len(run.asked.asked)
    report.unreadable_filters = sorted(run.asked.unreadable.values())
    report.unjudged_subscriptions = sum(
        question is None or run.asked.asked[question] not in run.asked.read
        for question in map(judging.question_of, subscriptions)
    )


def _near_fault(run: _Audit, events: DataFrame) -> DataFrame:
    """Spans that meet are one: faults come in crowds."""
    reach = round((run.setting.around_faults or 0) * _SECOND)
    spans: list[list[int]] = []
    for at in sorted(run.faults):
        if spans and at - reach <= spans[-1][1]:
            spans[-1][1] = at + reach
        else:
            spans.append([at - reach, at + reach])
    near = F.lit(False)
    if spans:
        table = F.array(*(F.struct(F.lit(start).alias("start"), F.lit(end).alias("end")) for start, end in spans))
        near = F.exists(table, lambda span: F.col("time").between(span["start"], span["end"]))
    return events.withColumn("fault", near)


# -- the verdict -------------------------------------------------------------------------------------------------------


def _judge(run: _Audit, report: Report, brokers: dict[control.BrokerLife, control.Known]) -> None:
    spark = run.spark
    # Kept, for Spark would have Python tell of them each time that they are asked for.
    known = judging.broker_table(spark, brokers).persist()
    subscriptions = judging.subscription_table(spark, run.lives, run.asked).persist()
    advertisements = judging.advertisement_table(spark, run.lives, run.asked).persist()
    seen, compared = Observation("events"), Observation("pairs")
    events = run.events().observe(seen, F.count(F.lit(1)).alias("events"), _count(~F.col("told")).alias("untold"))
    due = judging.expected(
        _near_fault(run, judging.advertised(events, advertisements, run.skew)), subscriptions, known,
        {(type_, subtype): since for type_, some in run.declared.items() for subtype, since in some.items()},
        skew=run.skew, grace=run.grace, across=run.setting.across,
    )  # fmt: skip
    delivered = run.delivered()
    got = judging.got(delivered, subscriptions, known)
    states = [RIGHT, MISSING, UNEXPECTED, *GREY, *UNKNOWN]
    pairs = judging.compared(due, got)
    counts = [_count(F.col("state") == state).alias(state) for state in states]
    odd = pairs.observe(compared, *counts).where(F.col("state").isin(MISSING, UNEXPECTED))
    odd = odd.persist(StorageLevel.MEMORY_AND_DISK)
    odd.count()
    report.count(seen.get | compared.get)
    missing = odd.where(F.col("state") == MISSING)
    unexpected = odd.where(F.col("state") == UNEXPECTED).select(*EVENT, "life") if compared.get[UNEXPECTED] else None
    undue = _undue(run, report, got, unexpected, subscriptions, known)
    doubles = judging.doubles(delivered).persist(StorageLevel.MEMORY_AND_DISK)
    report.doubled = doubles.count()
    _name(run, report, missing, undue, doubles)
    for table in (known, subscriptions, advertisements, odd, undue, doubles):
        table.unpersist()


def _count(condition: Any) -> Any:
    return F.coalesce(F.sum(condition.cast("bigint")), F.lit(0))


def _undue(
    run: _Audit,
    report: Report,
    got: DataFrame,
    unexpected: DataFrame | None,
    subscriptions: DataFrame,
    known: DataFrame,
) -> DataFrame:
    """Deliveries that were not simply right, all counted, each with its `state`."""
    plain = got.where(F.col("state") != RIGHT)
    if unexpected is not None:
        again = got.where(F.col("state") == RIGHT).join(unexpected, [*EVENT, "life"])
        events = run.events(unexpected.select(*EVENT).distinct())
        plain = plain.unionByName(judging.explained(again, events, subscriptions, known))
    plain = plain.persist(StorageLevel.MEMORY_AND_DISK)
    states = {row["state"]: row["count"] for row in plain.groupBy("state").count().collect()}
    report.right += states.pop(RIGHT, 0)
    report.count(states)
    return plain


# -- names -------------------------------------------------------------------------------------------------------------


def _name(run: _Audit, report: Report, missing: DataFrame, undue: DataFrame, doubles: DataFrame) -> None:
    lives = {life.number: life for life in run.lives}
    wrong: dict[tuple[Any, ...], Named] = {}

    def note(what: str, why: str, row: Any, broker: int, client: str | None, requests: Sequence[int | None]) -> None:
        event = tuple(row[name] for name in EVENT)
        named = wrong.setdefault((what, why, event, broker, client), Named(what, why, event, broker, client))
        named.requests += [one for one in requests if one is not None and one not in named.requests]

    most = run.setting.named
    for row in missing.orderBy(*EVENT).limit(most).collect() if report.missing else ():
        life = lives[row["life"]]
        note("missing", "", row, life.broker, life.client, [life.request])
    undue = undue.where(F.col("state").isin(*UNDUE_BECAUSE))
    for row in undue.orderBy(*EVENT).limit(most).collect() if report.undue else ():
        note("undue", row["state"], row, row["broker"], row["client"], [row["request"]])
    copies = run.delivered().join(F.broadcast(doubles.orderBy(*EVENT).limit(most)), list(judging.DELIVERY))
    for row in copies.collect() if report.doubled else ():
        note("doubled", f"{row['copies']} copies", row, row["broker"], row["client"], row["subscriptions"] or [])
    report.named = sorted(wrong.values(), key=lambda one: (one.event, one.what, one.broker, one.client or ""))[:most]
    if report.named:
        paths.trace(run.spark, run.rows, report.named)
