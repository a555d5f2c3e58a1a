"""`mercast compare`: the same seeded load over several strategies, each on fresh brokers, by Spark's figures."""

import asyncio
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep, time
from typing import Any, Literal, NoReturn

from pyspark.errors import PySparkException
from rich.console import Console
from rich.table import Table

from mercast.broker.local import NotReady
from mercast.cli.local import interruptible
from mercast.cli.progress import Steps
from mercast.cli.with_spark import started
from mercast.kafka import Kafka, KafkaError
from mercast.matching import prepare
from mercast.routing.strategies import strategy_named
from mercast.taps.settings import TapSettings
from mercast.taps.topics import make_topics
from mercast_loadtest.compare import report
from mercast_loadtest.compare.figures import Part
from mercast_loadtest.compare.rounds import LoadError, Setting, Turn, brokers_of, take
from mercast_streaming import live
from mercast_streaming.figures import Figures
from mercast_streaming.spark import SparkError

_COULD_NOT, _INTERRUPTED = 2, 130
"""Exit status: there is no result."""
_WINDOW, _WATERMARK = 1, 5
"""Seconds: a window must fit into a step of a ramp."""
_PAUSE = 2.0 * _WINDOW
_SHIPPED = 5.0
"""Seconds within which rows, and the ticks after them, are surely in Kafka."""
_FIGURES_WITHIN = 180
_TOLD = 1_000
_KAFKA, _SPARK = "Kafka", "Spark"
_LEAST_BROKERS = 2


def compare(
    *,
    strategies: str = "ddbr,fbr,merc",
    brokers: int = 6,
    clusters: int = 2,
    workload: Literal["quotes", "zipf"] = "quotes",
    publishers: int = 4,
    subscribers: int = 20,
    filters: int = 5,
    rate: float | None = None,
    seconds: float | None = None,
    ramp_from: float = 1_000,
    ramp_seconds: float | None = None,
    seed: int = 1,
    quick: bool = False,
    json: Path | None = None,
    html: Path | None = None,
) -> None:
    """Run the same seeded load over each strategy on fresh brokers: a steady one, then a ramp to its knee.

    Kafka, the brokers and Spark run on this machine meanwhile. Exit status: 0 if nothing was missing, doubled or
    undue, 1 if something was, 2 if it could not run.

    Parameters
    ----------
    strategies
        Which, with commas.
    brokers
        How many, for each strategy.
    clusters
        In how many clusters MERC has them; other strategies know one only.
    workload
        As of `mercast load`; so are publishers, subscribers and filters.
    rate
        Events a second of the steady load: 500, unless told.
    seconds
        How long it goes on: 20, quickly 6.
    ramp_from
        Events a second at which the ramp begins.
    ramp_seconds
        How long the ramp may take: 60, quickly 12.
    seed
        Of filters and events.
    quick
        Shorter, and with coarser steps.
    json
        Write all figures to this file.
    html
        Write them to this file, as a page with plots.
    """
    names = _names(strategies)
    _check(brokers, clusters, (publishers, subscribers, filters), names)
    for place in (json, html):
        if place is not None and not place.absolute().parent.is_dir():
            _stop(f"{place}: there is no folder {place.absolute().parent}")
    rate = 500.0 if rate is None else rate
    seconds = (6.0 if quick else 20.0) if seconds is None else seconds
    ramp_seconds = (12.0 if quick else 60.0) if ramp_seconds is None else ramp_seconds
    step, steeper = (2.5, 1.6) if quick else (3.0, 1.3)  # a step has room for a whole window
    _check_numbers({"--rate": rate, "--seconds": seconds, "--ramp-from": ramp_from}, ramp_seconds, step)
    load = {
        "workload": workload,
        "publishers": publishers,
        "subscribers": subscribers,
        "filters": filters,
        "seed": seed,
    }
    ramp = {"shape": "ramp", "rate": ramp_from, "step": step, "steeper": steeper}
    setting = Setting(
        brokers, clusters, _flags(load), _flags({"rate": rate, "seconds": seconds}),
        _flags(ramp | {"seconds": ramp_seconds}),
    )  # fmt: skip
    entries = _run(names, setting)
    about = (
        f"{brokers} brokers, {publishers} publishers, {subscribers} subscribers with {filters} filters each, "
        f"{workload}, seed {seed}; steady at {rate:g} events/s for {seconds:g} s, then a ramp"
    )
    if json is not None:
        _write_json(json, {"about": about, "seed": seed, "strategies": entries})
    if html is not None:
        html.write_text(report.html(entries, about), encoding="utf-8")
    _show(entries, about)
    sys.exit(0 if report.kept(entries) else 1)


# -- the comparison ----------------------------------------------------------------------------------------------------


