"""A broker from its start to its end."""

import asyncio
import errno
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from mercast import __version__, garbage
from mercast.broker.addresses import Address, parse_address
from mercast.broker.admin import Admin
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.links import Link
from mercast.broker.overlay import Overlay
from mercast.broker.recorder import Recorder
from mercast.broker.sessions import Session
from mercast.matching import prepare
from mercast.protocol.stimuli import Retire
from mercast.wire import replies

log = structlog.get_logger()

_BACKLOG = 4096
"""Connections that wait to be accepted: after a restart all clients come at once."""


_LOOK = 0.05
"""Seconds between two looks whether all clients have left."""


_OTHER_FILES = 256
"""File descriptors for listeners, links, admins and what Python has open; the rest is for clients."""


class StartError(Exception):
    """The broker cannot start, for the reason given."""


def run(config: BrokerConfig) -> None:
    """Until SIGTERM, which lets clients go elsewhere first, or SIGINT, which does not wait."""
    garbage.seldom()
    if config.matcher == "index":
        prepare()  # takes seconds where nothing is on disk yet: longer than neighbours wait for a heart-beat
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(config))
    else:
        uvloop.run(_serve(config))


def room_for_clients() -> float:
    """How many clients there are file descriptors for: one more could not even be told that the broker is full."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return float("inf") if most == resource.RLIM_INFINITY else max(1, most - _OTHER_FILES)


async def _serve(config: BrokerConfig) -> None:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    given, room = config.max_clients, room_for_clients()
    if given > room:
        config = config.model_copy(update={"max_clients": room})
    async with running(config) as node:
        if given > room:
            log.warning("max_clients is lowered: there are too few file descriptors", given=given, to=room)
        garbage.settled()
        if await stopped == signal.SIGTERM:
            await node.drain()


@dataclass(frozen=True)
class Node:
    """A broker that runs."""

    broker: Broker
    _clients: asyncio.Server
    _live: set[Session]

    async def drain(self) -> None:
        """Take no more clients, give those that are here time to go elsewhere, and have events go around.

        Links carry all in order: once the neighbours see the overlay as this broker does, nothing more comes by here.
        """
        broker = self.broker
        broker.draining = True
        broker.take(Retire())
        retired = broker.now()
        self._clients.close()
        others = broker.other_brokers()
        log.info("draining", clients=len(self._live), others=others)
        for session in self._live:
            session.out.append(replies.drain(others))
            session.flush()
        until = broker.now() + broker.config.drain_seconds
        while others and broker.now() < until:
            if not self._live and broker.core.neighbourhood.is_known_since(retired):
                break
            await asyncio.sleep(_LOOK)


@asynccontextmanager
async def running(config: BrokerConfig) -> AsyncIterator[Node]:
    """A broker that serves clients, peers and admins inside the block."""
    broker = Broker(config)
    live: set[Session] = set()
    async with AsyncExitStack() as stack:
        record = stack.enter_context(closing(_recorder(config.record))) if config.record else None
        clients, client_port = await _listen(partial(Session, broker, live), config.listen, "--listen")
        stack.callback(clients.close)
        hosts: list[Overlay] = []
        peers, peer_port = await _listen(lambda: Link(hosts[0]), config.peer_listen, "--peer-listen")
        stack.callback(peers.close)
        overlay = Overlay(
            broker,
            config.peer_advertise or _shown(config.peer_listen, peer_port),
            config.advertise or _shown(config.listen, client_port),
        )
        hosts.append(overlay)
        if config.admin_listen:
            await stack.enter_async_context(_admin(broker, config.admin_listen))
        broker.begin(record, overlay.unlink)
        overlay.begin()
        log.info(
            "started",
            version=__version__,
            strategy=config.strategy,
            clients=overlay.client_address,
            peers=overlay.peer_address,
        )
        try:
            yield Node(broker, clients, live)
        finally:
            broker.draining = True
            broker.end()
            overlay.end()
            for session in list(live):
                session.refuse("draining", "this broker has stopped")
            for link in list(broker.links.values()):
                if isinstance(link, Link):
                    link.close()
            await asyncio.sleep(0)
            log.info("stopped")


async def _listen(make: object, where: str, flag: str) -> tuple[asyncio.Server, int]:
    host, port = parse_address(where)
    try:
        server = await asyncio.get_running_loop().create_server(make, host, port, backlog=_BACKLOG)  # type: ignore[call-overload]
    except OSError as error:
        raise _cannot_listen(error, where, flag) from None
    return server, server.sockets[0].getsockname()[1]


def _cannot_listen(error: OSError, where: str, flag: str) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return StartError(f"port {parse_address(where).port} is in use; choose another with {flag}")
    return StartError(f"cannot listen at {where}: {error.strerror or error}; choose another address with {flag}")


def _recorder(file: Path) -> Recorder:
    try:
        return Recorder(file)
    except OSError as error:
        raise StartError(f"cannot record to {file}: {error.strerror}; choose another file with --record") from None


def _shown(where: str, port: int) -> str:
    return str(Address(parse_address(where).host, port))


@asynccontextmanager
async def _admin(broker: Broker, where: str) -> AsyncIterator[None]:
    admin = Admin(broker)
    try:
        await admin.start(parse_address(where))
    except OSError as error:
        raise _cannot_listen(error, where, "--admin-listen") from None
    try:
        yield
    finally:
        await admin.stop()
