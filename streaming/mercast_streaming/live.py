"""The live metrics: a Structured Streaming job from the taps in Kafka to figures per window, cluster and broker.

    taps -> messages -> facts -> sums -> figures -> Parquet history, metrics topic

A fact is one row of a tap, made narrow: when, what kind, and a few numbers whose meaning depends on the kind (`FACTS`).
Facts are added up in one aggregation, the only state there is. All sums are of whole numbers, and latencies are counted
in cells of a logarithmic histogram: the order in which rows come changes nothing, so a replay finds the same figures.
Figures are worked out of the sums of windows that have closed: per broker, and per cluster.

Rows stay in the window of the time at which their event was published, so that what was made can be compared with what
arrived; deliveries are in the window in which they were made, so that slow ones count and are not merely late.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from mercast.protocol.columns import VERSION
from mercast.protocol.rows import FIRST, FURTHER
from mercast_streaming.schema import CORRUPT, message_schema


@dataclass(frozen=True)
class Setting:
    kafka: str
    """Addresses of Kafka, as its clients want them."""
    checkpoint: str
    """A folder on any file system that Hadoop knows: where to go on after a stop."""
    history: str | None = None
    """A folder, likewise: the figures as Parquet."""
    taps: str = "mercast.taps"
    metrics: str = "mercast.metrics"
    window: int = 5
    """Seconds."""
    watermark: int = 5
    """Seconds that rows may come later than others before they come too late."""
    ahead: int = 10
    """Seconds that a row's time may be ahead of Kafka's clock."""
    beginning: str = "latest"
    """Where to begin without a checkpoint: latest or earliest."""
    every: float = 0.5
    """Seconds from batch to batch, if they do not take longer."""
    once: bool = False
    """Go through what there is, and end."""
    most: int | None = None
    """Messages in a batch. Best without a limit: a batch that ends sooner in one partition than in another may move the
    watermark past what still waits there."""
    kafka_options: Mapping[str, str] = field(default_factory=dict)
    """Of Kafka's clients, such as security.protocol."""


# -- what is read, and what it means -----------------------------------------------------------------------------------


class Fact(NamedTuple):
    """How rows of one kind become facts."""

    rows: str
    when: str
    """The column that places it in a window."""
    other: str | None = None
    """The other time there is."""
    copy: str | None = None
    why: str | None = None
    numbers: tuple[str, ...] = ()


FACTS = {
    "published": Fact("published", "time", "at", numbers=("destinations", "bytes")),
    "received": Fact(
        "received", "time", "at", "copy", numbers=("hops", "list_length", "interested", "taken", "made")
    ),
    "delivered": Fact("delivered", "at", "time", "copy"),
    "dropped": Fact("dropped", "time", "at", why="why"),
    # A tick has more numbers than the others: it becomes three facts, and one for each reason of its drops.
    "load": Fact(
        "tick", "at", numbers=("published", "delivered", "forwarded", "matches", "bytes_in", "bytes_out")
    ),
    "state": Fact(
        "tick", "at", numbers=("clients", "links", "subscriptions", "bytes_to_clients", "cpu_us", "tap_lost")
    ),
    "peaks": Fact("tick", "at", numbers=("queued_bytes", "loop_lag_us", "clock_offset_us")),
}  # fmt: skip
LATE, AHEAD, MALFORMED, NEWER, DROPS = "late", "ahead", "malformed", "newer", "drops"

_NUMBERS = [f"n{place}" for place in range(max(len(fact.numbers) for fact in FACTS.values()))]
_PEAKS = [f"peak{place}" for place in range(len(FACTS["peaks"].numbers))]
_ARRAYS = {"when": "bigint", "other": "bigint", "copy": "bigint", "why": "string"} | dict.fromkeys(_NUMBERS, "bigint")
_BROKER = ("strategy", "cluster", "broker")

CELLS = 50
"""Of the latency histogram per factor e. A latency is known to half a cell: 1%."""

_PERCENTILES = "latency_percentiles_us"
PERCENTILES = {"latency_p50_us": 0.5, "latency_p95_us": 0.95, "latency_p99_us": 0.99}


_SAMPLE = 200
"""Characters of a message that could not be read."""

_SECOND = 1_000_000

_READ: dict[str, set[str]] = {"tick": {"dropped"}}
for _fact in FACTS.values():
    _times = (_fact.when, _fact.other, _fact.copy, _fact.why)
    _READ.setdefault(_fact.rows, set()).update(_name for _name in (*_times, *_fact.numbers) if _name)
