"""What the commands that run Spark have in common."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java
from mercast_streaming.spark import VERSION, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def started(master: str, *, kafka: bool = True, **options: Any) -> "SparkSession":
    """Spark, with what it needs to speak with Kafka: fetched on first use, as Java is."""
    java = find_java(tell)
    os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
    jars = find_jars(java, tell, connector(VERSION)) if kafka else None
    tell("starting Spark")
    return session(master, jars=jars, kafka=kafka, **options)


def pairs(flag: str, given: list[str], stop: Callable[[str], NoReturn]) -> dict[str, str]:
    """Settings that are given as KEY=VALUE."""
    for pair in given:
        if "=" not in pair.strip("="):
            stop(f"{flag} {pair}: give it as KEY=VALUE")
    return dict(pair.split("=", 1) for pair in given)


def tell(what: str) -> None:
    """That something takes a while."""
    sys.stderr.write(f"{what} …\n")
