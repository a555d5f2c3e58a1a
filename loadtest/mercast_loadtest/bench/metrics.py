"""Measures the live metrics: rows a second, beside a bare count of them by window; and how soon figures are there.

Both jobs read the same topic of synthetic taps from its beginning to its end, in turn, in one Spark, timed from the
moment they have started, which a job does once; processor time is counted beside, for others may use the machine, too.
Then taps come as they would from brokers, and the figures of a
window are waited for.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from mercast.kafka import Kafka
from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java
from mercast_loadtest.bench.load import progress
from mercast_loadtest.bench.processes import cpu_seconds
from mercast_streaming import live, synthetic
from mercast_streaming.figures import Figures
from mercast_streaming.schema import laid_out, message_schema
from mercast_streaming.spark import VERSION, session
from mercast_streaming.synthetic import SECOND

PARTITIONS = 4
BROKERS = 10
BATCHES = 4
"""That a run takes: sustained, and not all at once."""

WARM_UP = 4
"""Rounds that do not count: meanwhile Java compiles."""

_ROWS_PER_EVENT = 5.4
"""Of synthetic taps."""


_COUNTED = ("published", "receipts", "doubled_receipts", "deliveries", "doubled_deliveries", "dropped", "ticks")


@dataclass(frozen=True)
class Result:
    master: str
    store: str
    rows: int
    messages: int
    rows_per_second: float
    bare_rows_per_second: float
    ratio: float
    """Median over the runs of the one over the other."""
    ratios: list[float]
    cpu_s_per_million: float
    """Seconds of Spark's processor time for a million rows."""
    bare_cpu_s_per_million: float
    cpu_ratio: float
    cpu_ratios: list[float]
    counted: int
    """Of the rows, those that the figures count: all but those of windows that are not closed."""
    live_rows_per_second: float
    windows: int
    """That closed while rows came live."""
    delay_p50_s: float
    """From when the watermark could pass the end of a window, its figures in the metrics topic."""
    delay_max_s: float