SCHEMA = message_schema(_READ)


# -- taps to facts -----------------------------------------------------------------------------------------------------


def messages(taps: DataFrame) -> DataFrame:
    """Tap messages, read: of those with a `problem` nothing is kept but a sample."""
    text = F.col("value").cast("string")
    read = F.from_json(text, SCHEMA, {"columnNameOfCorruptRecord": CORRUPT}).alias("message")
    problem = F.when(F.col(f"message.{CORRUPT}").isNotNull(), MALFORMED)
    for name in ("version", *_BROKER):
        problem = problem.when(F.col(f"message.{name}").isNull(), MALFORMED)
    problem = problem.when(F.col("message.version") > VERSION, NEWER)
    message = taps.select(F.unix_micros("timestamp").alias("kafka_time"), text.alias("text"), read)
    message = message.withColumn("problem", problem)
    sample = F.when(F.col("problem").isNotNull(), F.substring("text", 1, _SAMPLE)).alias("sample")
    kept = (F.when(F.col("problem").isNull(), F.col(f"message.{name}")).alias(name) for name in (*_BROKER, *_READ))
    return message.select("kafka_time", "problem", sample, *kept)


def facts(message: DataFrame, watermark: int, ahead: int) -> DataFrame:
    """One for each row of the messages, and one for each message with a problem."""
    kinds = [_packed(name, _arrays(fact)) for name, fact in FACTS.items()]
    kinds.append(_packed(DROPS, _drops()))
    now = F.array("kafka_time")
    kinds += [_packed(name, {"when": F.when(F.col("problem") == name, now)}) for name in (MALFORMED, NEWER)]
    head = ("kafka_time", *_BROKER)
    by_kind = message.select(*head, F.explode(F.array(*kinds)).alias("of"))
    zipped = F.arrays_zip(*(F.col(f"of.{name}") for name in _ARRAYS))
    return _placed(by_kind.select(*head, "of.kind", F.inline(zipped).alias(*_ARRAYS)), watermark, ahead)


def _arrays(fact: Fact) -> dict[str, Column]:
    named = {"when": fact.when, "other": fact.other, "copy": fact.copy, "why": fact.why}
    named |= dict(zip(_NUMBERS, fact.numbers, strict=False))
    return {name: F.col(f"{fact.rows}.{column}") for name, column in named.items() if column}


def _drops() -> dict[str, Column]:
    """Of a tick's object from reason to count: a fact for each reason."""
    ticks = F.arrays_zip(F.col("tick.at"), F.col("tick.dropped"))
    return {
        "when": F.flatten(F.transform(ticks, lambda tick: F.array_repeat(tick["at"], F.size(tick["dropped"])))),
        "why": F.flatten(F.transform("tick.dropped", F.map_keys)),
        _NUMBERS[0]: F.flatten(F.transform("tick.dropped", F.map_values)),
    }


def _packed(kind: str, arrays: dict[str, Column]) -> Column:
    """All kinds alike, so that one generator makes the rows of all; what is missing becomes null in `arrays_zip`."""
    packed = []
    for name, type_ in _ARRAYS.items():
        empty = F.array().cast(f"array<{type_}>")
        given = F.coalesce(arrays[name].cast(f"array<{type_}>"), empty) if name in arrays else empty
        packed.append(given.alias(name))
    return F.struct(F.lit(kind).alias("kind"), *packed)


def _placed(row: DataFrame, watermark: int, ahead: int) -> DataFrame:
    """Each in its window; or, counted only, in that of the time at which it was seen to have none."""
    kind, when, other, now = F.col("kind"), F.col("when"), F.col("other"), F.col("kafka_time")
    delivered = kind == "delivered"
    malformed = when.isNull() | (when < 0)
    too_early = when > now + ahead * _SECOND
    too_late = ~delivered & (other - when > watermark * _SECOND)
    cases = [(malformed, MALFORMED, now), (too_early, AHEAD, now), (too_late, LATE, F.least(other, now))]
    placed_kind, placed_when = kind, when
    for case, name, at in reversed(cases):
        placed_kind, placed_when = F.when(case, name).otherwise(placed_kind), F.when(case, at).otherwise(placed_when)
    latency = F.when(delivered, when - other)
    cell = F.signum(latency) * F.floor(F.log1p(F.abs(latency)) * CELLS)
    return row.select(
        F.timestamp_micros(placed_when).alias("when"),
        *_BROKER,
        placed_kind.alias("kind"),
        "copy",
        "why",
        cell.cast("int").alias("cell"),
        *(F.coalesce(F.col(name), latency).alias(name) if name == _NUMBERS[0] else F.col(name) for name in _NUMBERS),
    )


