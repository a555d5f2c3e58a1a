"""The command: the demo from its beginning to its end."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGUSR1
from time import sleep, time
from typing import NoReturn

from rich.console import Console

from mercast.broker.local import NotReady
from mercast.cli.demo import possible
from mercast.cli.demo.ending import Ending
from mercast.cli.demo.fault import kill_an_edge
from mercast.cli.demo.page import Page
from mercast.cli.demo.parts import Part, PartError
from mercast.cli.demo.report import Outcome, Report
from mercast.cli.demo.show import REFRESH, Show
from mercast.cli.demo.stage import BROKERS, CLUSTERS, EDGES, WRITTEN, Setting, Stage
from mercast.cli.demo.story import Story
from mercast.cli.demo.watch import Watch, weigh

LEAST_SECONDS = 5.0
_LAST_PORT = 65_000
_MS = 1_000
_HALF = 0.5
_LOAD_LATE, _LOAD_STOPS = 90.0, 30.0
"""Seconds that the load may take beyond its own, and that it may take to stop."""
_HAS_RESULT = (0, 1)
"""Exit statuses of the load: as promised, or not."""
_SPARK_WITHIN = 30.0
"""Seconds that the load waits for Spark."""
_AFTER = 6.0
"""Seconds that brokers stay after the load: what the audit calls its grace, and a little."""
_WINDOWS = 90.0
"""Seconds that Spark has after the load, to close its last windows; on a machine with nothing else to do it takes some
ten."""
_AUDIT_WITHIN = 900.0


def demo(
    *,
    seconds: float = 120.0,
    rate: float = 200,
    publishers: int = 6,
    subscribers: int = 12,
    filters: int = 10,
    seed: int = 1,
    port: int = 7470,
    report: Path = Path("mercast-demo"),
) -> None:
    """Run all of mercast on this machine for a while: clusters, Kafka, Spark, Locust, dashboard; audit it, and report.

    Three clusters under MERC, each of four brokers with two edges. At half time one edge is killed. Exit status: 0 if
    nothing is missing away from that, and nothing was doubled or undue; else 1. Ctrl-C ends the load early.

    Parameters
    ----------
    seconds
        How long there is load.
    rate
        Stock quotes to publish a second, by all publishers together.
    publishers
        How many.
    subscribers
        How many.
    filters
        Of each subscriber.
    seed
        Seed of filters and quotes.
    port
        Where clients find the first broker; the others' ports follow, and free ones are taken where these are in use.
        0: any that are free, for the page and Kafka too.
    report
        Folder for the report, and all that goes with it.
    """
    _check(seconds=(seconds, LEAST_SECONDS), rate=(rate, 1), publishers=(publishers, 1), subscribers=(subscribers, 1),
           filters=(filters, 1))  # fmt: skip
    if not 0 <= port <= _LAST_PORT:
        _stop(f"--port must be 0 to {_LAST_PORT}")
    setting = Setting(seconds, rate, publishers, subscribers, filters, seed, port, report.absolute())
    console, story = Console(), Story()
    try:
        _make_room(setting.folder)
        with Ending() as ending, Show(console, story) as show:
            outcome = _perform(setting, story, show, ending)
    except (NotReady, PartError, OSError) as error:
        _stop(str(error))
    except KeyboardInterrupt:
        with suppress(OSError):  # there may be no terminal any more
            console.print("stopped")
        raise
    console.print(outcome.text, highlight=False, markup=False, soft_wrap=True)
    sys.exit(0 if outcome.as_promised else 1)


def _perform(setting: Setting, story: Story, show: Show, ending: Ending) -> Outcome:
    found = possible.find(show.tell)
    for sentence in found.missing:
        show.tell(sentence)
    with Stage(setting, found, story, show.tell) as stage, Page(stage.page) as page:
        watch = Watch(stage, page, story, show.tell)
        heading = f"{CLUSTERS} clusters of {BROKERS} brokers under MERC, {EDGES} edges each"
        show.open(heading, page, watch.figures, stage.clusters())
        _await_spark(stage, watch, show)
        with ending.by_ctrl_c():
            _play(setting, stage, page, watch, show, ending)
        _let_settle(stage, watch, show)
        show.close()
        stage.clear()
        audit = _audit(stage, show, story) if found.audit else None
    story.took = story.now
    return Report(setting, found, story, watch.figures, audit).write()


def _play(setting: Setting, stage: Stage, page: Page, watch: Watch, show: Show, ending: Ending) -> None:
    """The load, from its beginning to its end; halfway an edge is killed."""
    story = watch.story
    load = stage.begin()
    until = story.now + setting.seconds + _LOAD_LATE
    while load.status is None:
        watch.look()
        begun = story.load_after
        if ending.early and begun is None:
            raise KeyboardInterrupt  # there is nothing to report
        if ending.early:
            show.tell("enough: the load is ended")
            load.signal(SIGINT)
            load.wait(_LOAD_STOPS)
        elif story.now > until:
            raise PartError(f"mercast load does not end; its log:\n{load.tail()}")
        elif begun is not None and story.killed is None and story.now - begun >= _HALF * setting.seconds:
            load.signal(SIGUSR1)  # it has no client at an edge, and would not know of the fault
            killed = kill_an_edge(stage.mesh, page, story)
            show.tell(f"broker {killed.broker} is killed (SIGKILL), an edge of {killed.cluster}")
        show.look(f"load for {setting.seconds:g} s")
        sleep(REFRESH)
    if load.status not in _HAS_RESULT or not (setting.folder / "load.json").exists():
        raise PartError(f"mercast load has ended with status {load.status} and no result; its log:\n{load.tail()}")
    show.tell("the load has ended")


def _await_spark(stage: Stage, watch: Watch, show: Show) -> None:
    """To compile what it does, Spark takes all that there is of two processors: beside the load it would come late."""
    _watch_while(lambda passed: passed < _SPARK_WITHIN and stage.spark_is_starting, "Spark is starting", watch, show)


def _let_settle(stage: Stage, watch: Watch, show: Show) -> None:
    """Until the audit can judge the last event, and Spark has closed the windows with load."""
    ended = time() * _MS

    def is_behind() -> bool:
        newest = watch.figures.newest()
        return stage.spark is not None and (newest is None or newest["end"] < ended)

    _watch_while(
        lambda passed: passed < _AFTER or (passed < _WINDOWS and is_behind()),
        "the last events and windows",
        watch,
        show,
    )


def _watch_while(holds: Callable[[float], bool], doing: str, watch: Watch, show: Show) -> None:
    """It is given the seconds that have passed."""
    since = watch.story.now
    while holds(watch.story.now - since):
        watch.look()
        show.look(doing)
        sleep(REFRESH)


def _audit(stage: Stage, show: Show, story: Story) -> Part:
    """By Spark, over the taps; whether it went well says its status."""
    show.tell(f"everything {'but Kafka ' if stage.kafka else ''}is stopped; Spark audits every delivery")
    until = story.now + _AUDIT_WITHIN
    with show.busy("auditing"):
        audit = stage.start_audit()
        while audit.status is None:
            story.remember(weigh(stage))
            if story.now > until:
                raise PartError(f"mercast audit does not end; its log:\n{audit.tail()}")
            sleep(REFRESH)
    return audit


def _make_room(folder: Path) -> None:
    """What the last run has left there would be taken for this one's. What others have there is theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in WRITTEN:
        (folder / name).unlink(missing_ok=True)


def _check(**given: tuple[float, float]) -> None:
    for name, (value, least) in given.items():
        if not least <= value < float("inf"):
            _stop(f"--{name} must be at least {least:g}")


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast demo: {reason}")
