"""Kafka as a child process: one node that is broker and controller (KRaft), small, on loopback unless told. No asyncio.

It ends with the `with` block, and with the thread that started it if that is killed.
"""

import base64
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from mercast.kafka.errors import KafkaError
from mercast.kafka.jars import find_jars
from mercast.kafka.java import find_java
from mercast.processes import end_with_parent, free_addresses

_HOST = "127.0.0.1"
_HEAP = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Small, and soon at work: for a laptop, beside brokers and Spark."""

_STARTED = b"Kafka Server started"
_READY_WITHIN = 120.0
_STOP_WITHIN = 30.0
_POLL = 0.05
_TOLD = 2_000
"""Characters of Kafka's log in an error."""

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": 8_388_608,
    "log.segment.bytes": 67_108_864,  # retention goes by whole segments
    "broker.session.timeout.ms": 3_000,  # how long it waits for itself after it was killed
    "broker.heartbeat.interval.ms": 500,
    "metadata.max.idle.interval.ms": 60_000,  # else it writes twice a second that nothing happens
    "num.network.threads": 2,
    "num.io.threads": 4,
}

_LOGGING = """\
status=off
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
"""
"""So little that the log stays small without being rotated."""


class Kafka:
    """`with Kafka() as kafka: kafka.address …`; may be stopped, killed and started again, with its port and data.

    Without a folder, the data is gone afterwards. `host` is where it listens, `advertise` the address that it tells its
    clients to come to, for those on other machines. `tell` hears what takes long. `settings` are Kafka's own, in place
    of those here or beside them.
    """

    def __init__(
        self,
        port: int = 0,
        data: Path | None = None,
        *,
        host: str = _HOST,
        advertise: str = "",
        settings: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._port, self._data, self._others, self._tell = port, data, settings or {}, tell
        self._host, self._advertise = host, advertise
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = ExitStack()

    def __enter__(self) -> "Kafka":
        with ExitStack() as ends:
            self._folder = self._data or Path(ends.enter_context(TemporaryDirectory(prefix="mercast-kafka-")))
            ends.callback(self.stop)
            self.start()
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    @property
    def address(self) -> str:
        """That clients come to."""
        return self._advertise or f"{self._host}:{self._port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise KafkaError("Kafka is not running")
        return self._process.pid

    def start(self) -> None:
        """And wait until it is ready."""
        java = find_java(self._tell)
        jars = find_jars(java, self._tell)
        self._tell("starting Kafka")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "log4j2.properties").write_text(_LOGGING)
            self._settings.write_text(self._configure())
        except OSError as error:
            raise KafkaError(f"Kafka's data cannot be kept in {self._folder}: {error}") from None
        run = [
            str(java),
            *_HEAP,
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}",
            "-cp",
            f"{jars}/*",
        ]
        if not (self._folder / "data/meta.properties").exists():
            self._format(run)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*run, "kafka.Kafka", self._settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # so that Ctrl-C reaches it by way of us, after those who use it
                preexec_fn=end_with_parent,
            )
        self._wait_ready(self._process)

    def stop(self) -> None:
        """As an operator would; by SIGKILL if that does not help."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def wait(self) -> None:
        """Until it ends by itself, which is an error."""
        if self._process is not None:
            self._process.wait()
            raise KafkaError(f"Kafka has ended; its log:\n{self._tail()}")

    # -- how it is set up ----------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

    @property
    def _log(self) -> Path:
        return self._folder / "kafka.log"

    def _configure(self) -> str:
        """The controller speaks to itself only: any port will do, another one each time."""
        free, controller = free_addresses(2)
        self._port = self._port or int(free.rpartition(":")[2])
        settings = _SETTINGS | {
            "listeners": f"PLAINTEXT://{self._host}:{self._port},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": self._folder / "data",
            **self._others,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _format(self, run: list[str]) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # An id that begins with a dash would be taken for a flag.
        command = [*run, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._settings)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KafkaError(
                f"Kafka's storage could not be made in {self._folder}: {(done.stdout + done.stderr)[-_TOLD:]}"
            )

    # -- how it is watched ---------------------------------------------------------------------------------------------

    def _wait_ready(self, process: "subprocess.Popen[bytes]") -> None:
        until = monotonic() + _READY_WITHIN
        while _STARTED not in self._log.read_bytes():
            if process.poll() is not None:
                self._process = None
                raise KafkaError(f"Kafka did not start; its log:\n{self._tail()}")
            if monotonic() > until:
                raise KafkaError(f"Kafka is not ready after {_READY_WITHIN:.0f} s; its log:\n{self._tail()}")
            sleep(_POLL)

    def _end(self, by: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(by)
        try:
            process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-_TOLD:]