def measure(*, rows: int, runs: int, seconds: int, rate: int, master: str, store: str, seed: int) -> Result:
    taps = synthetic.make(_setting(rows, seed))
    with ExitStack() as ends:
        java = find_java(progress.print)
        os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
        jars = find_jars(java, progress.print, connector(VERSION))
        kafka = ends.enter_context(Kafka(tell=progress.print)).address
        asyncio.run(_fill(kafka, taps.messages))
        progress.print("starting Spark")
        conf = live.SPARK | {"spark.driver.memory": "2g"}
        spark = session(master, jars=jars, store=store, conf=conf, name="mercast bench")
        ends.callback(spark.stop)
        folder = Path(ends.enter_context(TemporaryDirectory(prefix="mercast-bench-")))
        bench = _Bench(spark, kafka, folder, len(taps.messages) // BATCHES + PARTITIONS)  # no small batch at the end
        own, bare = bench.in_turn(runs)
        delays = bench.live(seconds, rate, seed)
    ratios = [other.seconds / one.seconds for one, other in zip(own, bare, strict=True)]
    cpu_ratios = [other.cpu / one.cpu for one, other in zip(own, bare, strict=True)]
    millions = taps.rows / 1_000_000
    return Result(
        master=master,
        store=store,
        rows=taps.rows,
        messages=len(taps.messages),
        rows_per_second=taps.rows / median(took.seconds for took in own),
        bare_rows_per_second=taps.rows / median(took.seconds for took in bare),
        ratio=median(ratios),
        ratios=ratios,
        cpu_s_per_million=median(took.cpu for took in own) / millions,
        bare_cpu_s_per_million=median(took.cpu for took in bare) / millions,
        cpu_ratio=median(cpu_ratios),
        cpu_ratios=cpu_ratios,
        counted=bench.counted,
        live_rows_per_second=rate * _ROWS_PER_EVENT,
        windows=len(delays),
        delay_p50_s=median(delays),
        delay_max_s=max(delays),
    )


class _Took(NamedTuple):
    seconds: float
    cpu: float
    """Seconds of Spark's processor time."""


class _Bench:
    def __init__(self, spark: SparkSession, kafka: str, folder: Path, batch: int) -> None:
        self._spark, self._kafka, self._folder, self._batch = spark, kafka, folder, batch
        self._pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        self._checkpoints = 0
        self.counted = 0

    def in_turn(self, runs: int) -> tuple[list[_Took], list[_Took]]:
        """The whole job and the bare count, in every other round the other way about."""
        own: list[_Took] = []
        bare: list[_Took] = []
        sides = [(own, self._metrics), (bare, self._bare)]
        for number in range(1 - WARM_UP, runs + 1):
            for took, job in sides if number % 2 else sides[::-1]:
                took.append(self._timed(job))
            told = f"run {number} of {runs}" if number > 0 else "warming up"
            progress.print(f"metrics: {told}: {own[-1].seconds:.1f} s, bare count {bare[-1].seconds:.1f} s")
        return own[WARM_UP:], bare[WARM_UP:]

    def _timed(self, job: Callable[[], StreamingQuery]) -> _Took:
        query = job()
        began, cpu = monotonic(), cpu_seconds(self._pid)
        query.awaitTermination()
        return _Took(monotonic() - began, cpu_seconds(self._pid) - cpu)

    def _setting(self, prefix: str, **changes: object) -> live.Setting:
        self._checkpoints += 1
        place = self._folder / str(self._checkpoints)
        given = {"checkpoint": f"{place}/checkpoint", "history": f"{place}/history", "beginning": "earliest"} | changes
        return live.Setting(self._kafka, taps=f"{prefix}.taps", metrics=f"{prefix}.metrics", **given)  # type: ignore[arg-type]

    def _metrics(self) -> StreamingQuery:
        """The whole job, its outputs included."""
        self.counted = 0

        def see(rows: list[Figures]) -> None:
            self.counted += sum(row[name] for row in rows if row["broker"] is None for name in _COUNTED)

        return live.start(self._spark, self._setting("old", once=True, most=self._batch), see)

    def _bare(self) -> StreamingQuery:
        """A job that counts rows by window, and does nothing with that."""
        setting = self._setting("old", most=self._batch)
        counts = bare_count(live.read_taps(self._spark, setting), setting)
        query = counts.writeStream.outputMode("append").format("noop").trigger(availableNow=True)
        return query.option("checkpointLocation", setting.checkpoint).start()

    def live(self, seconds: int, rate: int, seed: int) -> list[float]:
        """How long after its time the figures of each window came."""
        setting = self._setting("new", beginning="latest")
        query = live.start(self._spark, setting)
        try:
            return asyncio.run(_feed(self._kafka, setting, seconds, rate, seed))
        finally:
            query.stop()


def bare_count(taps: DataFrame, setting: live.Setting) -> DataFrame:
    """The least that counts rows by window: of each row, only its time is read."""
    times = {"published": "time", "received": "time", "delivered": "at", "dropped": "time", "tick": "at"}
    schema = message_schema({kind: [time] for kind, time in times.items()})
    message = taps.select(F.from_json(F.col("value").cast("string"), schema).alias("message"))
    empty = F.array().cast("array<bigint>")
    read = (laid_out("message", kind, [time])[time] for kind, time in times.items())
    every = F.concat(*(F.coalesce(one, empty) for one in read))
    when = message.select(F.explode(every).alias("when")).select(F.timestamp_micros("when").alias("when"))
    return when.withWatermark("when", f"{setting.watermark} seconds").groupBy(
        F.window("when", f"{setting.window} seconds")
    ).count()  # fmt: skip


def _setting(rows: int, seed: int) -> synthetic.Setting:
    """Half a minute that is just over: Kafka deletes what is old."""
    seconds = 30
    start = (int(time()) // 60 - 2) * 60 * SECOND
    rate = max(1, round(rows / _ROWS_PER_EVENT / seconds))
    return synthetic.Setting(seed=seed, start=start, seconds=seconds, brokers=BROKERS, rate=rate)


async def _fill(kafka: str, messages: Iterable[synthetic.Message]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    for prefix in ("old", "new"):
        compacted = {"cleanup.policy": "compact"}
        metrics = NewTopic(f"{prefix}.metrics", 1, 1, topic_configs=compacted)
        await admin.create_topics([NewTopic(f"{prefix}.taps", PARTITIONS, 1), metrics])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=kafka, linger_ms=10, max_batch_size=512 * 1024) as producer:
        sent = [await _send(producer, "old.taps", message) for message in messages]
        await asyncio.gather(*sent)


async def _send(producer: AIOKafkaProducer, topic: str, message: synthetic.Message) -> "asyncio.Future[object]":
    place = message.broker % PARTITIONS
    future: asyncio.Future[object] = await producer.send(
        topic, message.value, partition=place, timestamp_ms=message.at // 1000
    )
    return future


async def _feed(kafka: str, setting: live.Setting, seconds: int, rate: int, seed: int) -> list[float]:
    start = (int(time()) // setting.window + 2) * setting.window * SECOND
    made = synthetic.Setting(seed=seed, start=start, seconds=seconds, brokers=BROKERS, rate=rate)
    taps = synthetic.make(made)
    last = start + (seconds - setting.window - setting.watermark) * SECOND
    windows = {window for window, *_ in taps.known if window < last}
    consumer = AIOKafkaConsumer(setting.metrics, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
            feeding = asyncio.create_task(_at_their_times(producer, setting.taps, taps.messages))
            delays: dict[int, float] = {}
            while windows - delays.keys():
                record = await asyncio.wait_for(consumer.getone(), seconds + 120)
                end = datetime.fromisoformat(json.loads(record.value)["window_end"]).timestamp()
                window, late = round(end - setting.window) * SECOND, record.timestamp / 1000 - end - setting.watermark
                delays.setdefault(window, late)
            await feeding
    finally:
        await consumer.stop()
    # In the first windows Java still compiles, as it does only once.
    return [delay for window, delay in sorted(delays.items()) if window in windows][1:]


async def _at_their_times(producer: AIOKafkaProducer, topic: str, messages: Iterable[synthetic.Message]) -> None:
    for message in messages:
        await asyncio.sleep(message.at / SECOND - time())
        await _send(producer, topic, message)
