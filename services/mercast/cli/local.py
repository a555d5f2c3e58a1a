"""`mercast local`: brokers on this machine."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_APART = 10
"""Between the ports of one broker and the next; the first has the usual ones, so clients find it without being told."""

_OTHERS = 30
"""From the first broker's ports to the second's: the dashboard's port lies between."""


def local(brokers: int = 3, *, strategy: str = "ddbr", degree: int = 6, port: int = 7470) -> None:
    """Run brokers on this machine as processes, linked to each other, until Ctrl-C.

    Parameters
    ----------
    brokers
        How many.
    strategy
        How events find their way.
    degree
        Links that each broker has, an even number.
    port
        Where clients find the first broker; the others' ports follow.
    """
    from mercast.broker.config import load
    from mercast.broker.config_sources import ConfigError
    from mercast.broker.local import Local, NotReady

    if brokers < 1:
        _stop("there must be at least one broker: mercast local 3")
    try:
        load(None, {"id": 1, "strategy": strategy, "degree": degree})
    except ConfigError as error:
        _stop(str(error))

    def addresses(id: int) -> tuple[str, str, str]:
        first = port if id == 1 else port + _OTHERS + _APART * (id - 2)
        client, peer, admin = (f"127.0.0.1:{first + place}" for place in range(3))
        return client, peer, admin

    mesh = Local(brokers, strategy=strategy, options=["--degree", str(degree)], addresses=addresses)
    try:
        with interruptible(), mesh:
            for broker in mesh.brokers.values():
                _say(f"broker {broker.id}: clients at {broker.client}, admin at http://{broker.admin}")
            _say(f"try: mercast sub stock.quote 'price < 100'{_url(port)}   (Ctrl-C here stops all)")
            mesh.wait()
    except NotReady as error:
        _stop(str(error))
    except KeyboardInterrupt:
        _say("stopped")


def _url(port: int) -> str:
    from mercast.broker.addresses import CLIENT_PORT

    return "" if port == CLIENT_PORT else f" --url 127.0.0.1:{port}"


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, which asyncio handles in its own way."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
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
