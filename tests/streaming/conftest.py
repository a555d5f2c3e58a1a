"""Tests that need Spark are marked `spark`, and run after all others, in two processes, file by file. Each has a Spark,
if a test of its needs one that is not a command, and a Kafka."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from mercast.kafka import Kafka
from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java
from mercast_streaming.audit.evaluate import SETTINGS
from mercast_streaming.spark import VERSION, session

MARKS = (
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
)


def pytest_itemcollected(item):
    if Path(__file__).parent in item.path.parents:
        for mark in MARKS:
            item.add_marker(mark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
    # Compiled less well, sooner at work.
    own = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
    own["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    with ExitStack() as ends:
        spark = session(jars=find_jars(java, of=connector(VERSION)), conf=own)
        ends.callback(spark.stop)
        yield spark


@pytest.fixture(scope="session")
def auditing(spark):
    """The same Spark, set up as `mercast audit` does."""
    session = spark.newSession()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    return session


@pytest.fixture(scope="session")
def kafka():
    with Kafka() as kafka:
        yield kafka.address
