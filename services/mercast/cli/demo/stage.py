"""What is on the stage, and in which order it comes and goes: Kafka and the dashboard, Spark, brokers, the load.

Everything but the brokers is a command that anybody can give; the demo only gives them all.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from mercast.broker.local import CLUSTER, Local
from mercast.cli import local
from mercast.cli.demo.outcome import AROUND_FAULT
from mercast.cli.demo.parts import Part, PartError
from mercast.cli.demo.possible import Possible
from mercast.cli.demo.story import Story
from mercast.processes import free_addresses, held, in_use

CLUSTERS, BROKERS, EDGES = 3, 4, 2
"""How many clusters, brokers in each, and edges among these: as few as have everything, for two processors."""

WRITTEN = (
    "report.txt", "report.html", "load.json", "load.html", "audit.json", "audit.html",
    *(f"load_{name}.csv" for name in ("stats", "stats_history", "failures", "exceptions")),
    *(f"logs/{part}.{end}" for part in ("kafka", "dashboard", "metrics", "load", "audit") for end in ("out", "log")),
    *(f"logs/broker-{id}.log" for id in range(1, CLUSTERS * BROKERS + 1)),
)  # fmt: skip
"""Files that a run leaves in its folder."""

_KAFKA = "127.0.0.1:9092"
_PAGE = 10
"""From the first broker's port to the page's."""
_KAFKA_WITHIN, _PAGE_WITHIN = 120.0, 60.0
_SPARK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiled less well, and sooner at work: beside so much else, that is what takes Spark longest."""
_LIVE, _AUDIT = "640m", "1g"
"""Memory of the live job, which keeps sums of a few windows only, and of the audit."""
_READING = "reading taps"
"""What `mercast metrics` says when it has come so far."""
_EVERY, _PARTITIONS = "2", "2"
"""Seconds between its batches, and partitions of the taps: each costs it time in every batch."""


@dataclass(frozen=True)
class Setting:
    seconds: float
    rate: float
    publishers: int
    subscribers: int
    filters: int
    seed: int
    port: int
    folder: Path


