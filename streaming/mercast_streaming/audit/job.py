"""The audit from end to end: a source of tap messages in, a report out."""

from collections.abc import Collection, Sequence
from contextlib import ExitStack
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
    messages: DataFrame
    """Parsed, each once."""
    setting: Setting
    grace: int = 0
    skew: int = 0
    brokers: dict[control.BrokerLife, control.Known] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)
    asked: Questions = field(default_factory=lambda: questions(()))
    kinds: dict[str, str] = field(default_factory=dict)
    declared: dict[str, dict[str, int]] = field(default_factory=dict)
    faults: list[int] = field(default_factory=list)
    links: list[Any] = field(default_factory=list)

    def rows(self, kind: str, *columns: str) -> DataFrame:
        return reading.rows(self.messages, kind, *columns)

    def event_rows(self, kind: str, *columns: str) -> DataFrame:
        """Those of events in the time that is asked for."""
        found = self.rows(kind, *EVENT, "time", *columns)
        if self.setting.since is not None:
            found = found.where(F.col("time") >= self.setting.since)
        if self.setting.until is not None:
            found = found.where(F.col("time") < self.setting.until)
        return found

    def events(self) -> DataFrame:
        """With the questions that they answer."""
        published = self.event_rows("published", "type", "attributes", "publisher")
        return answered(published, self.asked, self.kinds, self.declared)

    def delivered(self) -> DataFrame:
        return self.event_rows("delivered", "client", "subscriptions", "at")


def audit(spark: SparkSession, source: DataFrame, setting: Setting) -> Report:
    """Of all messages of `source` (reading.py), which is read once."""
    report = Report(since=setting.since, until=setting.until)
    with ExitStack() as ends:
        parsed = _kept(reading.parsed(source), ends)
        run = _Audit(spark, parsed.where("readable"), setting, grace=round(setting.grace * _SECOND))
        extents = _know_messages(run, report, parsed)
        _know_control(run, report, extents)
        _judge(run, report, ends)
    return report


def _kept(some: DataFrame, ends: ExitStack) -> DataFrame:
    """In memory, as far as it goes, until the audit is done."""
    ends.callback(some.unpersist)
    return some.persist(StorageLevel.MEMORY_AND_DISK)


# -- what is known -----------------------------------------------------------------------------------------------------


def _know_messages(run: _Audit, report: Report, parsed: DataFrame) -> list[Any]:
    seen = Observation("messages")
    # Those that are none, or of a newer version: their rows show as gaps besides.
    told = parsed.observe(seen, _count(~F.col("readable")).alias("unreadable")).where("readable")
    extents = reading.extents(told).collect()
    report.unreadable_messages = seen.get["unreadable"]
    report.messages, report.repeated_messages, report.rows = (
        sum(row[name] for row in extents) for name in ("messages", "again", "rows")
    )
    report.lost_rows = sum(gap["lost_rows"] for row in extents for gap in row["gaps"])
    run.skew = report.skew_us = max((row["skew"] for row in extents), default=0)
    report.brokers = len(extents)
    if report.repeated_messages:
        run.messages = run.messages.join(F.broadcast(reading.repeated(run.messages)), "message", "left_anti")
    return extents


def _know_control(run: _Audit, report: Report, extents: list[Any]) -> None:
    told = _told(run)
    whole = [row for row in told if row["kind"] == "snapshot" and row["ends"]]
    run.brokers = control.known(extents, whole)
    run.declared = control.descendants(row for row in told if row["kind"] == "declared")
    run.links = [row for row in told if row["kind"] == "linked"]
    if run.setting.around_faults is not None:
        run.faults = [row["at"] for row in told if row["kind"] == "unlinked"]
    run.lives = control.assemble(control.lives(control.control_rows(run.messages)).collect(), run.brokers, run.grace)
    asked = filter(None, map(judging.question_of, run.lives))
    run.asked = questions(asked, run.setting.held)
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


def _told(run: _Audit) -> list[Any]:
    """Control rows about snapshots, types and links."""
    kinds = {"snapshot": ("ends", "at"), "declared": ("type", "parent", "at")}
    kinds |= dict.fromkeys(("linked", "unlinked"), ("neighbour", "at"))
    found = reading.rows_of(run.messages, kinds)
    # Every snapshot tells of types and links again: once is enough.
    each = F.when(F.col("kind").isin("snapshot", "unlinked"), F.col("at"))
    alike = found.groupBy(*BROKER, "kind", "ends", "type", "parent", "neighbour", each)
    return alike.agg(F.min("at").alias("at")).collect()


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


def _judge(run: _Audit, report: Report, ends: ExitStack) -> None:
    known = judging.broker_table(run.spark, run.brokers)
    subscriptions = judging.subscription_table(run.spark, run.lives, run.asked)
    advertisements = judging.advertisement_table(run.spark, run.lives, run.asked)
    seen, compared, came = Observation("events"), Observation("pairs"), Observation("deliveries")
    events = _kept(run.events(), ends)
    told = events.observe(seen, F.count(F.lit(1)).alias("events"), _count(~F.col("told")).alias("untold"))
    due = judging.expected(
        _near_fault(run, judging.advertised(told, advertisements, run.skew)), subscriptions, known,
        {(type_, subtype): since for type_, some in run.declared.items() for subtype, since in some.items()},
        skew=run.skew, grace=run.grace, across=run.setting.across,
    )  # fmt: skip
    got = judging.got(run.delivered(), subscriptions, known)
    pairs = judging.compared(due, got.observe(came, _count(F.col("state") != RIGHT).alias("odd")))
    counts = [_count(F.col("state") == state).alias(state) for state in (RIGHT, MISSING, UNEXPECTED, *GREY, *UNKNOWN)]
    odd = _kept(pairs.observe(compared, *counts).where(F.col("state").isin(MISSING, UNEXPECTED)), ends)
    odd.count()
    report.count(seen.get | compared.get)
    undue = got.where(F.col("state") != RIGHT)
    if compared.get[UNEXPECTED]:
        unexpected = odd.where(F.col("state") == UNEXPECTED).select(*EVENT, "life")
        again = got.where(F.col("state") == RIGHT).join(unexpected, [*EVENT, "life"])
        undue = undue.unionByName(judging.explained(again, events, subscriptions, known))
    undue = _kept(undue, ends)
    if came.get["odd"] or compared.get[UNEXPECTED]:
        states = {row["state"]: row["count"] for row in undue.groupBy("state").count().collect()}
        report.right += states.pop(RIGHT, 0)
        report.count(states)
    doubles = _kept(judging.doubles(run.delivered()), ends)
    report.doubled = doubles.count()
    _name(run, report, odd.where(F.col("state") == MISSING), undue, doubles)


def _count(condition: Any) -> Any:
    return F.coalesce(F.sum(condition.cast("bigint")), F.lit(0))


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
        paths.trace(run.spark, run.messages, run.links, report.named)
