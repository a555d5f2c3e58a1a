"""A broker from its start to its end."""

import asyncio
import errno
import resource
import signal
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from mercast import __version__, garbage
from mercast.broker import descriptors
from mercast.broker.addresses import Address, parse_address
from mercast.broker.admin import Admin
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.config_kubernetes import KUBERNETES
from mercast.broker.config_security import half_protected, unprotected
from mercast.broker.config_sources import ConfigError
from mercast.broker.draining import Draining
from mercast.broker.finding import finding
from mercast.broker.links import Link
from mercast.broker.overlay import Overlay
from mercast.broker.recorder import Recorder
from mercast.broker.reloading import Reloading, Reread
from mercast.broker.sessions import STOPPED, Session
from mercast.broker.tapping import tapping
from mercast.matching import prepare
from mercast.membership import kubernetes_api
from mercast.overlay.cluster import NUMBER, place_of
from mercast.security.state import Security
from mercast.security.tls import Door

log = structlog.get_logger()

_BACKLOG = 4096
"""Connections that wait to be accepted: after a restart all clients come at once."""


_OTHER_FILES = 256
"""File descriptors for listeners, links, admins and what Python has open; the rest is for clients."""


_ALONE_AFTER = 3.0
"""Seconds that clients wait for a broker to be part of the overlay, at most."""

_LOOK = 0.02
"""Seconds between two looks whether it is."""

_LONG = 1.0
"""Seconds without a word after which people wonder."""


class StartError(Exception):
    """The broker cannot start, for the reason given."""


def run(config: BrokerConfig, reread: Reread | None = None) -> None:
    """Until SIGTERM, which lets clients go elsewhere first, or SIGINT, which does not wait. `reread` is for SIGHUP."""
    garbage.seldom()
    if config.matcher == "index":
        _prepare()
    if config.membership == KUBERNETES:
        kubernetes_api.prepare()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(config, reread))
    else:
        uvloop.run(_serve(config, reread))


def _prepare() -> None:
    """Takes seconds where nothing is on disk yet: longer than neighbours wait for a heart-beat."""
    told = threading.Timer(_LONG, log.info, ["preparing: code is compiled, once for this machine"])
    told.daemon = True
    told.start()
    try:
        prepare()
    finally:
        told.cancel()


