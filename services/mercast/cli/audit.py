"""`mercast audit`: who should have got what, found out anew from the taps by Spark, beside who did."""

import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mercast.cli.local import interruptible
from mercast.cli.with_spark import pairs, started, tell
from mercast_streaming.audit.evaluate import SETTINGS
from mercast_streaming.audit.job import Setting
from mercast_streaming.audit.job import audit as run_audit
from mercast_streaming.audit.page import page
from mercast_streaming.audit.reading import from_files, from_kafka
from mercast_streaming.audit.report import CLEAN, WRONG, Report, headline, steps, summary

Pairs = Annotated[list[str], Parameter(negative="")]
_SHOWN = 20
"""Wrong deliveries on the terminal; files have more."""
_FAILED = 3
"""Exit status: there is no result."""


def audit(
    *,
    source: Annotated[str, Parameter(name=["--from"])] = "kafka://127.0.0.1:9092",
    prefix: str = "mercast",
    since: str | None = None,
    until: str | None = None,
    grace: float = 5.0,
    around_faults: float | None = None,
    across_clusters: bool = True,
    attributes: str | None = None,
    most_unknown: float = 0.01,
    named: int = 1_000,
    json: Path | None = None,
    html: Path | None = None,
    master: str = "local[2]",
    memory: str = "2g",
    conf: Pairs = [],  # noqa: B006 - never changed
    kafka_conf: Pairs = [],  # noqa: B006
) -> None:
    """Check every delivery that the taps tell of: was it due, did it come, and once?

    Exit status: 0 if all is right, 1 if something is wrong, 2 if too much is not known, 3 if the audit failed.

    Parameters
    ----------
    source
        Where the taps are: kafka://host:9092, or a folder (as a path or file://…) that brokers write them to; a folder
        that ends in .parquet has messages with the columns topic, partition and value.
    prefix
        Of the topics in Kafka: PREFIX.taps and PREFIX.control are read.
    since
        Judge events published from then on, such as 2026-03-01T12:00 (UTC if it names no zone).
    until
        Judge events published before that.
    grace
        Seconds that an event may be on its way, and that news may take where nothing says that it has settled.
    around_faults
        Seconds before and after the end of a link in which events need not arrive. Without it, all must.
    across_clusters
        Whether events are due in other clusters: not if these are not joined, or edges have rules.
    attributes
        The attributes that the taps hold, with commas, if they do not hold all.
    most_unknown
        The share of what is not known that is too much.
    named
        How many wrong deliveries are named at most. All are counted.
    json
        Write the report to this file.
    html
        Write the report to this file, as a page to look at.
    master
        Spark's master.
    memory
        That Spark may use on this machine.
    conf
        A setting of Spark, as KEY=VALUE. May be given again.
    kafka_conf
        A setting of Kafka's clients, such as security.protocol=SSL. May be given again.
    """
    if not (0 <= grace < inf and 0 <= (around_faults or 0) < inf and named >= 1 and 0 <= most_unknown <= 1):
        _stop("--grace and --around-faults are not negative, --named is at least 1, --most-unknown from 0 to 1")
    for place in (json, html):
        if place is not None and (place.is_dir() or not place.absolute().parent.is_dir()):
            _stop(f"{place}: give a file in a folder that is there")
    setting = Setting(
        since=_micros("--since", since), until=_micros("--until", until), grace=grace, around_faults=around_faults,
        across=across_clusters, held=None if attributes is None else attributes.split(","), named=named,
    )  # fmt: skip
    if setting.since is not None and setting.until is not None and setting.since >= setting.until:
        _stop(f"--since {since} is not before --until {until}")
    options = SETTINGS | {"spark.driver.memory": memory} | pairs("--conf", conf, _stop)
    report = _run(source, prefix, setting, master, options, pairs("--kafka-conf", kafka_conf, _stop))
    verdict = report.exit_code(most_unknown)
    _show(report, verdict)
    for place, written in ((json, report.to_json()), (html, page(report, verdict))):
        try:
            if place is not None:
                place.write_text(written)
        except OSError as error:
            _stop(f"{place}: {error.strerror}")
    sys.exit(verdict)


def _run(
    source: str, prefix: str, setting: Setting, master: str, options: dict[str, str], kafka_conf: dict[str, str]
) -> Report:
    server = source.removeprefix("kafka://").rstrip("/")
    folder = source.removeprefix("file://")
    in_kafka = source.startswith("kafka://")
    if not in_kafka and "://" not in folder and not Path(folder).exists():
        _stop(f"{folder}: there is no such folder")
    began = time.monotonic()
    try:
        with ExitStack() as ends:
            ends.enter_context(interruptible())
            spark = started(master, kafka=in_kafka, conf=options, name="mercast audit")
            ends.callback(spark.stop)
            tell("reading")
            taps = from_kafka(spark, server, prefix, kafka_conf) if in_kafka else from_files(spark, folder)
            report = run_audit(spark, taps, setting)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # whatever it is, Python's own exit status would say that a delivery was wrong
        said = [line for line in str(error).splitlines() if not line.startswith("\t")]  # not where in Java it was
        _stop("\n".join(said)[:2000] or repr(error))
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _show(report: Report, verdict: int) -> None:
    console = Console()
    table = Table(box=None, show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    for label, what in summary(report):
        table.add_row(label, what)
    console.print(table)
    for one in report.named[:_SHOWN]:
        console.print(Text(headline(one), style="red"))
        for step in steps(one):
            console.print(Text(f"    {step}"))
    if len(report.named) > _SHOWN:
        console.print(f"… {len(report.named) - _SHOWN:,} more; --json and --html have them")
    for one_filter in report.unreadable_filters[:_SHOWN]:
        console.print(Text(one_filter, style="yellow"))
    said = {CLEAN: "[green]clean[/]", WRONG: "[red]wrong[/]"}.get(verdict, "[yellow]too much is not known[/]")
    console.print(f"{said}, after {report.seconds} s")


def _micros(flag: str, given: str | None) -> int | None:
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        _stop(f"{flag} {given}: give it as 2026-03-01T12:00:00")
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)


def _stop(reason: str) -> NoReturn:
    sys.stderr.write(f"mercast audit: {reason}\n")
    sys.exit(_FAILED)