def _run(names: list[str], setting: Setting) -> dict[str, dict[str, Any]]:
    try:
        with interruptible(), ExitStack() as ends:
            return _compare(names, setting, ends)
    except (KafkaError, SparkError, NotReady, LoadError, OSError) as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # what ends is disturbed as well
            sys.exit(_INTERRUPTED)
        _stop(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _compare(names: list[str], setting: Setting, ends: ExitStack) -> dict[str, dict[str, Any]]:
    """Spark comes last, and reads all taps at once: it would take the processor from what is measured."""
    steps = ends.enter_context(Steps([_KAFKA, *names, _SPARK]))
    folder = Path(ends.enter_context(TemporaryDirectory(prefix="mercast-compare-")))
    turns: list[Turn] = []
    rows: list[Figures] = []
    kafka, mesh = "", ExitStack()
    for name in steps:
        if name == _KAFKA:
            kafka = _start_kafka(steps.doing, ends)
            steps.done(f"at {kafka}")
        elif name == _SPARK:
            with mesh:  # ticks of the last brokers move the windows on
                rows = _figures_of_all(kafka, folder, turns[-1])
            steps.done(f"{len(rows):,} figures of brokers and clusters, by second")
        else:
            mesh.close()
            steps.doing("starting brokers")
            brokers = mesh.enter_context(brokers_of(name, setting, f"kafka://{kafka}"))
            ends.push(mesh)
            turns.append(take(name, brokers, setting, _PAUSE, folder, steps.doing))
            steps.done(report.knee(turns[-1].ramp["knee"]))
    return {
        turn.strategy: report.entry(turn, [row for row in rows if row["strategy"] == turn.strategy]) for turn in turns
    }


def _start_kafka(tell: Callable[[str], None], ends: ExitStack) -> str:
    prepare()  # once and for all, not by every broker at the same time
    kafka = ends.enter_context(Kafka(tell=tell)).address
    asyncio.run(make_topics(TapSettings(where=f"kafka://{kafka}")))
    return kafka


def _figures_of_all(kafka: str, folder: Path, last: Turn) -> list[Figures]:
    rows: list[Figures] = []
    spark = started("local[2]", conf=live.SPARK, name="mercast compare")
    try:
        closed = Part.of(last.ramp).ended.timestamp() + _WINDOW + _WATERMARK + _SHIPPED
        sleep(max(0.0, closed - time()))
        setting = live.Setting(
            kafka=kafka, checkpoint=str(folder / "checkpoint"), window=_WINDOW, watermark=_WATERMARK,
            beginning="earliest", once=True,
        )  # fmt: skip
        query = live.start(spark, setting, rows.extend)
        if not query.awaitTermination(_FIGURES_WITHIN):
            raise SparkError(f"Spark has not read all taps after {_FIGURES_WITHIN} s")
    except PySparkException as error:
        raise SparkError(str(error)[:_TOLD]) from None
    finally:
        with suppress(Exception):  # Java hears Ctrl-C as well, and may have gone before us
            spark.stop()
    return rows


# -- what it is told, and what it tells --------------------------------------------------------------------------------


def _names(strategies: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in strategies.split(",") if name.strip()))
    if not names:
        _stop("--strategies: name some, such as ddbr,fbr,merc")
    for name in names:
        try:
            strategy_named(name)
        except ValueError as error:
            _stop(str(error))
    return names


def _check(brokers: int, clusters: int, load: tuple[int, ...], names: list[str]) -> None:
    if brokers < _LEAST_BROKERS or min(load) < 1:
        _stop("there must be two brokers or more, and at least one publisher, subscriber and filter")
    if clusters < 1 or ("merc" in names and brokers % clusters):
        _stop(f"--brokers {brokers} --clusters {clusters}: clusters must be as large as each other")


def _check_numbers(given: dict[str, float], ramp_seconds: float, step: float) -> None:
    for flag, number in given.items():
        if not 0 < number < math.inf:
            _stop(f"{flag} {number:g}: it must be above 0")
    if not step < ramp_seconds < math.inf:
        _stop(f"--ramp-seconds {ramp_seconds:g}: a ramp has steps of {step:g} s, and must be longer than one")


def _flags(given: dict[str, Any]) -> list[str]:
    return [part for name, value in given.items() for part in (f"--{name}", str(value))]


def _write_json(place: Path, found: dict[str, Any]) -> None:
    import orjson

    place.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _show(entries: dict[str, dict[str, Any]], about: str) -> None:
    console = Console(highlight=False)
    table = Table(box=None)
    table.add_column("", style="dim")
    for name in entries:
        table.add_column(name, justify="right")
    for label, written in report.cells(entries):
        table.add_row(label, *(f"[bold]{text}[/]" if best else text for text, best in written))
    console.print(about, markup=False)
    console.print(table)
    for name, one in entries.items():
        console.print(f"{name}: {report.knee(one['knee'])}", markup=False)


def _stop(reason: str) -> NoReturn:
    sys.stderr.write(f"mercast compare: {reason}\n")
    sys.exit(_COULD_NOT)
