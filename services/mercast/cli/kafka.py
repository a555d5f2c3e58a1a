"""`mercast kafka`: a Kafka of one node on this machine."""

import sys
from pathlib import Path

from mercast.cli.local import interruptible
from mercast.kafka import Kafka, KafkaError
from mercast.processes import in_use

_LAST = 65_535
_ANY = ("0.0.0.0", "::")


def kafka(*, port: int = 9092, data: Path | None = None, host: str = "127.0.0.1", advertise: str = "") -> None:
    """Run a Kafka of one node on this machine, until Ctrl-C. The first time, it is fetched.

    Parameters
    ----------
    port
        Where it listens. 0 takes any that is free.
    data
        A folder to keep its data in; without one, the data is gone when it stops.
    host
        The address to listen at. Beyond loopback everybody on the network may read and write: for trying out, behind a
        network policy.
    advertise
        The address, as host:port, that clients are told to come to, when they reach it by another than `host`.
    """
    if not 0 <= port <= _LAST:
        sys.exit(f"mercast kafka: --port {port}: choose 1 to {_LAST}, or 0 for any free port")
    if host in _ANY and not advertise:
        sys.exit(f"mercast kafka: --host {host} is no address to come to: name one with --advertise, as host:port")
    if port and in_use(f"{host}:{port}"):
        sys.exit(f"mercast kafka: port {port} is in use; choose another with --port, or 0 for any free port")
    try:
        with (
            interruptible(),
            Kafka(port, data and data.absolute(), host=host, advertise=advertise, tell=_tell) as running,
        ):
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
