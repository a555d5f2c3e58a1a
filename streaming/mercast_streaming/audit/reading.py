"""Tap messages as rows, and what their headers tell of rows that are not there.

A source has a line for each message: `topic`, `partition`, `value`. Rows keep who wrote them and in which partition.
"""

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import CONTROL_ROWS, TAP_ROWS, VERSION
from mercast_streaming.schema import CORRUPT, message_schema

EVENT = ("event_broker", "event_incarnation", "event_sequence")
BROKER = ("broker", "incarnation")
STREAM = (*BROKER, "control", "partition")
"""What numbers its rows."""

_FILE = r"([^/]+?)(-\d+\.jsonl(\.\d+)?)?$"
"""As brokers name the files of their taps: the topic, the broker, and how old."""


def from_files(spark: SparkSession, folder: str) -> DataFrame:
    """The files that brokers write, or Parquet with these columns."""
    if folder.rstrip("/").endswith(".parquet"):
        return spark.read.parquet(folder).select("topic", "partition", F.col("value").cast("string").alias("value"))
    lines = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.jsonl*").text(folder)
    return lines.select(
        F.regexp_extract(F.col("_metadata.file_name"), _FILE, 1).alias("topic"), F.lit(0).alias("partition"), "value"
    )


def from_kafka(spark: SparkSession, servers: str, prefix: str, options: dict[str, str]) -> DataFrame:
    """All that the two topics hold."""
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    source = source.options(**{f"kafka.{name}": value for name, value in options.items()})
    source = source.option("subscribe", f"{prefix}.taps,{prefix}.control").option("failOnDataLoss", "false")
    return source.load().select("topic", "partition", F.col("value").cast("string").alias("value"))


def messages(source: DataFrame, kinds: dict[str, tuple[str, ...]]) -> DataFrame:
    """Read, with these columns of these kinds of rows; what cannot be read is left out."""
    read = F.from_json("value", message_schema(kinds), {"columnNameOfCorruptRecord": CORRUPT})
    found = source.select(F.col("topic").contains("control").alias("control"), "partition", read.alias("message"))
    found = found.where(_readable())
    return found.select("control", "partition", "message.*").drop(CORRUPT)


def _readable() -> Column:
    known = F.col("message.version") <= VERSION
    for name in (*BROKER, "first", "count"):
        known &= F.col(f"message.{name}").isNotNull()
    return F.coalesce(known & F.col(f"message.{CORRUPT}").isNull(), F.lit(False))


def rows(source: DataFrame, kind: str, columns: tuple[str, ...], doubled: bool = False) -> DataFrame:
    """Of one kind. `doubled` says that some messages are there twice: then each is taken once."""
    of_kind = source.where(F.col("value").contains(f'"{kind}":'))
    read = messages(of_kind, {kind: (*columns,)}).where(F.col(kind).isNotNull())
    read = read.where(F.col("control") == (kind in CONTROL_ROWS))
    if doubled:
        read = read.dropDuplicates([*STREAM, "first"])
    zipped = F.arrays_zip(*(F.col(f"{kind}.{name}").alias(name) for name in columns))
    return read.select(*BROKER, "cluster", "partition", F.inline(zipped).alias(*columns))


# -- headers -----------------------------------------------------------------------------------------------------------


def headers(source: DataFrame) -> DataFrame:
    """Of each message: who numbers its rows, which they are, when they happened, and how many the tap lost by then."""
    kinds: dict[str, tuple[str, ...]] = dict.fromkeys((*TAP_ROWS, *CONTROL_ROWS), ("at",))
    kinds["tick"] = ("at", "tap_lost", "interval_us", "clock_offset_us")
    read = messages(source, kinds)
    nothing = F.expr("CAST(array() AS ARRAY<BIGINT>)")
    at = F.concat(*(F.coalesce(F.col(f"{kind}.at"), nothing) for kind in kinds))
    ticks = F.arrays_zip(*(F.col(f"tick.{name}").alias(name) for name in kinds["tick"]))
    lost = F.exists(ticks, lambda tick: tick["tap_lost"] > 0)
    found = read.select(*STREAM, "cluster", "first", "count", at.alias("at"), "tick", lost.alias("lost"))
    return found.select(
        *STREAM, "cluster", "first", "count",
        F.array_min("at").alias("from"), F.array_max("at").alias("to"),
        F.coalesce("lost", F.lit(False)).alias("lost"),
        F.array_max("tick.interval_us").alias("interval"), F.array_max("tick.clock_offset_us").alias("skew"),
    )  # fmt: skip


_NEAR = 300_000_000
"""Microseconds in which clocks do not drift apart by much."""


def skew(header: DataFrame) -> int:
    """By how much the clocks of brokers may differ, in microseconds.

    Each measurement is a bound, and a wide one if the machine was busy: so of those near in time the best one counts.
    """
    near = Window.partitionBy(*BROKER).orderBy("to").rangeBetween(-_NEAR, _NEAR)
    best = header.where(F.col("skew").isNotNull()).select(F.min("skew").over(near).alias("skew"))
    found = best.agg(F.max("skew")).first()
    return 0 if found is None else found[0] or 0


def gaps(header: DataFrame) -> DataFrame:
    """Rows that a stream has numbered and that are not there: how many, and between which times they were.

    `from` is null where nothing came before, `to` where nothing with a time came after.
    """
    before = Window.partitionBy(*STREAM).orderBy("first", "count")
    earlier = before.rowsBetween(Window.unboundedPreceding, -1)
    later = before.rowsBetween(0, Window.unboundedFollowing)
    expected = F.coalesce(F.max(F.col("first") + F.col("count")).over(earlier), F.lit(0))
    placed = header.withColumn("lost_rows", F.col("first") - expected)
    placed = placed.withColumn("last", F.max("to").over(earlier)).withColumn("next", F.min("from").over(later))
    found = placed.where("lost_rows > 0")
    return found.select(*STREAM, "lost_rows", F.col("last").alias("from"), F.col("next").alias("to"))


def distinct(header: DataFrame) -> int:
    """Messages, each once: Kafka's producers may repeat themselves."""
    return header.select(*STREAM, "first", "count").distinct().count()
