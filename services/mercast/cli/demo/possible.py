"""What of the demo this machine can have. Whatever it cannot is told in a sentence, and the demo goes on without it.

Kafka and Spark need Java, jars that are fetched once, and memory. Without them taps go into files, which the audit can
read as well; without Java or memory for that, the subscribers' own count has to do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mercast.kafka import KafkaError
from mercast.kafka.jars import connector, find_jars
from mercast.kafka.java import find_java

_GB = 1e9
LEAST_LIVE, LEAST_AUDIT = 3.0 * _GB, 1.8 * _GB
"""Bytes of free memory: for everything at once; for brokers and load, and the audit when these have ended."""


@dataclass
class Possible:
    live: bool = True
    """Kafka, and Spark that makes figures of what comes there."""
    audit: bool = True
    missing: list[str] = field(default_factory=list)
    """What there is not, and why."""

    def without(self, why: str, *, audit: bool) -> None:
        self.live, self.audit = False, self.audit and audit
        self.missing.append(why)


def find(tell: Callable[[str], None]) -> Possible:
    """What has to be fetched or installed is, and told of."""
    found = Possible()
    free = free_memory()
    if free is not None and free < LEAST_LIVE:
        audit = free >= LEAST_AUDIT
        what = "Kafka and Spark's live figures" if audit else "Kafka, Spark and the audit"
        found.without(
            f"{free / _GB:.1f} GB of memory are free: no {what} (that takes {_needed(audit)} GB)", audit=audit
        )
    if not found.audit:
        return found
    try:
        java = find_java(tell)
    except KafkaError as error:
        found.without(f"no Kafka, no Spark and no audit: {error}", audit=False)
        return found
    if found.live:
        _fetch(java, found, tell)
    return found


def _needed(audit: bool) -> str:
    return f"{(LEAST_LIVE if audit else LEAST_AUDIT) / _GB:.1f}"


def _fetch(java: Path, found: Possible, tell: Callable[[str], None]) -> None:
    try:
        from mercast_streaming.spark import VERSION

        find_jars(java, tell)
        find_jars(java, tell, connector(VERSION))
    except ImportError as error:
        found.without(f"no Spark: {error.name} is not installed; try: pip install 'mercast[all]'", audit=False)
    except KafkaError as error:
        found.without(f"no Kafka and no live figures: {error}", audit=True)


def free_memory() -> int | None:
    """Bytes that programs can have without others being pushed out; None where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    told = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return told.get("MemAvailable")
