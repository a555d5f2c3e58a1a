"""`mercast load`: publishers and subscribers by Locust, and what was due beside what came."""

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, NoReturn

from mercast.client.address import addresses
from mercast.client.blocking import connect
from mercast.client.errors import MercastError, NoBroker
from mercast.processes import free_addresses, in_use

_COULD_NOT = 2
"""Exit status: there is no result."""
_WEB_PORT, _LAST_PORT = 8089, 65_535
_WORKERS_WITHIN = 60
_LOCUST = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from locust.main import main; main()"
"""It takes a second to import: Ctrl-C meanwhile ends it without a word."""
_SECONDS, _RAMP_SECONDS = 30.0, 120.0


def load(
    *,
    brokers: str = "127.0.0.1:7470",
    workload: Literal["quotes", "zipf"] = "quotes",
    quotes: Path | None = None,
    shape: Literal["steady", "ramp", "burst", "churn", "flash"] = "steady",
    publishers: int = 4,
    subscribers: int = 20,
    filters: int = 10,
    crowd: int | None = None,
    rate: float = 500,
    seconds: float | None = None,
    step: float = 3.0,
    steeper: float = 1.3,
    seed: int = 1,
    patience: float = 5.0,
    around_faults: float = 5.0,
    csv: str | None = None,
    html: Path | None = None,
    json: Path | None = None,
    web: bool = False,
    web_port: int = _WEB_PORT,
    workers: int = 0,
) -> None:
    """Publish and subscribe by Locust, and compare what has come with what was due.

    Exit status: 0 if nothing is missing, doubled or undue away from faults, 1 if something is, 2 if it could not run.
    Ctrl-C ends it early, with the same summary. SIGUSR1 says that a fault is being made now (docs/load.md).

    Parameters
    ----------
    brokers
        Addresses of brokers, with commas. Users are spread over them, and go to another one when theirs is lost.
    workload
        Stock quotes, or the fifteen attributes by Zipf's law of the papers.
    quotes
        A CSV file of real quotes: columns symbol, price, volume, and whatever else.
    shape
        steady; ramp: faster and faster until latency runs away, to find the knee; burst: now and then five times the
        rate; churn: subscriptions come and go; flash: a crowd of subscribers comes at once.
    publishers
        How many.
    subscribers
        How many, each with a connection of its own.
    filters
        Of each subscriber; with churn, half of them stand at a time.
    crowd
        How many subscribers come at once, with the shape flash; as many as there are already, unless told.
    rate
        Events a second, by all publishers together; of a ramp, the first.
    seconds
        How long to publish: 30, of a ramp at most 120, unless told.
    step
        Seconds of a ramp's step.
    steeper
        By how much a ramp's rate is multiplied from step to step.
    seed
        The same one gives the same filters and events.
    patience
        Seconds after which a delivery that has not come is a failure in Locust's statistics.
    around_faults
        Seconds before and after a fault (a user's connection was lost, or SIGUSR1) in which events may be lost.
    csv
        Locust's statistics as CSV, in files whose names begin with this.
    html
        Locust's report, to this file.
    json
        What came of it, to this file.
    web
        Locust's own page instead, at http://127.0.0.1:8089/: the test is started there, and may be started again.
    web_port
        Of that page.
    workers
        Processes that share the work; 0 for one that does all.
    """
    seconds = seconds if seconds is not None else _RAMP_SECONDS if shape == "ramp" else _SECONDS
    crowd = 0 if shape != "flash" else subscribers if crowd is None else crowd
    _check_asked(
        workers,
        SimpleNamespace(
            publishers=publishers, subscribers=subscribers, filters=filters, crowd=crowd, shape=shape, rate=rate,
            seconds=seconds, patience=patience, around_faults=around_faults, step=step, steeper=steeper,
            workload=workload, quotes=quotes,
        ),
    )  # fmt: skip
    _check_page(web, web_port)
    _check_places(json, html, Path(csv) if csv else None)
    _check_brokers(brokers)

    flags: dict[str, object] = {
        "--brokers": brokers, "--workload": workload, "--shape": shape, "--rate": rate, "--seconds": seconds,
        "--publishers": publishers, "--subscribers": subscribers, "--filters": filters, "--seed": seed,
        "--step": step, "--steeper": steeper, "--patience": patience, "--around-faults": around_faults,
        "--crowd": crowd,
        "--quotes": quotes, "--result": json, "--csv": csv, "--html": html,
    }  # fmt: skip
    arguments = [f"{flag}={value}" for flag, value in flags.items() if value is not None]
    arguments += ["--plainly", "--loglevel=WARNING"]
    arguments += ["--web-host=127.0.0.1", f"--web-port={web_port}"] if web else ["--headless", "--only-summary"]
    if workers:
        port = free_addresses(1)[0].rpartition(":")[2]
        arguments += [f"--processes={workers}", "--master-bind-host=127.0.0.1", f"--master-bind-port={port}"]
        arguments += ["--master-host=127.0.0.1", f"--master-port={port}"]
        arguments += [f"--expect-workers-max-wait={_WORKERS_WITHIN}"]
    if web:
        sys.stderr.write(f"Locust's page: http://127.0.0.1:{web_port}/   (Ctrl-C ends it)\n")
        sys.stderr.flush()
    _become_locust(arguments)


def _become_locust(arguments: list[str]) -> NoReturn:
    """In this very process, so that signals and the exit status are its own; anew, since gevent has to come first."""
    if importlib.util.find_spec("locust") is None:
        raise ImportError("Locust is not installed", name="locust")
    import mercast_loadtest.load

    place = Path(mercast_loadtest.load.__file__).parent / "locustfile.py"
    os.execv(sys.executable, [sys.executable, "-c", _LOCUST, f"--locustfile={place}", *arguments])


def _check_asked(workers: int, asked: SimpleNamespace) -> None:
    from mercast_loadtest.load.checks import problem

    if workers < 0:
        _stop(f"--workers {workers}: it must be 0 or more")
    if found := problem(asked):
        _stop(found)


def _check_page(web: bool, port: int) -> None:
    if not 0 < port <= _LAST_PORT:
        _stop(f"--web-port {port}: choose 1 to {_LAST_PORT}")
    if web and in_use(f"127.0.0.1:{port}"):
        _stop(f"port {port} is in use; choose another with --web-port")


def _check_places(json: Path | None, html: Path | None, csv: Path | None) -> None:
    """What is to be written at the end: it would be lost."""
    for place in (json, html, csv):
        if place is not None and not place.absolute().parent.is_dir():
            _stop(f"{place}: there is no folder {place.absolute().parent}")
    for file in (json, html):
        if file is not None and file.is_dir():
            _stop(f"{file}: this is a folder; name a file")


def _check_brokers(brokers: str) -> None:
    """Is there one, and does it let us in? Better said now than by every user."""
    try:
        for one in brokers.split(","):
            addresses(one)
        with connect(brokers.split(","), name="mercast-load"):
            pass
    except NoBroker as error:
        _stop(f"no broker answers at {error.where}: {error.why}; start some with: mercast local 3")
    except MercastError as error:
        _stop(str(error))


def _stop(reason: str) -> NoReturn:
    sys.stderr.write(f"mercast load: {reason}\n")
    sys.exit(_COULD_NOT)