# -- facts to figures --------------------------------------------------------------------------------------------------


def sums(fact: DataFrame, window: int, watermark: int) -> DataFrame:
    """The one aggregation that has state: as many rows per broker and window as its latencies fill cells."""
    keys = (F.window("when", f"{window} seconds"), *_BROKER, "kind", "copy", "why", "cell")
    added = (F.sum(name).alias(name) for name in _NUMBERS)
    peaks = (F.max(number).alias(peak) for number, peak in zip(_NUMBERS, _PEAKS, strict=False))
    counted = fact.withWatermark("when", f"{watermark} seconds").groupBy(*keys)
    return counted.agg(F.count(F.lit(1)).alias("count"), *added, *peaks)


def figures(summed: DataFrame, found: Mapping[str, Column] | None = None) -> DataFrame:
    """A row for each window and broker, and one for each window and cluster, with `broker` null.

    `found` is what `columns` gives: to name so many columns takes most of a second, once a job is enough.
    """
    cluster = ("window", "strategy", "cluster")
    grouped = summed.groupingSets([[*cluster, "broker"], cluster], *cluster, "broker")
    found = found or columns()
    known = grouped.agg(F.grouping("broker").alias("whole"), *(column.alias(name) for name, column in found.items()))
    known = known.where((F.col("whole") == 1) | F.col("broker").isNotNull())
    times = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
    percentiles = {name: F.col(_PERCENTILES)[place].alias(name) for place, name in enumerate(PERCENTILES)}
    others = (name for name in found if name != _PERCENTILES)
    return known.select(*times, *_BROKER, *percentiles.values(), *others)


def columns() -> dict[str, Column]:
    """Every figure by its name. Shares and means of nothing are null."""
    receipts, load = _count("received", FIRST), FACTS["load"].numbers
    made = _sum("published", "destinations") + _sum("received", "made", FIRST)
    reached = _sum("received", "taken", FIRST)
    weights = F.when(F.col("kind") == "delivered", F.col("count")).otherwise(0)
    return {
        "published": _count("published"),
        "payload_bytes": _sum("published", "bytes"),
        "receipts": receipts,
        "doubled_receipts": _count("received", FURTHER),
        "deliveries": _count("delivered", FIRST),
        "doubled_deliveries": _count("delivered", FURTHER),
        _PERCENTILES: F.percentile(_latency(), list(PERCENTILES.values()), weights),
        "latency_max_us": F.max(F.when(F.col("kind") == "delivered", F.col(_PEAKS[0]))),
        "negative_latencies": _total(F.when((F.col("kind") == "delivered") & (F.col("cell") < 0), F.col("count"))),
        "accuracy": F.try_divide(_sum("received", "interested", FIRST), receipts),
        "hops": F.try_divide(_sum("received", "hops"), _count("received")),
        "list_length": F.try_divide(_sum("received", "list_length"), _count("received")),
        "entries_made": made,
        "entries_reached": reached,
        "completeness": F.try_divide(reached, made),
        "dropped": _count("dropped"),
        **{f"all_{name}": _sum("load", name) for name in load},
        "all_bytes_to_clients": _sum("state", "bytes_to_clients"),
        "all_drops": _drops_by_reason(),
        "matches_per_event": F.try_divide(_sum("load", "matches"), _sum("load", "published")),
        "bytes_per_delivery": F.try_divide(_sum("load", "bytes_out"), _sum("load", "delivered")),
        **{name: _mean(name) for name in ("clients", "links", "subscriptions")},
        **{name: _peak(name) for name in FACTS["peaks"].numbers},
        "cpu_us": _sum("state", "cpu_us"),
        "ticks": _count("load"),
        "tap_lost": _sum("state", "tap_lost"),
        **{name: _count(name) for name in (LATE, AHEAD, MALFORMED, NEWER)},
    }


def _total(number: Column) -> Column:
    return F.coalesce(F.sum(number), F.lit(0))


def _of(kind: str, copy: int | None) -> Column:
    return F.col("kind") == kind if copy is None else (F.col("kind") == kind) & (F.col("copy") == copy)


def _count(kind: str, copy: int | None = None) -> Column:
    return _total(F.when(_of(kind, copy), F.col("count")))


