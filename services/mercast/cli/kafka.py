"""`mercast kafka`: a Kafka of one node on this machine."""

import sys
from pathlib import Path

from mercast.cli.local import interruptible
from mercast.kafka import Kafka, KafkaError
from mercast.processes import in_use

_LAST = 65_535


def kafka(*, port: int = 9092, data: Path | None = None) -> None:
    """Run a Kafka of one node on this machine, until Ctrl-C. The first time, it is fetched.

    Parameters
    ----------
    port
        Where it listens, on loopback. 0 takes any that is free.
    data
        A folder to keep its data in; without one, the data is gone when it stops.
    """
    if not 0 <= port <= _LAST:
        sys.exit(f"mercast kafka: --port {port}: choose 1 to {_LAST}, or 0 for any free port")
    if port and in_use(f"127.0.0.1:{port}"):
        sys.exit(f"mercast kafka: port {port} is in use; choose another with --port, or 0 for any free port")
    try:
        with interruptible(), Kafka(port, data and data.absolute(), tell=_tell) as running:
            _say(f"Kafka at {running.address}   (Ctrl-C stops it)")
            running.wait()
    except KafkaError as error:
        sys.exit(f"mercast kafka: {error}")
    except KeyboardInterrupt:
        _say("stopped")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line} …\n")


def _say(line: str) -> None:
    """At once: it may be read through a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