class Stage:
    """`with Stage(…) as stage`: all but the load is there. `begin`, then `clear` in the end."""

    def __init__(self, setting: Setting, possible: Possible, story: Story, tell: Callable[[str], None]) -> None:
        self._setting, self._possible, self._story, self._tell = setting, possible, story, tell
        self._ends = ExitStack()
        self._addresses = _addresses(setting.port)
        self.logs = setting.folder / "logs"
        self.kafka: Part | None = None
        self.spark: Part | None = None
        self.load: Part | None = None
        self.audit: Part | None = None

    def __enter__(self) -> "Stage":
        with ExitStack() as ends:
            self.logs.mkdir(parents=True, exist_ok=True)
            taken = ends.enter_context(held(chain.from_iterable(self._addresses)))
            self._room = Path(ends.enter_context(TemporaryDirectory(prefix="mercast-demo-")))
            if self._possible.live:
                self.kafka = self._start_kafka(ends)
            self.dashboard, self.page = self._start_dashboard(ends)
            if self.kafka is not None:  # Spark takes longest
                self.spark = self._start_spark(self.kafka, ends)
            taken.close()
            self.mesh = self._start_brokers(ends)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _start_kafka(self, ends: ExitStack) -> Part:
        usual = self._setting.port and not in_use(_KAFKA)
        self.kafka_address = _KAFKA if usual else free_addresses(1)[0]
        port = self.kafka_address.rpartition(":")[2]
        part = Part(self.logs, "kafka", "--port", port, "--data", str(self._room / "kafka"))
        ends.callback(part.stop)
        return part

    def _start_dashboard(self, ends: ExitStack) -> tuple[Part, str]:
        """And the page's address, as soon as it is there."""
        usual = f"127.0.0.1:{self._setting.port + _PAGE}" if self._setting.port else ""
        if usual and in_use(usual):
            self._tell(f"{usual} is in use: the page will be somewhere else")
            usual = ""
        admins = ",".join(admin for _, _, admin in self._addresses)
        flags = ["--listen", usual or "127.0.0.1:0", "--admin", admins]
        flags += ["--kafka", self.kafka_address] if self.kafka else ["--kafka", "", "--older", str(self._taps)]
        self._taps.mkdir()
        part = Part(self.logs, "dashboard", *flags)
        ends.callback(part.stop)
        page = part.wait_for("dashboard at ", _PAGE_WITHIN)
        self._story.page_after = self._story.now
        self._tell(f"the page is up: {page}")
        return part, page

    def _start_spark(self, kafka: Part, ends: ExitStack) -> Part:
        kafka.wait_for("Kafka at ", _KAFKA_WITHIN)
        self._tell(f"Kafka is up: {self.kafka_address}")
        _make_topics(self.kafka_address)
        flags = ("--every", _EVERY, "--conf", _SPARK, "--conf", f"spark.driver.memory={_LIVE}")
        part = Part(self.logs, "metrics", "--kafka", self.kafka_address, *flags)
        ends.callback(part.stop)
        self._tell("Spark is starting")
        return part

    @property
    def spark_is_starting(self) -> bool:
        return self.spark is not None and _READING not in self.spark.log.read_text(errors="replace")

    def _start_brokers(self, ends: ExitStack) -> Local:
        taps = f"kafka://{self.kafka_address}" if self.kafka else f"file://{self._taps}"
        self._tell(f"starting {CLUSTERS * BROKERS} brokers (the first time takes half a minute)")
        mesh = Local(
            BROKERS, clusters=CLUSTERS, edges=EDGES, strategy="merc", folder=self.logs,
            options=["--taps", taps, "--taps-partitions", _PARTITIONS], addresses=lambda id: self._addresses[id - 1],
        )  # fmt: skip
        ends.enter_context(mesh)
        self._tell(
            f"{CLUSTERS} clusters of {BROKERS} brokers are up, each with {EDGES} edges, joined by a backbone (MERC)"
        )
        return mesh

    def begin(self) -> Part:
        """The load. Its clients are at brokers that are no edges: an edge that dies takes none of them along."""
        setting, folder = self._setting, self._setting.folder
        homes = [one.client for one in self.mesh.brokers.values() if not one.edge]
        self.load = Part(
            self.logs, "load", "--brokers", ",".join(homes), "--workload", "quotes", "--shape", "steady",
            "--publishers", str(setting.publishers), "--subscribers", str(setting.subscribers),
            "--filters", str(setting.filters), "--rate", f"{setting.rate:g}", "--seconds", f"{setting.seconds:g}",
            "--seed", str(setting.seed), "--csv", str(folder / "load"), "--html", str(folder / "load.html"),
            "--json", str(folder / "load.json"), "--around-faults", f"{AROUND_FAULT:g}",
        )  # fmt: skip
        self._ends.callback(self.load.stop)
        return self.load

    # -- what goes -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """That everything runs that should: PartError says what does not. Without Spark it goes on."""
        for part in (self.kafka, self.dashboard):
            if part is not None:
                part.check()
        for broker in self.mesh.brokers.values():
            if broker.process is not None and broker.process.poll() is not None:
                raise PartError(f"broker {broker.id} has ended; its log:\n{broker.tail()}")
        if self.spark is not None and self.spark.status is not None:
            self._possible.missing.append(f"no live figures: Spark has ended; its log:\n{self.spark.tail()}")
            self._tell(self._possible.missing[-1])
            self.spark = None

    def clear(self) -> None:
        """All but Kafka, which has the taps. Brokers first: they write down what they still know."""
        self.mesh.stop()
        for part in (self.spark, self.dashboard):
            if part is not None:
                part.stop()

    def start_audit(self) -> Part:
        taps, folder = f"kafka://{self.kafka_address}" if self.kafka else str(self._taps), self._setting.folder
        self.audit = Part(
            self.logs, "audit", "--from", taps, "--around-faults", f"{AROUND_FAULT:g}", "--memory", _AUDIT,
            "--conf", _SPARK, "--json", str(folder / "audit.json"), "--html", str(folder / "audit.html"),
        )  # fmt: skip
        self._ends.callback(self.audit.stop)
        return self.audit

    @property
    def _taps(self) -> Path:
        return self._room / "taps"

    # -- who is who ----------------------------------------------------------------------------------------------------

    def clusters(self) -> dict[str, list[int]]:
        """By name, their brokers."""
        found: dict[str, list[int]] = {}
        for one in self.mesh.brokers.values():
            found.setdefault(cluster_name(one.cluster), []).append(one.id)
        return found

    def parts(self) -> dict[int, str]:
        """By process, what to call it and all that it has started."""
        named = {"Kafka": self.kafka, "dashboard": self.dashboard, "Spark": self.spark, "Locust": self.load}
        named["audit"] = self.audit
        return {part.pid: name for name, part in named.items() if part is not None} | {self.mesh.pid: "brokers"}


def cluster_name(number: int) -> str:
    return f"{CLUSTER}-{number}"


def _addresses(port: int) -> list[tuple[str, str, str]]:
    """Of each broker the three; the usual ones if they are free, so that others find the brokers without being told."""
    count = CLUSTERS * BROKERS
    usual = [local.addresses(port, id) for id in range(1, count + 1)] if port else []
    if usual and not any(in_use(address) for three in usual for address in three):
        return usual
    free = iter(free_addresses(3 * count))
    return [(next(free), next(free), next(free)) for _ in range(count)]


def _make_topics(kafka: str) -> None:
    """Spark wants them to be there; brokers may not have come to it yet."""
    from mercast.broker.config import load
    from mercast.taps.topics import make_topics

    asyncio.run(
        make_topics(load(None, {"id": 0, "taps": f"kafka://{kafka}", "taps_partitions": _PARTITIONS}).tap_settings())
    )
