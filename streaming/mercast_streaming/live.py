"""The live metrics: a Structured Streaming job from the taps in Kafka to figures per window, cluster and broker.

    taps -> messages -> facts -> sums -> figures -> Parquet history, metrics topic

A fact is one row of a tap, made narrow: when, what kind, and a few numbers whose meaning depends on the kind (`FACTS`).
Facts are added up in one aggregation, the only state there is. All sums are of whole numbers, and latencies are counted
in cells of a logarithmic histogram: the order in which rows come changes nothing, so a replay finds the same figures.
Figures are worked out of the sums of windows that have closed: per broker, and per cluster.

Rows stay in the window of the time at which their event was published, so that what was made can be compared with what
arrived; deliveries are in the window in which they were made, so that slow ones count and are not merely late.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from mercast.protocol.columns import VERSION
from mercast_streaming.checkpoint import Checkpoint
from mercast_streaming.figures import (
    AHEAD,
    CELLS,
    DROPS,
    KINDS,
    LATE,
    MALFORMED,
    NEWER,
    NUMBERS,
    SCHEMA,
    TICK,
    TICKED,
    Figures,
    Sum,
    as_json,
    figures,
    key_json,
)  # fmt: skip
from mercast_streaming.schema import CORRUPT, laid_out, message_schema, too_much


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
    """Messages in a batch, for a backlog that memory cannot hold. Best without a limit: a batch that ends sooner in one
    partition than in another may move the watermark past what still waits there."""
    kafka_options: Mapping[str, str] = field(default_factory=dict)
    """Of Kafka's clients, such as security.protocol."""


# -- what is read, and what it means -----------------------------------------------------------------------------------


class Fact(NamedTuple):
    """How rows of one kind become facts."""

    when: str
    """The column that places it in a window."""
    other: str
    """The other time there is."""
    copy: str | None = None


FACTS = {
    "published": Fact("time", "at"),
    "received": Fact("time", "at", "copy"),
    "delivered": Fact("at", "time", "copy"),
    "dropped": Fact("time", "at"),
}
"""By kind, those of rows about events; `NUMBERS` has the numbers of each."""

_NUMBERS = [f"n{place}" for place in range(max(map(len, NUMBERS.values())))]
_ARRAYS = {"when": "bigint", "other": "bigint", "copy": "bigint", "why": "string"} | dict.fromkeys(_NUMBERS, "bigint")
_BROKER = {"strategy": "string", "cluster": "string", "broker": "bigint"}


def _columns(kind: str) -> dict[str, str]:
    """Of the rows that facts of this kind are made of, by what they become."""
    fact = FACTS[kind]
    named = {"when": fact.when, "other": fact.other, "copy": fact.copy}
    if kind != "delivered":  # whose number is the latency, worked out later
        named |= dict(zip(_NUMBERS, NUMBERS[kind], strict=False))
    return {name: column for name, column in named.items() if column}


_SAMPLE = 200
"""Characters of a message that could not be read."""

_NAME = 256
"""Characters of a name at most."""

_SECOND = 1_000_000

_WATERMARK = "spark.watermarkDelayMs"
"""By this word in a column's metadata Spark knows that groups of it close as the watermark passes."""

_READ = {kind: {*_columns(kind).values()} for kind in FACTS} | {TICK: {"at", "dropped", *TICKED}}
MESSAGE = message_schema(_READ)


# -- taps to facts -----------------------------------------------------------------------------------------------------


def messages(taps: DataFrame) -> DataFrame:
    """Tap messages, read: of those with a `problem` nothing is kept but a sample."""
    text = F.col("value").cast("string")
    read = F.from_json(text, MESSAGE, {"columnNameOfCorruptRecord": CORRUPT}).alias("message")
    problem = F.when(F.col(f"message.{CORRUPT}").isNotNull(), MALFORMED)
    for name in ("version", *_BROKER):
        problem = problem.when(F.col(f"message.{name}").isNull(), MALFORMED)
    for name in ("strategy", "cluster"):  # they stand in every key
        problem = problem.when(F.length(f"message.{name}") > _NAME, MALFORMED)
    problem = problem.when(F.col("message.version") > VERSION, NEWER).when(too_much("message", _READ), MALFORMED)
    message = taps.select(F.unix_micros("timestamp").alias("kafka_time"), text.alias("text"), read)
    message = message.withColumn("problem", problem)
    sample = F.when(F.col("problem").isNotNull(), F.substring("text", 1, _SAMPLE)).alias("sample")
    kept = {"who": F.to_json(F.array(*(f"message.{name}" for name in _BROKER)))}  # one text is quick to group by
    kept |= {kind: laid_out("message", kind, names) for kind, names in _READ.items()}
    good = (F.when(F.col("problem").isNull(), column).alias(name) for name, column in kept.items())
    return message.select("kafka_time", "problem", sample, *good)


def timed(message: DataFrame, watermark: int) -> DataFrame:
    """The watermark follows the latest time in each message, never ahead of Kafka's clock: so a fast clock makes nobody
    late, and what cannot be read moves nothing. By messages, since Spark would copy each row to look at its time."""
    latest = F.greatest(*(F.array_max(f"{kind}.at") for kind in _READ))
    known = F.when(latest.isNotNull(), F.least(latest, "kafka_time")).otherwise(0)
    return message.withColumn("latest", F.timestamp_micros(known)).withWatermark("latest", f"{watermark} seconds")


def facts(message: DataFrame, watermark: int, ahead: int) -> DataFrame:
    """One for each row of the messages, and one for each message with a problem."""
    kinds = [_packed(kind, _arrays(kind)) for kind in FACTS]
    kinds += [_packed(TICK, _ticks()), _packed(DROPS, _drops(ahead))]
    now = F.array("kafka_time")
    kinds += [_packed(name, {"when": F.when(F.col("problem") == name, now)}) for name in (MALFORMED, NEWER)]
    head = ("kafka_time", "who")
    by_kind = message.select(*head, F.explode(F.array(*kinds)).alias("of")).select(*head, "of.*")
    longer = F.when(F.size("when") < F.size("other"), F.col("other")).otherwise(F.col("when"))
    by_row = by_kind.select("*", F.posexplode(longer).alias("place", "_"))
    # Each number by its place: to zip arrays makes an object for each row.
    row = (F.get(name, F.col("place")).alias(name) for name in _ARRAYS)
    return _placed(by_row.select(*head, "kind", *row), watermark, ahead)


def _arrays(kind: str) -> dict[str, Column]:
    return {name: F.col(f"{kind}.{column}") for name, column in _columns(kind).items()}


def _ticks() -> dict[str, Column]:
    """Of each tick a fact for each of its numbers, by name: ticks are few, and rows with few numbers are added up
    sooner. A column that has not as many values as there are ticks is not read."""
    at, many = F.col("tick.at"), F.size("tick.at")
    nothing = F.array_repeat(F.lit(None).cast("bigint"), many)
    columns = F.array(*(F.col(f"tick.{name}") for name in TICKED))
    names = F.array(*map(F.lit, TICKED))
    return {
        "when": F.flatten(F.array_repeat(at, len(TICKED))),
        "why": F.flatten(F.transform(names, lambda name: F.array_repeat(name, many))),
        _NUMBERS[0]: F.flatten(F.transform(columns, lambda one: F.when(F.size(one) == many, one).otherwise(nothing))),
    }