def room_for_clients() -> float:
    """How many clients there are file descriptors for: one more could not even be told that the broker is full."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return float("inf") if most == resource.RLIM_INFINITY else max(1, most - _OTHER_FILES)


async def _serve(config: BrokerConfig, reread: Reread | None) -> None:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    early = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, early.set)
    given, room = config.max_clients, room_for_clients()
    if given > room:
        config = config.model_copy(update={"max_clients": room})
        if reread is not None:
            reread = partial(_with_room, reread, room)
    async with running(config, reread) as node:
        loop.add_signal_handler(signal.SIGHUP, node.reloading.hang_up)
        if early.is_set():
            node.reloading.hang_up()
        if given > room:
            log.warning("max_clients is lowered: there are too few file descriptors", given=given, to=room)
        garbage.settled()
        if await stopped == signal.SIGTERM:
            hurried = asyncio.Event()
            loop.add_signal_handler(signal.SIGINT, hurried.set)  # which waits for nobody, now neither
            tasks = [asyncio.create_task(node.drain()), asyncio.create_task(hurried.wait())]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            for task in done:
                task.result()  # a defect is told


def _with_room(reread: Reread, room: float) -> BrokerConfig:
    config = reread()
    return config.model_copy(update={"max_clients": min(config.max_clients, room)})


@dataclass(frozen=True)
class Node:
    """A broker that runs."""

    broker: Broker
    reloading: Reloading
    _clients: asyncio.Server
    _live: set[Session]

    async def drain(self) -> None:
        """Take no more clients, and leave with nothing undone."""
        self._clients.close()
        await Draining(self.broker, self._live).run()


@asynccontextmanager
async def running(config: BrokerConfig, reread: Reread | None = None) -> AsyncIterator[Node]:
    """A broker that serves clients, peers and admins inside the block."""
    broker = Broker(config)
    live: set[Session] = set()
    try:
        reloading = Reloading(broker, reread)
    except ConfigError as error:
        raise StartError(str(error)) from None
    async with AsyncExitStack() as stack:
        broker.record(stack.enter_context(closing(_recorder(config.record))) if config.record else None)
        clients, client_port = await _listen(
            _behind_tls(broker, partial(Session, broker, live), lambda security: security.clients),
            config.listen,
            "--listen",
        )
        stack.callback(clients.close)
        hosts: list[Overlay] = []
        peers, peer_port = await _listen(
            _behind_tls(broker, lambda: Link(hosts[0], others=hosts[1:]), lambda security: security.called),
            config.peer_listen,
            "--peer-listen",
        )
        stack.callback(peers.close)
        peer_address = config.peer_advertise or _shown(config.peer_listen, peer_port)
        client_address = config.advertise or _shown(config.listen, client_port)
        hosts += [Overlay(broker, one.place, peer_address, client_address) for one in broker.core.clusters]
        if config.admin_listen:
            await stack.enter_async_context(_admin(broker, config.admin_listen))
        if config.taps:
            await stack.enter_async_context(tapping(broker))
        broker.begin(
            lambda at: hosts[place_of(at)].link(at & NUMBER),
            lambda at, reason: hosts[place_of(at)].unlink(at & NUMBER, reason),
        )
        broker.readiness = partial(_ready, hosts)
        for host in hosts:
            host.begin()
        if config.membership == KUBERNETES:
            await stack.enter_async_context(finding(config, hosts))
        welcoming = asyncio.create_task(_welcome(broker, live))
        stack.callback(welcoming.cancel)
        watching = asyncio.create_task(reloading.watch())
        stack.callback(watching.cancel)
        looking = asyncio.create_task(descriptors.watch())
        stack.callback(looking.cancel)
        _tell_of_security(config)
        log.info(
            "started",
            version=__version__,
            strategy=config.strategy,
            clients=client_address,
            peers=peer_address,
        )
        try:
            yield Node(broker, reloading, clients, live)
        finally:
            broker.draining = True
            broker.end()
            for host in hosts:
                host.end()
            for session in list(live):
                session.end(*STOPPED)
            for link in list(broker.links.values()):
                if isinstance(link, Link):
                    link.close()
            await asyncio.sleep(0)
            log.info("stopped")


def _ready(hosts: list[Overlay]) -> tuple[bool, str]:
    """In all of its clusters."""
    return next((one for one in (host.ready() for host in hosts) if not one[0]), (True, ""))


async def _welcome(broker: Broker, live: set[Session]) -> None:
    """Listen to clients once the broker is part of the overlay: before, it would know of nobody else's, and think that
    their subscriptions have reached everyone. Not for ever: the others may not be there."""
    until = broker.now() + min(_ALONE_AFTER, broker.config.handshake_seconds / 2)
    while not broker.ready()[0] and broker.now() < until:
        await asyncio.sleep(_LOOK)
    ready, reason = broker.ready()
    log.info("clients are welcome", ready=ready, **({} if ready else {"reason": reason}))
    broker.welcoming = True
    for session in list(live):
        session.welcome()


def _behind_tls(
    broker: Broker, make: Callable[[], asyncio.Protocol], which: Callable[[Security], ssl.SSLContext | None]
) -> Callable[[], asyncio.Protocol]:
    """Each connection by the certificates that count when it comes."""
    opening: set[asyncio.Task[None]] = set()

    def failed(address: str, reason: str) -> None:
        broker.counters.denied["tls"] += 1
        if broker.said.first("no TLS", address.rpartition(":")[0], reason):
            log.warning("no TLS", address=address, reason=reason)

    def made() -> asyncio.Protocol:
        context = which(broker.security)
        return make() if context is None else Door(make, context, broker.config.handshake_seconds, failed, opening)

    return made


def _tell_of_security(config: BrokerConfig) -> None:
    for key, what in unprotected(config).items():
        where = getattr(config, key)
        if where and parse_address(where).is_loopback:
            log.info(f"{key} is for this machine only: {what}", address=where)
        elif where:
            log.warning(f"insecure: {key} can be reached by others, and {what}", address=where)
    for key, warning in half_protected(config):
        log.warning(warning, address=getattr(config, key))


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
    behind = partial(_behind_tls, broker, which=lambda security: security.admins)
    try:
        await admin.start(parse_address(where), behind)
    except OSError as error:
        raise _cannot_listen(error, where, "--admin-listen") from None
    try:
        yield
    finally:
        await admin.stop()
