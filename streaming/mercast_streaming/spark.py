"""A Spark session for the jobs: the Kafka connector of its own version, few partitions, and a quiet log."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pyspark
from pyspark.sql import SparkSession

VERSION: str = pyspark.__version__

_STORES = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
STORES = tuple(_STORES)

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # batches are small: planning them twice costs more than it gains
    "spark.sql.ansi.enabled": "false",  # a number out of range in a row must not end the job
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g"}
"""On this machine only; elsewhere, executors must be able to call back."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_LOGGING = """\
status=off
appender.err.type=Console
appender.err.name=err
appender.err.target=SYSTEM_ERR
appender.err.layout.type=PatternLayout
appender.err.layout.pattern=%d %p %c{1}: %m%n
rootLogger.level=error
rootLogger.appenderRef.err.ref=err
"""


def session(
    master: str = "local[2]",
    *,
    jars: Path | None = None,
    kafka: bool = True,
    store: str = "hdfs",
    conf: Mapping[str, str] | None = None,
    name: str = "mercast",
) -> SparkSession:
    """`jars` is a folder with the Kafka connector, which Spark else fetches itself, unless it is not to speak with
    Kafka; `conf` has the last word."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = _LOCAL if master.startswith("local") else {}
    connector: dict[str, str] = {}
    if kafka and jars is None:
        connector = {"spark.jars.packages": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"}
    elif jars is not None:
        own = {jar.name for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
        others = sorted(str(jar) for jar in jars.glob("*.jar") if jar.name not in own)
        connector = {"spark.jars": ",".join(others)}
    state = {"spark.sql.streaming.stateStore.providerClass": _STORES[store]}
    settings = _SETTINGS | local | connector | state | dict(conf or {})
    with TemporaryDirectory(prefix="mercast-spark-") as folder, _quiet():
        logging = Path(folder) / "log4j2.properties"
        logging.write_text(_LOGGING)
        java = settings.get(_JAVA_OPTIONS, "")
        settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={logging} {java}".strip()
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


class SparkError(Exception):
    """Spark could not be started, with what it said."""


_TOLD = 2_000
"""Characters of what Spark said in an error."""


@contextmanager
def _quiet() -> Iterator[None]:
    """What Java is started here says much to its standard error, of use only if it does not start."""
    sys.stderr.flush()
    ours = os.dup(2)
    with TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except Exception as error:
            said.seek(0)
            tail = said.read().decode(errors="replace")[-_TOLD:]
            raise SparkError(f"Spark did not start: {error}\n{tail}") from error
        finally:
            os.dup2(ours, 2)
            os.close(ours)
