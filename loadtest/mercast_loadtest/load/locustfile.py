"""For Locust: `locust -f` this file, with its own flags beside Locust's (docs/load.md); `mercast load` does so for you.

The process that has the shape (Locust's master, or the only one) has the course of the test and the ledger; others work
for it: what their users note goes to the master, and what is to be published how fast comes from there.
"""

import logging
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import gevent
from locust import LoadTestShape, events, runners, stats
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.runners import STATE_RUNNING, STATE_SPAWNING, MasterRunner, WorkerRunner

from mercast_loadtest.load import show, statistics
from mercast_loadtest.load.checks import problem
from mercast_loadtest.load.course import Course, Orders, Phase
from mercast_loadtest.load.facts import Noted
from mercast_loadtest.load.numbers import Asked, Numbers, answer_with
from mercast_loadtest.load.plan import WORKLOADS, Plan
from mercast_loadtest.load.run import Run
from mercast_loadtest.load.shapes import RAMP, SHAPES, STEEPER, STEP, shape_named
from mercast_loadtest.load.users import Crowd, Publisher, Subscriber

__all__ = ["Crowd", "Publisher", "Subscriber", "Users"]

_FACTS, _ORDERS = "mercast-facts", "mercast-orders"
"""Messages between workers and master."""
_TICK = 0.1
_SEND = 0.25
_LIVE = 1
_WORKERS_REPORT = 0.5
_LINGER = 1.2
"""Locust writes its CSV files once a second, and not once more at the end."""
_SPAWN_RATE = 100
_TAG_BITS = 32
_COULD_NOT = 2
"""Exit status: there is no result."""

runners.WORKER_REPORT_INTERVAL = _WORKERS_REPORT  # statistics of workers to the master
stats.HISTORY_STATS_INTERVAL_SEC = _LIVE  # points in the charts of Locust's report


log = logging.getLogger("mercast.load")


class Current:
    """What is going on in this process."""

    course: ClassVar[Course | None] = None
    greenlets: ClassVar[list[gevent.Greenlet]] = []
    numbers: ClassVar[Numbers] = Numbers()
    asked: ClassVar[Asked]


def _flags(parser: Any) -> None:
    def flag(name: str, default: Any, help: str, **how: Any) -> None:
        parser.add_argument(name, default=default, help=help, **how)

    flag("--brokers", "127.0.0.1:7470", "addresses of brokers, with commas")
    flag("--workload", "quotes", "what is published and asked for", choices=sorted(WORKLOADS))
    flag("--quotes", "", "a CSV file of real quotes, with the columns symbol, price and volume")
    flag("--shape", "steady", "how much is published when", choices=[*SHAPES, RAMP])
    flag("--publishers", 4, "how many", type=int)
    flag("--subscribers", 20, "how many", type=int)
    flag("--filters", 10, "of each subscriber", type=int)
    flag("--crowd", 0, "subscribers that come at once (shape flash)", type=int)
    flag("--rate", 500.0, "events a second, by all publishers; of a ramp, the first", type=float)
    flag("--seconds", 30.0, "how long to publish; of a ramp, at most", type=float)
    flag("--step", STEP, "seconds of a ramp's step", type=float)
    flag("--steeper", STEEPER, "by how much a ramp's rate is multiplied from step to step", type=float)
    flag("--seed", 1, "the same one gives the same filters and events", type=int)
    flag("--patience", 5.0, "seconds after which a delivery that has not come is a failure", type=float)
    flag("--around-faults", 5.0, "seconds around a fault in which events may be lost", type=float)
    hidden: dict[str, Any] = {"include_in_web_ui": False}
    flag("--result", "", "write what came of it to this file, as JSON", **hidden)
    flag("--run-tag", 0, "a number that events bear: the master draws one for each test", type=int, **hidden)
    flag("--plainly", False, "no tables of Locust's on the terminal", action="store_true", **hidden)


class Users(LoadTestShape):
    """How many users there are follows from the course of the test."""

    def tick(self) -> tuple[int, float] | None:
        course = Current.course
        if course is None:
            assert self.runner is not None
            options = _options(self.runner.environment)
            if found := problem(options):  # what somebody wrote on Locust's page, or told Locust itself
                log.error(found)
                self.runner.environment.process_exit_code = _COULD_NOT
                return None
            return options.publishers + options.subscribers, _SPAWN_RATE
        if course.phase is Phase.OVER:
            return None
        return course.users + (course.crowd if course.crowd_is_there else 0), _SPAWN_RATE


class InTurn(UsersDispatcher):
    """One kind of user after the other, each in turn to all workers. Mixed, as Locust has them, all publishers may well
    come to the same worker: with four of them and twenty subscribers they do."""

    def _user_gen(self) -> Iterator[str | None]:
        for kind in (Publisher, Subscriber):
            yield from [kind.__name__] * kind.fixed_count
        while True:
            yield Crowd.__name__


def _options(environment: Environment) -> Any:
    return environment.parsed_options


# -- a test begins and ends --------------------------------------------------------------------------------------------


