"""`mercast local`: brokers on this machine."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn

if TYPE_CHECKING:
    from mercast.broker.local import Broker

_EACH = 3
"""Ports of a broker: for clients, peers and admins."""

_LAST = 65_535

_MOST = 1_000
"""Brokers: each takes some two hundred megabytes."""

_APART = 10
"""Between the ports of one broker and the next; the first has the usual ones, so clients find it without being told."""

_OTHERS = 30
"""From the first broker's ports to the second's: the dashboard's port lies between."""


def local(
    brokers: int = 3,
    *,
    clusters: int = 1,
    edges: int = 2,
    strategy: str = "",
    degree: int = 6,
    organise: Literal["off", "carried", "paper"] = "off",
    port: int = 7470,
    taps: str = "",
) -> None:
    """Run brokers on this machine as processes, linked to each other, until Ctrl-C.

    Parameters
    ----------
    brokers
        How many; of several clusters, in each.
    clusters
        How many clusters, joined by a backbone of their edge brokers.
    edges
        How many of each cluster's brokers are edges, if there are several clusters.
    strategy
        How events find their way; ddbr unless said otherwise, and merc if there are several clusters.
    degree
        Links that each broker has, an even number.
    organise
        Whether links move to where the traffic is, and by which rule.
    port
        Where clients find the first broker; the others' ports follow. 0 takes any that are free.
    taps
        Where rows about all that the brokers do go: kafka://host:port or file:///folder.
    """
    from mercast.broker.config import load
    from mercast.broker.config_sources import ConfigError
    from mercast.broker.local import Local, NotReady
    from mercast.matching import prepare

    if brokers < 1 or clusters < 1:
        _stop("there must be at least one broker: mercast local 3")
    if clusters > 1 and not 1 <= edges <= brokers:
        _stop(f"--edges {edges}: of {brokers} brokers in each cluster, at least one is an edge and at most all are")
    if brokers * clusters > _MOST:
        _stop(f"{brokers * clusters} brokers: this machine is for {_MOST} at most")
    if clusters > 1 and strategy not in ("", "merc"):
        _stop(f"--strategy {strategy} knows one cluster only: use merc for {clusters}")
    strategy = strategy or ("merc" if clusters > 1 else "ddbr")
    try:
        load(None, {"id": 1, "strategy": strategy, "degree": degree, "organise": organise, "taps": taps})
    except ConfigError as error:
        _stop(str(error))
    count = brokers * clusters

    chosen = None
    if port != 0:
        _check_ports(port, count)
        chosen = partial(addresses, port)
    options = ["--degree", str(degree), "--organise", organise, *(["--taps", taps] if taps else [])]
    mesh = Local(brokers, clusters=clusters, edges=edges, strategy=strategy, options=options, addresses=chosen)
    try:
        with interruptible(), ExitStack() as ends:
            sys.stderr.write(f"starting {count} broker{'s' if count > 1 else ''} …\n")
            prepare()  # once and for all, not by every broker at the same time
            ends.enter_context(mesh)
            for broker in mesh.brokers.values():
                _say(
                    f"broker {broker.id}{_place(broker, clusters)}: clients at {broker.client}, admin at http://{broker.admin}"
                )
            _say(f"try: mercast sub stock.quote 'price < 100'{_url(mesh[1].client)}   (Ctrl-C here stops all)")
            mesh.wait(_say)
    except NotReady as error:
        _stop(str(error))
    except KeyboardInterrupt:
        _say("stopped")


def _ports(first: int, id: int) -> range:
    begin = first if id == 1 else first + _OTHERS + _APART * (id - 2)
    return range(begin, begin + _EACH)


def addresses(first: int, id: int) -> tuple[str, str, str]:
    """Of a broker: for clients, peers and admins."""
    client, peer, admin = (f"127.0.0.1:{port}" for port in _ports(first, id))
    return client, peer, admin


def _check_ports(first: int, brokers: int) -> None:
    """Before anything is started."""
    from mercast.processes import in_use

    most = _LAST - _ports(0, brokers)[-1]
    if not 0 < first <= most:
        _stop(f"--port {first}: choose 1 to {most} for {brokers} brokers, or 0 for any free ports")
    for id in range(1, brokers + 1):
        for port, address in zip(_ports(first, id), addresses(first, id), strict=True):
            if in_use(address):
                _stop(f"port {port} is in use; choose another with --port, or 0 for any free ports")


def _place(broker: "Broker", clusters: int) -> str:
    return f" of cluster {broker.cluster}{', an edge' if broker.edge else ''}" if clusters > 1 else ""


def _url(client: str) -> str:
    from mercast.broker.addresses import CLIENT_PORT

    return "" if client.endswith(f":{CLIENT_PORT}") else f" --url {client}"


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, which asyncio handles in its own way."""

    def end(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as scripts have it for what they start with &
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(line: str) -> None:
    """As it is, and at once: it may be read through a pipe, or copied."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast: {reason}")
