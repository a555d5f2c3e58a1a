"""The command."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from time import monotonic
from typing import Any, NoReturn

import aiohttp
from rich.console import Console

from mercast import garbage
from mercast.broker.local import Local, NotReady
from mercast.cli.demo.fault import Fault
from mercast.cli.demo.load import Load, counted
from mercast.cli.demo.show import REFRESH, Show, summary
from mercast.cli.demo.watch import Watch
from mercast.cli.local import interruptible
from mercast.client.errors import MercastError
from mercast.matching import prepare
from mercast.routing.strategies import strategy_named

_LEAST_SECONDS = 2.0


def demo(
    *,
    brokers: int = 5,
    seconds: float = 20.0,
    rate: float = 2_000,
    subscribers: int = 20,
    strategy: str = "ddbr",
    seed: int = 1,
) -> None:
    """Run brokers, publishers and subscribers on this machine, and show rates and latency live.

    At half time one broker is killed; it comes back a little later. At the end what has arrived is compared with what
    was due. Exit status: 0 if nothing is missing away from the fault, and nothing was doubled or undue; else 1.

    Parameters
    ----------
    brokers
        How many. With one alone, none is killed.
    seconds
        How long to go on.
    rate
        Stock quotes to publish a second, by all publishers together; there is one at each broker but the one to be
        killed.
    subscribers
        How many, with ten filters each.
    strategy
        How events find their way.
    seed
        Seed of filters and quotes.
    """
    for name, value, least in (("brokers", brokers, 1), ("subscribers", subscribers, 1), ("rate", rate, 1)):
        if not least <= value < float("inf"):
            _stop(f"{name} must be at least {least}")
    if not _LEAST_SECONDS <= seconds < float("inf"):
        _stop(f"seconds must be at least {_LEAST_SECONDS:g}")
    try:
        strategy_named(strategy)
    except ValueError as error:
        _stop(str(error))
    garbage.seldom()
    logging.getLogger("mercast.client").addHandler(logging.NullHandler())  # the display tells what happens
    console = Console()
    mesh = Local(brokers, strategy=strategy)
    try:
        with interruptible(), ExitStack() as ends:
            with console.status(f"starting {counted(brokers, 'broker')} (the first time takes half a minute)"):
                prepare()  # once and for all, not by every broker at the same time
                ends.enter_context(mesh)
            kept = _loop()(_demonstrate(console, mesh, strategy, seconds, (subscribers, rate, seed)))
    except (MercastError, NotReady, OSError) as error:
        _stop(str(error))
    except KeyboardInterrupt:
        console.print("stopped")
        raise
    sys.exit(0 if kept else 1)


async def _demonstrate(
    console: Console, mesh: Local, strategy: str, seconds: float, load_as: tuple[int, float, int]
) -> bool:
    """Whether all that is promised was kept."""
    victim = max(mesh.brokers) if len(mesh.brokers) > 1 else None
    publish_at = [broker.client for broker in mesh.brokers.values() if broker.id != victim]
    load = Load([broker.client for broker in mesh.brokers.values()], publish_at, *load_as)
    heading = f"{counted(len(mesh.brokers), 'broker')} ({strategy}), {load}"
    fault: Fault | None = None
    async with load, aiohttp.ClientSession() as http:
        watch = Watch(mesh, http)
        garbage.settled()
        with Show(console, heading, mesh, load, watch) as show:
            if victim is not None:
                show.fault = fault = Fault(mesh, victim, load, watch, show.tell)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(load.run())
                    course = tasks.create_task(_course(load, fault, seconds))
                    while not course.done():
                        await asyncio.wait([course], timeout=REFRESH)
                        await watch.look(min(mesh.brokers))
                        show.look()
            except ExceptionGroup as several:
                raise _first_of(several) from None
    report = load.ledger.report(*([fault.window] if fault is not None and fault.window is not None else []))
    summary(console, load.ledger, report, fault, show.began, course.result())
    return report.as_promised


async def _course(load: Load, fault: Fault | None, seconds: float) -> float:
    """The load ends when time is up, and not before a broker that was killed is back. Seconds that it took."""
    began = monotonic()
    async with asyncio.TaskGroup() as tasks:
        if fault is not None:
            tasks.create_task(fault.run(seconds))
        tasks.create_task(asyncio.sleep(seconds))
    load.stop()
    return monotonic() - began


def _loop() -> Callable[[Coroutine[Any, Any, bool]], bool]:
    """What runs a coroutine: uvloop, where there is one, as in brokers."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def _first_of(several: BaseException) -> BaseException:
    while isinstance(several, BaseExceptionGroup):
        several = several.exceptions[0]
    return several


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast demo: {reason}")
