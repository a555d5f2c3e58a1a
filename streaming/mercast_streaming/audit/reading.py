"""Tap messages as rows, and what their headers tell of rows that are not there.

A source has a line for each message: `topic`, `partition`, `value`. Rows keep who wrote them and in which partition.
"""

from collections.abc import Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import CONTROL_ROWS, VERSION
from mercast_streaming.schema import CORRUPT, laid_out, message_schema, too_much

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


_READ: dict[str, tuple[str, ...]] = {
    "published": (*EVENT, "time", "type", "attributes", "publisher", "destinations", "matches", "at"),
    "received": (*EVENT, "time", "neighbour", "hops", "copy", "interested", "taken", "at"),
    "delivered": (*EVENT, "time", "client", "subscriptions", "at"),
    "dropped": (*EVENT, "time", "why", "at"),
    "tick": ("interval_us", "tap_lost", "clock_offset_us", "at"),
    "declared": ("type", "parent", "at"),
    "advertised": ("client", "request", "type", "filter", "at"),
    "unadvertised": ("client", "request", "at"),
    "subscribed": ("client", "request", "type", "filter", "echo", "settled_at", "at"),
    "unsubscribed": ("client", "request", "at"),
    "settled": ("client", "request", "missing", "at"),
    "linked": ("neighbour", "at"),
    "unlinked": ("neighbour", "at"),
    "snapshot": ("ends", "at"),
}
"""What an audit looks at, by kind of rows."""


def parsed(source: DataFrame) -> DataFrame:
    """Each message with its header, what that says of its rows, and the rows by kind, a struct of arrays.

    To be kept: whoever asks for a part of it would have Spark read the JSON again, once for each condition.
    """
    read = F.from_json("value", message_schema(_READ), {"columnNameOfCorruptRecord": CORRUPT})
    found = source.select(F.col("topic").endswith(".control").alias("control"), "partition", read.alias("message"))
    found = found.withColumn("excess", too_much("message", _READ))
    header = [f"message.{name}" for name in (*BROKER, "cluster", "version", "first", "count", CORRUPT)]
    kinds = (F.when(~F.col("excess"), laid_out("message", kind, names)).alias(kind) for kind, names in _READ.items())
    found = found.select("control", "partition", F.struct(*header, "excess", *kinds).alias("message"))
    nothing = F.expr("CAST(array() AS ARRAY<BIGINT>)")
    at = F.concat(*(F.coalesce(F.col(f"message.{kind}.at"), nothing) for kind in _READ))
    lost = F.exists("message.tick.tap_lost", lambda lost: lost > 0)
    found = found.withColumn("at", at).select(
        F.monotonically_increasing_id().alias("message"), _readable().alias("readable"), "control", "partition",
        *(F.col(f"message.{name}").alias(name) for name in (*BROKER, "cluster", "first", "count")),
        F.array_min("at").alias("from"), F.array_max("at").alias("to"), F.coalesce(lost, F.lit(False)).alias("lost"),
        F.array_max("message.tick.interval_us").alias("interval"),
        F.array_max("message.tick.clock_offset_us").alias("skew"),
        *(F.col(f"message.{kind}").alias(kind) for kind in _READ if kind != "tick"),
    )  # fmt: skip
    return found


def _readable() -> Column:
    known = F.col("message.version") <= VERSION
    for name in (*BROKER, "first", "count"):
        known &= F.col(f"message.{name}").isNotNull()
    return F.coalesce(known & F.col(f"message.{CORRUPT}").isNull() & ~F.col("message.excess"), F.lit(False))


def rows(messages: DataFrame, kind: str, *columns: str) -> DataFrame:
    """Of one kind, which `kind` says, of messages that were parsed."""
    of_kind = messages.where((F.col("control") == (kind in CONTROL_ROWS)) & F.col(kind).isNotNull())
    zipped = F.arrays_zip(*(F.col(f"{kind}.{name}").alias(name) for name in columns))
    return of_kind.select(*BROKER, "cluster", "partition", F.lit(kind).alias("kind"), F.inline(zipped).alias(*columns))


def rows_of(messages: DataFrame, kinds: Mapping[str, Sequence[str]]) -> DataFrame:
    """Of several kinds; columns that one of them has not are null there."""
    each = (rows(messages, kind, *columns) for kind, columns in kinds.items())
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), each)


# -- headers -----------------------------------------------------------------------------------------------------------

_NEAR = 300_000_000
"""Microseconds in which clocks do not drift apart by much."""


def repeated(messages: DataFrame) -> DataFrame:
    """Those that are there already: Kafka's producers may repeat themselves."""
    same = Window.partitionBy(*STREAM, "first").orderBy(F.desc("count"), "message")
    return messages.withColumn("_place", F.row_number().over(same)).where("_place > 1").select("message")


def extents(messages: DataFrame) -> DataFrame:
    """Of each broker in each incarnation: its messages and rows, its last one, and which are lost.

    A gap is rows that a stream has numbered and that are not there: how many, and between which times they were. Its
    `from` is null where nothing came before, its `to` where nothing with a time came after. Each measurement of the
    clocks is a bound, and a wide one if the machine was busy: so of those near in time the best one counts.
    """
    near = Window.partitionBy(*BROKER).orderBy("to").rangeBetween(-_NEAR, _NEAR)
    before = Window.partitionBy(*STREAM).orderBy("first", "count")
    earlier = before.rowsBetween(Window.unboundedPreceding, -1)
    later = before.rowsBetween(0, Window.unboundedFollowing)
    header = messages.select(*STREAM, "first", "count", "from", "to", "lost", "interval", "skew")
    header = header.withColumn("skew", F.when(F.col("skew").isNotNull(), F.min("skew").over(near)))
    expected = F.coalesce(F.max(F.col("first") + F.col("count")).over(earlier), F.lit(0))
    placed = header.select(
        *header.columns, (F.col("first") - expected).alias("lost_rows"),
        (F.col("first") == F.lag("first").over(before)).alias("again"),
        F.max("to").over(earlier).alias("_last"), F.min("from").over(later).alias("_next"),
    )  # fmt: skip
    again = F.coalesce("again", F.lit(False))
    gap = F.struct("control", "partition", "lost_rows", F.col("_last").alias("from"), F.col("_next").alias("to"))
    return placed.groupBy(*BROKER).agg(
        F.count(F.lit(1)).alias("messages"), F.count_if(again).alias("again"),
        F.sum(F.when(~again, F.col("count"))).alias("rows"), F.max("to").alias("to"),
        F.collect_list(F.when(F.col("lost"), F.col("to"))).alias("lost"),
        F.coalesce(F.max("interval"), F.lit(0)).alias("interval"), F.coalesce(F.max("skew"), F.lit(0)).alias("skew"),
        F.collect_list(F.when(F.col("lost_rows") > 0, gap)).alias("gaps"),
    )  # fmt: skip