def _init(environment: Environment, web_ui: Any, **_: Any) -> None:
    options, runner = _options(environment), environment.runner
    if options.plainly:
        logging.getLogger("locust.stats_logger").setLevel(logging.CRITICAL)
    if isinstance(runner, WorkerRunner):
        runner.register_message(_ORDERS, _ordered)
        Current.asked = Asked(runner)
        gevent.signal_handler(signal.SIGINT, _interrupted, runner)
        return
    environment.host = options.brokers  # as its report calls what is tested
    environment.dispatcher_class = InTurn
    if isinstance(runner, MasterRunner):
        runner.register_message(_FACTS, _noted)
        answer_with(runner, lambda kind: Current.numbers(kind))
    if options.headless:  # Locust's own handlers end it without a word, or too late
        for number in (signal.SIGINT, signal.SIGTERM):
            gevent.signal_handler(number, _stop, environment)
    elif web_ui is not None:  # it ends with its page, and not amid an answer
        gevent.signal_handler(signal.SIGINT, web_ui.stop)
    gevent.signal_handler(signal.SIGUSR1, _fault)


def _start(environment: Environment, **_: Any) -> None:
    options, runner = _options(environment), environment.runner
    plan = Plan(
        options.workload, options.seed,
        publishers=options.publishers, filters=options.filters, quotes=options.quotes,
    )  # fmt: skip
    if not isinstance(runner, WorkerRunner):
        options.run_tag = secrets.randbits(_TAG_BITS)
        Publisher.fixed_count, Subscriber.fixed_count = options.publishers, options.subscribers
        shape = shape_named(options.shape, options.rate, options.seconds, options.step, options.steeper)
        users = options.publishers + options.subscribers, options.crowd
        several = isinstance(runner, MasterRunner)
        Current.course = Course(
            plan, shape, options.run_tag, users,
            patience=options.patience, around=options.around_faults,
            linger=_LINGER + (2 * _WORKERS_REPORT if several else 0),
        )  # fmt: skip
        Current.numbers = Numbers()
        Current.greenlets = [gevent.spawn(_conduct, environment, Current.course), gevent.spawn(_tell, Current.course)]
    if not isinstance(runner, MasterRunner):
        number: Callable[[str], int] = Current.numbers
        process = 0
        if isinstance(runner, WorkerRunner):
            number, process = Current.asked, runner.worker_index
        run = Run(plan, options.run_tag, options.brokers.split(","), options.publishers, number, process)
        run.churns, run.patience = options.shape == "churn", options.patience
        Publisher.shared = Subscriber.shared = run
        if isinstance(runner, WorkerRunner):
            Current.greenlets = [gevent.spawn(_report, environment, run)]


def _end(environment: Environment, **_: Any) -> None:
    gevent.killall(Current.greenlets)
    course, Current.course = Current.course, None
    if course is None:
        return
    _collect(environment, course)
    options = _options(environment)
    names = ("workload", "shape", "publishers", "subscribers", "filters", "seed", "patience")
    found = show.result(course, {name: getattr(options, name) for name in names} | {"target_rate": options.rate})
    if options.result:
        show.write_json(found, options.result)
    show.show(found)
    environment.process_exit_code = _COULD_NOT if course.problem else 0 if found["kept"] else 1


def _stop(environment: Environment) -> None:
    if Current.course is not None:
        Current.course.stop()
    elif environment.process_exit_code is None:  # nothing has begun: Locust waits for workers
        assert environment.runner is not None
        environment.runner.quit()
        sys.exit(_COULD_NOT)


def _interrupted(runner: WorkerRunner) -> None:
    """A terminal says so to all processes. While there is a test, the master says when it is over."""
    if runner.state not in (STATE_SPAWNING, STATE_RUNNING):
        runner.quit()


def _fault() -> None:
    """Somebody makes a fault now, and says so."""
    if Current.course is not None:
        Current.course.mark()


# -- while it runs -----------------------------------------------------------------------------------------------------


def _conduct(environment: Environment, course: Course) -> None:
    """The master's part, or that of the only process."""
    orders: Orders | None = None
    while True:
        gevent.sleep(_TICK)
        _collect(environment, course)
        if isinstance(environment.runner, MasterRunner) and environment.runner.clients.missing:
            course.give_up("a worker is lost, and with it what was noted there")
        new = course.tick(lambda count: statistics.failed(environment.stats, statistics.DELIVER, "did not come", count))
        if new != orders:
            orders = new
            if isinstance(environment.runner, MasterRunner):
                environment.runner.send_message(_ORDERS, orders._asdict())
            else:
                Publisher.shared.rate = orders.rate


def _tell(course: Course) -> None:
    live = show.Live()
    try:
        while True:
            live.tell(course)
            gevent.sleep(_LIVE)
    finally:
        live.end()


def _collect(environment: Environment, course: Course) -> None:
    if not isinstance(environment.runner, MasterRunner):
        statistics.record(environment.stats, course.take(Publisher.shared.facts.hand_over()))


def _noted(msg: Any, **_: Any) -> None:
    if Current.course is not None:
        Current.course.take(msg.data)


def _report(environment: Environment, run: Run) -> None:
    """A worker's part."""
    while True:
        gevent.sleep(_SEND)
        given = run.facts.hand_over()
        statistics.record(environment.stats, Noted(given, run.tag))
        environment.runner.send_message(_FACTS, given)  # type: ignore[union-attr]


def _ordered(msg: Any, **_: Any) -> None:
    Publisher.shared.rate = Orders(**msg.data).rate


_LISTENERS: list[tuple[Any, Callable[..., None]]] = [
    (events.init_command_line_parser, _flags),
    (events.init, _init),
    (events.test_start, _start),
    (events.test_stop, _end),
]
for _event, _listener in _LISTENERS:
    _event.add_listener(_listener)