def _place(kind: str, name: str) -> int:
    return FACTS[kind].numbers.index(name)


def _sum(kind: str, name: str, copy: int | None = None) -> Column:
    return _total(F.when(_of(kind, copy), F.col(_NUMBERS[_place(kind, name)])))


def _mean(name: str) -> Column:
    """Over a broker's ticks; of a cluster, the sum over its brokers."""
    number = F.col(_NUMBERS[_place("state", name)])
    mean = F.sum(F.when(F.col("kind") == "state", number / F.col("count")))
    return F.round(mean, 3)  # so that the order of adding does not show


def _peak(name: str) -> Column:
    return F.max(F.when(F.col("kind") == "peaks", F.col(_PEAKS[_place("peaks", name)])))


def _latency() -> Column:
    """The middle of a cell of the histogram."""
    return F.signum("cell") * F.round(F.expm1((F.abs("cell") + 0.5) / CELLS), 1)


def _drops_by_reason() -> Column:
    """Reasons are known only as they come: a map."""
    drops = F.collect_list(F.when(F.col("kind") == DROPS, F.struct("why", F.col(_NUMBERS[0]).alias("count"))))
    reasons = F.array_sort(F.array_distinct(drops["why"]))

    def counted(reason: Column) -> Column:
        of_it = F.filter(drops, lambda drop: drop["why"] == reason)
        return F.aggregate(of_it, F.lit(0).cast("bigint"), lambda total, drop: total + drop["count"])

    return F.map_from_arrays(reasons, F.transform(reasons, counted))


# -- the job -----------------------------------------------------------------------------------------------------------


def start(spark: SparkSession, setting: Setting, see: Callable[[list[Row]], None] = lambda _: None) -> StreamingQuery:
    """Runs until it is stopped; `see` is given the figures of windows that have closed, once they are written."""
    message = messages(read_taps(spark, setting))
    problems = F.count("problem").alias("count"), F.min("sample").alias("sample")
    fact = facts(message.observe(PROBLEMS, *problems), setting.watermark, setting.ahead)
    summed = sums(fact, setting.window, setting.watermark)

    found = columns()

    def write(batch: DataFrame, number: int) -> None:
        with _kept(batch) as ready:
            if not ready.count():  # of all partitions, whose state is written by that
                return
            with _kept(figures(ready, found)) as closed:
                rows = closed.collect()
                _write_history(closed, setting, number)
                _write_topic(closed, setting)
        see(rows)

    query = summed.writeStream.outputMode("append").foreachBatch(write).queryName("mercast metrics")
    query = query.option("checkpointLocation", setting.checkpoint)
    if setting.once:
        return query.trigger(availableNow=True).start()
    return query.trigger(processingTime=f"{round(setting.every * 1000)} milliseconds").start()


def read_taps(spark: SparkSession, setting: Setting) -> DataFrame:
    taps = spark.readStream.format("kafka").options(**_kafka(setting)).option("subscribe", setting.taps)
    taps = taps.option("startingOffsets", setting.beginning).option("failOnDataLoss", "false")
    if setting.most is not None:
        taps = taps.option("maxOffsetsPerTrigger", str(setting.most))
    return taps.load()


@contextmanager
def _kept(table: DataFrame) -> Iterator[DataFrame]:
    """Worked out once, for all who use it."""
    kept = table.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


PROBLEMS = "problems"
"""The name under which a batch's progress tells how many messages could not be read, with a sample of them."""


def _kafka(setting: Setting) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in setting.kafka_options.items()}
    return {"kafka.bootstrap.servers": setting.kafka} | options


def _write_history(closed: DataFrame, setting: Setting, number: int) -> None:
    """Exactly once: a batch that is run again writes the same folder again. A new checkpoint counts batches anew."""
    if setting.history is not None:
        query = closed.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        folder = f"{setting.history.rstrip('/')}/query={query}/batch={number:09}"
        closed.coalesce(1).write.mode("overwrite").parquet(folder)


def _write_topic(closed: DataFrame, setting: Setting) -> None:
    """A batch that is run again writes the same keys and values again."""
    key = F.to_json(F.struct("window_start", *_BROKER))
    value = F.to_json(F.struct(*closed.columns), {"ignoreNullFields": "false"})
    keyed = closed.select(key.alias("key"), value.alias("value"))
    keyed.write.format("kafka").options(**_kafka(setting)).option("topic", setting.metrics).save()