def _drops(ahead: int) -> dict[str, Column]:
    """Of a tick's object from reason to count: a fact for each reason, unless the tick is to be set aside."""

    def counts(tick: Column) -> Column:
        return (tick["at"] >= 0) & ~_too_early(tick["at"], ahead) & tick["dropped"].isNotNull()

    ticks = F.filter(F.arrays_zip(F.col("tick.at"), F.col("tick.dropped")), counts)
    return {
        "when": F.flatten(F.transform(ticks, lambda tick: F.array_repeat(tick["at"], F.size(tick["dropped"])))),
        "why": F.flatten(F.transform(ticks, lambda tick: F.map_keys(tick["dropped"]))),
        _NUMBERS[0]: F.flatten(F.transform(ticks, lambda tick: F.map_values(tick["dropped"]))),
    }


def _too_early(when: Column, ahead: int) -> Column:
    return when > F.col("kafka_time") + ahead * _SECOND


def _packed(kind: str, arrays: dict[str, Column]) -> Column:
    """All kinds alike, so that one generator makes the rows of all; what is missing is null."""
    packed = (arrays.get(name, F.lit(None)).cast(f"array<{type_}>").alias(name) for name, type_ in _ARRAYS.items())
    return F.struct(F.lit(_NUMBER_OF[kind]).alias("kind"), *packed)


_NUMBER_OF = {kind: number for number, kind in enumerate(KINDS)}
"""A number is quicker to group by than a name."""


def _placed(row: DataFrame, watermark: int, ahead: int) -> DataFrame:
    """Each in its window; or, counted only, in that of the time at which it was seen to have none."""
    kind, when, other, now = F.col("kind"), F.col("when"), F.col("other"), F.col("kafka_time")
    delivered = kind == _NUMBER_OF["delivered"]
    malformed = when.isNull() | (when < 0)
    too_early = _too_early(when, ahead)
    too_late = ~delivered & (other - when > watermark * _SECOND)
    cases = [(malformed, MALFORMED, now), (too_early, AHEAD, now), (too_late, LATE, F.least(other, now))]
    placed_kind, placed_when = kind, when
    for case, name, at in reversed(cases):
        placed_kind = F.when(case, _NUMBER_OF[name]).otherwise(placed_kind)
        placed_when = F.when(case, at).otherwise(placed_when)
    latency = F.when(delivered, when - other)
    cell = F.signum(latency) * F.floor(F.log1p(F.abs(latency)) * CELLS)
    return row.select(
        placed_when.alias("when"),
        "who",
        placed_kind.alias("kind"),
        "copy",
        "why",
        cell.cast("int").alias("cell"),
        *(F.coalesce(F.col(name), latency).alias(name) if name == _NUMBERS[0] else F.col(name) for name in _NUMBERS),
    )


# -- facts to sums -----------------------------------------------------------------------------------------------------


def sums(fact: DataFrame, window: int) -> DataFrame:
    """The one aggregation that has state: as many rows per broker and window as its latencies fill cells. See `Sum`.

    A window is known by its end, a plain number to Spark: its own windows are objects, slow as a part of a key.
    """
    length = window * _SECOND
    end = F.timestamp_micros(F.col("when") - F.col("when") % length + length)
    alike = ("who", "kind", "copy", "why", "cell")
    fact = fact.select(end.alias("end", metadata={_WATERMARK: 0}), *alike, *_NUMBERS)
    added = fact.groupBy("end", *alike).agg(
        F.count(F.lit(1)).alias("many"),
        *(F.sum(name).alias(name) for name in _NUMBERS),
        F.max(_NUMBERS[0]).alias("peak"),
    )
    began = (F.unix_micros("end") - length).alias("window")  # a time would come as one of this machine's zone
    who = (F.get("who", F.lit(place)).cast(type_).alias(name) for place, (name, type_) in enumerate(_BROKER.items()))
    kind = F.element_at(F.array(*map(F.lit, KINDS)), F.col("kind") + 1).alias("kind")
    numbers = F.array(*_NUMBERS).alias("numbers")
    read = added.withColumn("who", F.from_json("who", "array<string>"))
    return read.select(began, *who, kind, "copy", "why", "cell", "many", numbers, "peak")


