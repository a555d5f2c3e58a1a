"""How long the audit takes for many subscriptions and events, of taps that were invented with some faults in them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java
from mercast_streaming.audit import invented
from mercast_streaming.audit.evaluate import SETTINGS
from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files
from mercast_streaming.spark import VERSION, session

_SHARE = 0.003
"""Of the events that each subscription matches: a thousand make about three pairs for each event."""
_FAULTS = {invented.DROP: 3, invented.DOUBLE: 3, invented.MISROUTE: 3, invented.MISDELIVER: 3}


@dataclass(frozen=True)
class Result:
    subscriptions: int
    events: int
    pairs: int
    tap_megabytes: float
    seconds: float
    memory_megabytes: float
    """The most that Spark's process had."""
    exact: bool
    """Whether it found what had gone wrong, and nothing else."""

    @property
    def evaluations_per_second(self) -> float:
        return self.subscriptions * self.events / self.seconds


def measure(*, subscriptions: int, events: int, seed: int, memory: str, tell: Callable[[str], None]) -> Result:
    with TemporaryDirectory(prefix="mercast-audit-") as name:
        folder = Path(name)
        tell("inventing taps")
        setting = invented.Setting(
            seed=seed,
            events=events,
            subscriptions=subscriptions,
            share=_SHARE,
            rate=20_000,
            flush=2_000,
            faults=_FAULTS,
        )
        taps = invented.make(setting)
        taps.write(folder)
        pairs, wrong = taps.pairs, taps.wrong
        del taps
        size = sum(file.stat().st_size for file in folder.iterdir())
        java = find_java(tell)
        os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
        conf = SETTINGS | {"spark.driver.memory": memory}
        spark = session(jars=find_jars(java, tell, connector(VERSION)), conf=conf, name="mercast bench audit")
        try:
            tell("auditing")
            began = monotonic()
            report = audit(spark, from_files(spark, name), Setting())
            seconds = monotonic() - began
            most = _most_memory(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        finally:
            spark.stop()
    found = {(one.what, one.event, one.broker, one.client) for one in report.named}
    return Result(subscriptions, events, pairs, size / 1e6, seconds, most, found == wrong)


def _most_memory(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")), 0.0)
