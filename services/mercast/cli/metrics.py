"""`mercast metrics`: live metrics of all brokers whose taps are in Kafka, by Spark."""

import asyncio
import logging
import signal
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated, Any, Literal, NoReturn

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

from mercast.cli.local import interruptible
from mercast.cli.with_spark import pairs, started, tell
from mercast.kafka import KafkaError
from mercast_streaming.checkpoint import CheckpointError
from mercast_streaming.figures import Figures, as_json
from mercast_streaming.live import PROBLEMS, SPARK, Setting, start
from mercast_streaming.show import Newest
from mercast_streaming.spark import SparkError

log = logging.getLogger(__name__)

Pairs = Annotated[list[str], Parameter(negative="")]
READING = "reading taps; figures come when a window has closed"
_POLL = 0.5
_TOLD = 1_000
"""Characters of an error of Spark."""


def metrics(
    *,
    kafka: str = "127.0.0.1:9092",
    prefix: str = "mercast",
    window: int = 5,
    watermark: int = 5,
    ahead: int = 10,
    checkpoint: str | None = None,
    history: str | None = None,
    beginning: Annotated[Literal["latest", "earliest"], Parameter(name=["--from"])] = "latest",
    every: float = 0.5,
    once: bool = False,
    most: int | None = None,
    store: Literal["hdfs", "rocksdb"] = "hdfs",
    master: str = "local[2]",
    conf: Pairs = [],  # noqa: B006 - never changed
    kafka_conf: Pairs = [],  # noqa: B006
    brokers: bool = True,
) -> None:
    """Show live metrics of brokers, from their taps in Kafka, and write them down. Until Ctrl-C.

    On a terminal, a table of the newest window; into a pipe, a line of JSON for each cluster and broker in each window.

    Parameters
    ----------
    kafka
        Kafka's address, or several with commas.
    prefix
        Of the topics: PREFIX.taps is read, PREFIX.metrics written.
    window
        Seconds.
    watermark
        Seconds that rows may come later than those of other brokers.
    ahead
        Seconds that a row may be ahead of Kafka's clock; what is further ahead is set aside and counted.
    checkpoint
        Folder, on any file system that Hadoop knows, from which a later run goes on. Without one, each run begins anew.
    history
        Folder, likewise, to which figures are written as Parquet.
    beginning
        Where to begin when there is no checkpoint: with the latest rows, or with the earliest that Kafka has.
    every
        Seconds from batch to batch.
    once
        Go through what Kafka has, from the checkpoint on, and end; windows that are not closed wait for the next run.
    most
        Messages in a batch, for a backlog that does not fit into memory; rows may come too late then, which the log
        tells. Without it, a batch is all there is.
    store
        Where Spark keeps its state: on the heap, or in RocksDB for what the heap cannot hold. Both copy it to the
        checkpoint.
    master
        Spark's master.
    conf
        A setting of Spark, as KEY=VALUE. May be given again.
    kafka_conf
        A setting of Kafka's clients, such as security.protocol=SSL. May be given again.
    brokers
        Show each broker too.
    """
    if min(window, watermark + 1, ahead + 1) < 1 or every < 0:
        _stop("--window must be at least 1 s, and --watermark, --ahead and --every not negative")
    if most is not None and most < 1:
        _stop("--most must be at least 1")
    spark_settings, kafka_settings = pairs("--conf", conf, _stop), pairs("--kafka-conf", kafka_conf, _stop)
    try:
        with ExitStack() as ends:
            ends.enter_context(interruptible())
            place = checkpoint or ends.enter_context(TemporaryDirectory(prefix="mercast-metrics-"))
            setting = Setting(
                kafka=kafka, checkpoint=place, history=history, taps=f"{prefix}.taps", metrics=f"{prefix}.metrics",
                window=window, watermark=watermark, ahead=ahead, beginning=beginning, every=every, once=once, most=most,
                kafka_options=kafka_settings,
            )  # fmt: skip
            if not kafka_settings:  # which are in Spark's words, not in ours
                _check_topics(setting)
            spark = started(master, store=store, conf=SPARK | spark_settings, name="mercast metrics")
            ends.callback(spark.stop)
            _run(spark, setting, brokers, ends)
    except (KafkaError, SparkError, CheckpointError) as error:
        _stop(str(error))
    except KeyboardInterrupt:
        pass


def _check_topics(setting: Setting) -> None:
    """Better in a sentence now than as a tale of Java's later."""
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaConnectionError
    from aiokafka.errors import KafkaError as Unusable

    async def missing() -> list[str]:
        if "://" in setting.kafka:  # as brokers want it
            raise ValueError
        admin = AIOKafkaAdminClient(bootstrap_servers=setting.kafka)
        await admin.start()
        try:
            return sorted({setting.taps, setting.metrics} - set(await admin.list_topics()))
        finally:
            await admin.close()

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        names = asyncio.run(missing())
    except ValueError:
        _stop(f"--kafka {setting.kafka}: give it as HOST:PORT, or several with commas")
    except KafkaConnectionError:  # whose words are the library's
        _stop(f"no Kafka at {setting.kafka}; start one by: mercast kafka")
    except (Unusable, OSError) as error:
        _stop(f"Kafka at {setting.kafka}: {error}")
    if names:
        _stop(
            f"Kafka has no topic {' and no '.join(names)}; brokers make them, or: mercast taps init kafka://{setting.kafka}"
        )


def _run(spark: Any, setting: Setting, brokers: bool, ends: ExitStack) -> None:
    newest, console = Newest(), Console()
    live = (
        Live(newest.table(brokers, console.width), console=console, auto_refresh=False) if console.is_terminal else None
    )
    if live is not None:
        ends.enter_context(live)

    def see(rows: list[Figures]) -> None:
        newest.see(rows)
        if live is None:
            sys.stdout.writelines(as_json(row) + "\n" for row in rows)
            sys.stdout.flush()

    stopped = _stopped()
    query = start(spark, setting, see)
    ends.callback(query.stop)
    told = -1
    while query.isActive and not stopped.wait(_POLL):
        if told < 0 and query.lastProgress is not None:
            tell(READING)
        told = _tell_problems(query.recentProgress, told)
        if live is not None:
            live.update(newest.table(brokers, console.width), refresh=True)
    _tell_problems(query.recentProgress, told)
    failure = query.exception()
    if failure is not None:
        _stop(f"the job has ended: {str(failure)[:_TOLD]}")


def _stopped() -> Event:
    """Set by Ctrl-C and SIGTERM: an exception amid a word with Java would leave that half said."""
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


def _tell_problems(progress: list[Any], told: int) -> int:
    """What each batch since could not read, and what came too late to be in any figure."""
    for batch in progress:
        if batch.batchId > told:
            told = batch.batchId
            problems = batch.observedMetrics.get(PROBLEMS)
            if problems is not None and problems["count"]:
                log.warning("unreadable tap messages: %d, such as %s", problems["count"], problems["sample"])
            late = sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)
            if late:
                log.warning("rows came after their windows had closed, and are in no figure: %d kinds of them", late)
    return told


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast metrics: {reason}")