# -- the job -----------------------------------------------------------------------------------------------------------

SPARK = {"spark.sql.shuffle.partitions": "1"}
"""Settings of Spark for this job alone. What is shuffled are sums, few enough for one partition: each has files of its
state to write in every batch, which takes longer than to add the sums up."""


def start(
    spark: SparkSession, setting: Setting, see: Callable[[list[Figures]], None] = lambda _: None
) -> StreamingQuery:
    """Runs until it is stopped; `see` is given the figures of windows that have closed, once they are written.

    A job that begins amid a window would tell a part of it for the whole: it begins with the next one, as seen when the
    first batch is there, for by then it is known where Kafka's topic is read from.
    """
    kept = Checkpoint(spark, setting.checkpoint, setting.window)
    problems = F.count("problem").alias("count"), F.min("sample").alias("sample")
    message = timed(messages(read_taps(spark, setting)).observe(PROBLEMS, *problems), setting.watermark)
    summed = sums(facts(message, setting.watermark, setting.ahead), setting.window)

    def write(batch: DataFrame, number: int) -> None:
        since = kept.since(0 if setting.beginning == "earliest" else time_ns() // 1_000)
        whole = (one for one in map(Sum._make, batch.collect()) if one.window >= since)
        closed = figures(whole, setting.window)
        if closed:
            _write_topic(batch.sparkSession, closed, setting)
            _write_history(batch.sparkSession, closed, setting, number)
            see(closed)

    query = summed.writeStream.outputMode("append").foreachBatch(write).queryName("mercast metrics")
    query = query.option("checkpointLocation", setting.checkpoint)
    if setting.once:
        return query.trigger(availableNow=True).start()
    return query.trigger(processingTime=f"{round(setting.every * 1000)} milliseconds").start()


_MOST_WAIT = 20
"""Milliseconds that Kafka keeps a fetch open at the end of a partition. Spark moves about in it after each one, and
then waits for the fetch that is still open: by Kafka's own default, for half a second."""


def read_taps(spark: SparkSession, setting: Setting) -> DataFrame:
    taps = spark.readStream.format("kafka").option("kafka.fetch.max.wait.ms", str(_MOST_WAIT))
    taps = taps.options(**kafka_options(setting)).option("subscribe", setting.taps)
    taps = taps.option("startingOffsets", setting.beginning).option("failOnDataLoss", "false")
    if setting.most is not None:
        taps = taps.option("maxOffsetsPerTrigger", str(setting.most))
    return taps.load()


PROBLEMS = "problems"
"""The name under which a batch's progress tells how many messages could not be read, with a sample of them."""


def kafka_options(setting: Setting) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in setting.kafka_options.items()}
    return {"kafka.bootstrap.servers": setting.kafka} | options


def _write_topic(spark: SparkSession, closed: list[Figures], setting: Setting) -> None:
    """A batch that is run again writes the same keys and values again."""
    keyed = [{"key": key_json(row), "value": as_json(row)} for row in closed]
    table = _table(spark, keyed, "key string, value string")
    table.write.format("kafka").options(**kafka_options(setting)).option("topic", setting.metrics).save()


def _write_history(spark: SparkSession, closed: list[Figures], setting: Setting, number: int) -> None:
    """Exactly once: a batch that is run again writes the same folder again. A new checkpoint counts batches anew."""
    if setting.history is not None:
        query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        folder = f"{setting.history.rstrip('/')}/query={query}/batch={number:09}"
        _table(spark, closed, SCHEMA).write.mode("overwrite").parquet(folder)


def _table(spark: SparkSession, rows: list[Figures], schema: str) -> DataFrame:
    """Brought as JSON in the plan itself: by `createDataFrame` they would go through a process of Python, which takes
    four times as long."""
    text = f"[{','.join(map(as_json, rows))}]"
    return spark.sql(f"SELECT inline(from_json(:rows, 'array<struct<{schema}>>'))", {"rows": text})
