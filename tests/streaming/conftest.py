"""Tests that need Spark are marked `spark`, and run after all others, in two processes: one has a Spark, which is slow
to start, for all tests that are not of commands; the other has the commands, which start their own."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from mercast.kafka import Kafka
from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java
from mercast_streaming.audit.evaluate import SETTINGS
from mercast_streaming.spark import VERSION, session

pytest.register_assert_rewrite("written")

MARKS = (
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),  # a Spark that is left in the midst of its work is of no use to the tests after it
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
)

COMMANDS = {
    "test_audit_command.py",
    "test_compare.py",
    "test_demo_whole.py",
    "test_job_killed.py",
    "test_kafka_killed.py",
}


class InTwo(LoadScopeScheduling):
    """What belongs together is done by one process, one after the other."""

    def _split_scope(self, nodeid):
        return "commands" if Path(nodeid.partition("::")[0]).name in COMMANDS else "Spark"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return InTwo(config, log)


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
