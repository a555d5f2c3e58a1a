"""Jars of Kafka and of Spark's Kafka connector, fetched on first use by the Ivy that pyspark brings, into a folder that
all runs share.

Ivy looks where it always does. A settings file of its own, for a mirror, is named by MERCAST_IVY_SETTINGS.
"""

import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mercast.kafka.errors import KafkaError


class Jars(NamedTuple):
    name: str
    version: str
    size: str
    wanted: tuple[tuple[str, str, str], ...]
    """Organisation, module and version of each; what they need comes with them."""


KAFKA = Jars(
    "Kafka",
    "4.3.1",
    "45 MB",
    (
        ("org.apache.kafka", "kafka_2.13", "4.3.1"),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),  # not slf4j2: Kafka brings slf4j 1.7
    ),
)


def connector(spark: str) -> Jars:
    """Of that version of Spark: each has its own."""
    return Jars("Spark's Kafka connector", spark, "60 MB", (("org.apache.spark", "spark-sql-kafka-0-10_2.13", spark),))


_RETRIEVED = "[artifact]-[revision](-[classifier]).[ext]"
_DONE = re.compile(r"\[SUCCESSFUL ?\] \S+!(\S+)")
_EVERY = 10
"""Jars, of some fifty of Kafka's, between two words of progress."""
_TOLD = 12
"""Lines of what Ivy said in an error."""


def cache() -> Path:
    """The folder of what was fetched once."""
    chosen = os.environ.get("MERCAST_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mercast"


def find_jars(java: Path, tell: Callable[[str], None] = lambda _: None, of: Jars = KAFKA) -> Path:
    """The folder that they are in. Whoever comes while another one fetches them waits."""
    jars = cache() / "-".join((*of.name.lower().replace("'s", "").split(), of.version))
    if jars.is_dir():
        return jars
    try:
        jars.parent.mkdir(parents=True, exist_ok=True)
        with (jars.parent / "lock").open("w") as lock:
            flock(lock, LOCK_EX)
            if not jars.is_dir():
                _fetch(java, jars, tell, of)
    except OSError as error:
        raise KafkaError(
            f"Jars of {of.name} cannot be kept in {jars.parent}: {error}; MERCAST_CACHE names another"
        ) from None
    return jars


def _fetch(java: Path, jars: Path, tell: Callable[[str], None], of: Jars) -> None:
    tell(f"fetching {of.name} {of.version} (once, {of.size}) into {jars}")
    with TemporaryDirectory(prefix="fetching-", dir=jars.parent) as name:
        folder = Path(name)
        (folder / "ivy.xml").write_text(_module(of))
        command: list[str | Path] = [java, f"-Divy.default.ivy.user.dir={folder / 'ivy'}", "-jar", _ivy()]
        settings = os.environ.get("MERCAST_IVY_SETTINGS")
        if settings:
            command += ["-settings", settings]
        command += ["-ivy", folder / "ivy.xml", "-confs", "default", "-retrieve", f"{folder}/jars/{_RETRIEVED}"]
        _run(command, tell, of)
        for source in (folder / "jars").glob("*-sources.jar"):
            source.unlink()
        shutil.move(folder / "jars", jars)  # all at once: whoever sees the folder sees all of it


def _run(command: list[str | Path], tell: Callable[[str], None], of: Jars) -> None:
    said: deque[str] = deque(maxlen=_TOLD)
    count = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            said.append(line)
            done = _DONE.search(line)
            if done:
                count += 1
                if count % _EVERY == 0:
                    tell(f"{count} jars, the last one {done[1]}")
    if ivy.returncode:
        raise KafkaError(f"Jars of {of.name} could not be fetched; Ivy said at last:\n{''.join(said)}")


def _ivy() -> Path:
    spark = find_spec("pyspark")
    found = spark and spark.submodule_search_locations
    ivy = next(Path(found[0]).glob("jars/ivy-*.jar"), None) if found else None
    if ivy is None:
        raise KafkaError("Jars are fetched by means of pyspark; try: pip install 'mercast[streaming]'")
    return ivy


def _module(of: Jars) -> str:
    wanted = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default"/>' for org, name, rev in of.wanted
    )
    return (
        '<ivy-module version="2.0"><info organisation="mercast" module="kafka"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )
