"""`mercast bench`: speed as a ratio against a yardstick in the same run."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

app = App(name="bench", help="Measure speed, beside a yardstick in the same run.")


@app.command
def matching(
    *,
    filters: int = 10_000,
    events: int = 2_000,
    workload: Literal["uniform", "stock", "zipf"] = "uniform",
    attributes: int = 20,
    predicates: int = 10,
    width: float = 0.5,
    batch: int = 128,
    loop: Literal["auto", "numba", "numpy"] = "auto",
    seed: int = 1,
    json: Path | None = None,
) -> None:
    """Measure the matching index beside a plain numpy bitmap AND.

    Parameters
    ----------
    filters
        Filters in the index.
    events
        Events to match.
    workload
        uniform: ranges on floats in 0..1; stock: symbol and price range; zipf: the papers' 15 attributes.
    attributes
        Attributes of the uniform workload.
    predicates
        Attributes that each filter of the uniform workload asks about.
    width
        Width of its ranges.
    batch
        Events per call of match_many.
    loop
        The inner loop: compiled by numba, in plain numpy, or numba if it is installed.
    seed
        Seed of filters and events.
    json
        Write the result to this file too.
    """
    from mercast.workloads import Stock, Uniform, Workload, Zipf
    from mercast_loadtest.bench.matching import measure
    from mercast_loadtest.bench.report import print_result, write_json

    _check_place(json)
    if min(filters, events, batch) < 1:
        sys.exit("mercast bench: filters, events and batch must be at least 1")
    try:
        uniform = Uniform(attributes, predicates, width)
    except ValueError as error:
        sys.exit(f"mercast bench: {error}")
    workloads: dict[str, Workload] = {"uniform": uniform, "stock": Stock(), "zipf": Zipf()}
    compiled = {"auto": None, "numba": True, "numpy": False}[loop]
    result = measure(workloads[workload], filters=filters, events=events, batch=batch, seed=seed, compiled=compiled)
    name = f"{workload}, {filters:,} filters"
    print_result(name, result)
    if json is not None:
        write_json(json, asdict(result) | {"name": name, "seed": seed})


@app.command
def simulator(*, brokers: int = 700, events: int = 10_000, seed: int = 1, json: Path | None = None) -> None:
    """Measure the simulator: D-DBR events from one broker to all others, beside splitting their lists alone.

    Parameters
    ----------
    brokers
        Brokers of the overlay, of mean degree 6.
    events
        Events to publish.
    seed
        Seed of the overlay.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.report import print_simulator, write_json
    from mercast_loadtest.bench.simulator import measure

    _check_place(json)
    if brokers < 8 or events < 1:  # noqa: PLR2004 - fewer cannot have a mean degree of 6
        sys.exit("mercast bench: there must be at least 8 brokers and 1 event")
    result = measure(brokers, events, seed)
    print_simulator(result)
    if json is not None:
        write_json(json, asdict(result) | {"seed": seed})


@app.command
def chain(
    *,
    subscriptions: int = 1_000,
    runs: int = 5,
    seconds: float = 3.0,
    rate: float = 10_000.0,
    seed: int = 1,
    json: Path | None = None,
) -> None:
    """Measure three live brokers in a line, end to end, beside a bare chain of three processes.

    Parameters
    ----------
    subscriptions
        Stock subscriptions of one client at the far end.
    runs
        Runs of brokers and bare chain in turn; medians count.
    seconds
        Seconds of each run.
    rate
        Events a second at which latency is measured.
    seed
        Seed of subscriptions and events.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.chain import measure
    from mercast_loadtest.bench.live import print_chain

    _check_place(json)
    _check_live(subscriptions=subscriptions, runs=runs, seconds=seconds, rate=rate)
    result = measure(subscriptions=subscriptions, runs=runs, seconds=seconds, rate=rate, seed=seed)
    print_chain(result)
    _write(json, result, seed)


@app.command
def taps(
    *,
    subscriptions: int = 1_000,
    runs: int = 6,
    seconds: float = 2.0,
    chains: int = 2,
    compression: Literal["none", "gzip", "lz4"] = "none",
    seed: int = 1,
    json: Path | None = None,
) -> None:
    """Measure what taps to Kafka cost three live brokers in a line, beside the same without taps.

    Parameters
    ----------
    subscriptions
        Stock subscriptions of one client at the far end.
    runs
        Rounds in which each chain works: without taps, the same again, with rows of all events and of a
        tenth; means count.
    seconds
        Seconds of each run.
    chains
        Chains of each of these kinds.
    compression
        Of messages to Kafka.
    seed
        Seed of subscriptions and events.
    json
        Write the result to this file too.
    """
    from mercast.kafka import KafkaError
    from mercast_loadtest.bench.live import print_taps
    from mercast_loadtest.bench.taps import measure

    _check_place(json)
    _check_live(subscriptions=subscriptions, runs=runs, seconds=seconds, chains=chains)
    try:
        result = measure(
            subscriptions=subscriptions, runs=runs, seconds=seconds, seed=seed, chains=chains, compression=compression
        )
    except KafkaError as error:
        sys.exit(f"mercast bench: {error}")
    print_taps(result)
    _write(json, result, seed)


@app.command
def audit(
    *, subscriptions: int = 1_000, events: int = 1_000_000, memory: str = "2g", seed: int = 1, json: Path | None = None
) -> None:
    """Measure how long the audit takes, of invented taps in files.

    Parameters
    ----------
    subscriptions
        Of clients at five brokers, each with a filter of its own.
    events
        Published at all of them.
    memory
        That Spark may use.
    seed
        Seed of both.
    json
        Write the result to this file too.
    """
    from mercast.kafka import KafkaError
    from mercast_loadtest.bench.audit import measure
    from mercast_loadtest.bench.report import print_audit
    from mercast_streaming.spark import SparkError

    _check_place(json)
    if subscriptions < 2 or events < 1:  # noqa: PLR2004 - a client has two
        sys.exit("mercast bench: there must be at least two subscriptions and an event")
    try:
        result = measure(subscriptions=subscriptions, events=events, seed=seed, memory=memory, tell=_tell)
    except (KafkaError, SparkError) as error:
        sys.exit(f"mercast bench: {error}")
    print_audit(result)
    _write(json, result, seed)
    if not result.exact:
        sys.exit("mercast bench: the audit found something else than what had gone wrong")


@app.command
def forward(
    *, runs: int = 5, seconds: float = 3.0, rate: float = 10_000.0, seed: int = 1, json: Path | None = None
) -> None:
    """Measure a live D-DBR broker that only passes events on, beside a bare forwarder.

    Parameters
    ----------
    runs
        Runs of broker and forwarder in turn; medians count.
    seconds
        Seconds of each run.
    rate
        Events a second.
    seed
        Seed of the events and of their destinations.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.forward import measure
    from mercast_loadtest.bench.live import print_forward

    _check_place(json)
    _check_live(runs=runs, seconds=seconds, rate=rate)
    result = measure(runs=runs, seconds=seconds, rate=rate, seed=seed)
    print_forward(result)
    _write(json, result, seed)


@app.command
def hop(
    *, subscriptions: int = 1_000, runs: int = 5, seconds: float = 3.0, seed: int = 1, json: Path | None = None
) -> None:
    """Measure one live broker: publish, match, deliver, beside nats-server.

    Parameters
    ----------
    subscriptions
        Stock subscriptions of one client.
    runs
        Runs of broker and nats-server in turn; medians count.
    seconds
        Seconds of each run.
    seed
        Seed of subscriptions and events.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.hop import measure
    from mercast_loadtest.bench.live import print_hop

    _check_place(json)
    _check_live(subscriptions=subscriptions, runs=runs, seconds=seconds)
    result = measure(subscriptions=subscriptions, runs=runs, seconds=seconds, seed=seed)
    print_hop(result)
    _write(json, result, seed)


@app.command
def line(
    *, brokers: int = 10, subscriptions: int = 2_000, seconds: float = 5.0, seed: int = 1, json: Path | None = None
) -> None:
    """Measure D-DBR and MERC beside FBR on a line of live brokers, by scan and by index.

    Parameters
    ----------
    brokers
        Brokers of the line.
    subscriptions
        Stock subscriptions of one client at the far end.
    seconds
        Seconds of each run.
    seed
        Seed of subscriptions and events.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.line import measure
    from mercast_loadtest.bench.live import print_line

    _check_place(json)
    _check_live(brokers=brokers - 1, subscriptions=subscriptions, seconds=seconds)
    result = measure(brokers=brokers, subscriptions=subscriptions, seconds=seconds, seed=seed)
    print_line(result)
    _write(json, result, seed)


@app.command
def idle(*, connections: int = 10_000, json: Path | None = None) -> None:
    """Measure what idle connections cost a live broker.

    Parameters
    ----------
    connections
        Clients that connect and do nothing.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.idle import LEAST, measure
    from mercast_loadtest.bench.live import print_idle

    _check_place(json)
    if connections < LEAST:
        sys.exit(f"mercast bench: fewer than {LEAST} connections do not show in a broker's memory")
    result = measure(connections)
    print_idle(result)
    _write(json, result)


@app.command
def crowd(
    *,
    clients: int = 10_000,
    publishers: int = 1_000,
    runs: int = 3,
    seconds: float = 5.0,
    rate: float = 5_000.0,
    seed: int = 1,
    json: Path | None = None,
) -> None:
    """Measure one live broker with a crowd of clients, beside one with the same load on two connections.

    Parameters
    ----------
    clients
        Clients that are connected.
    publishers
        How many of them publish; each of the others has a filter, and every event is for one of them.
    runs
        Runs of both brokers in turn; medians count.
    seconds
        Seconds of each run.
    rate
        Events a second, by all publishers together, at which latency is measured.
    seed
        Seed of the events.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.crowd import TooFewFiles, measure
    from mercast_loadtest.bench.live import print_crowd

    _check_place(json)
    _check_live(publishers=publishers, runs=runs, seconds=seconds, rate=rate)
    if clients <= publishers:
        sys.exit("mercast bench: there must be more clients than publishers: the others subscribe")
    try:
        result = measure(clients=clients, publishers=publishers, runs=runs, seconds=seconds, rate=rate, seed=seed)
    except TooFewFiles as error:
        sys.exit(f"mercast bench: {error}")
    print_crowd(result)
    _write(json, result, seed)


@app.command
def metrics(
    *,
    rows: int = 2_000_000,
    runs: int = 5,
    seconds: int = 40,
    rate: int = 1_000,
    master: str = "local[2]",
    store: Literal["hdfs", "rocksdb"] = "hdfs",
    seed: int = 1,
    json: Path | None = None,
) -> None:
    """Measure the live metrics of taps in a Kafka of its own, beside a bare count of rows by window.

    Parameters
    ----------
    rows
        Tap rows in the topic, about so many.
    runs
        Runs of metrics and count in turn; medians count.
    seconds
        Seconds of taps that come live.
    rate
        Events a second in these, of five to six rows each.
    master
        Spark's master.
    store
        Where Spark keeps its state.
    seed
        Seed of the taps.
    json
        Write the result to this file too.
    """
    from mercast_loadtest.bench.live import print_metrics
    from mercast_loadtest.bench.metrics import measure

    _check_place(json)
    _check_live(rows=rows - 9_999, runs=runs, seconds=seconds - 24, rate=rate)
    result = measure(rows=rows, runs=runs, seconds=seconds, rate=rate, master=master, store=store, seed=seed)
    print_metrics(result)
    _write(json, result, seed)


@app.command
def all(*, json: Path | None = None, largest: int = 1_000_000) -> None:
    """Every bench that the docs quote, one process each (several minutes).

    Parameters
    ----------
    json
        Write the results to this file too.
    largest
        Leave out indexes of more filters than this.
    """
    from mercast_loadtest.bench.report import print_table, write_json
    from mercast_loadtest.bench.suite import run_all

    _check_place(json)
    results = run_all(largest)
    print_table(results)
    if json is not None:
        write_json(json, results)


def _check_live(**figures: float) -> None:
    for name, value in figures.items():
        if value <= 0:
            sys.exit(f"mercast bench: too little for a measurement: {name}")


def _write(file: Path | None, result: "DataclassInstance", seed: int | None = None) -> None:
    from mercast_loadtest.bench.report import write_json

    if file is not None:
        write_json(file, asdict(result) | ({} if seed is None else {"seed": seed}))


def _check_place(file: Path | None) -> None:
    """Better now than when the work is done."""
    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        sys.exit(f"mercast bench: {file} cannot be written: name a file in a folder that there is")


def _tell(what: str) -> None:
    sys.stderr.write(f"{what} …\n")
