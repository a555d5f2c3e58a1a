"""TLS as brokers use it: contexts, and a door that connections pass before anything is read from them."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

_opening: set[asyncio.Task[None]] = set()
"""Doors that somebody stands in: the loop alone does not keep tasks alive."""


def for_clients(cert: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """With a CA, clients must have a certificate of it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
    context.load_cert_chain(cert, key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def for_peers(cert: Path, key: Path, ca: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """To be called and to call. Brokers prove who they are, not where: no name of a host is looked at."""
    called = for_clients(cert, key, ca)
    calling = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
    calling.load_cert_chain(cert, key)
    calling.check_hostname = False
    return called, calling


def reason(error: Exception) -> str:
    """Why TLS failed, for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the other side is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        said = error.reason.replace("_", " ").lower()
        if "alert" in said or "certificate" in said:
            return f"the certificates do not fit: {said}"
        return f"the other side does not speak TLS as expected: {said}"
    return str(error) or type(error).__name__


class Door(asyncio.Protocol):
    """A connection before it is one: TLS first, then what `make` makes takes over.

    Not left to the listener, which would neither tell of those who fail nor take other certificates later on.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        seconds: float,
        failed: Callable[[str, str], None],
    ) -> None:
        self._make, self._context, self._seconds, self._failed = make, context, seconds, failed
        self._early: list[bytes] = []
        """What was read along with the end of the handshake."""
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast("asyncio.Transport", transport)
        raw.pause_reading()
        task = asyncio.get_running_loop().create_task(self._open(raw))
        _opening.add(task)
        task.add_done_callback(_opening.discard)

    async def _open(self, raw: asyncio.Transport) -> None:
        peer = raw.get_extra_info("peername")
        try:
            secured = await asyncio.get_running_loop().start_tls(
                raw, self, self._context, server_side=True, ssl_handshake_timeout=self._seconds
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            raw.abort()
            self._failed(f"{peer[0]}:{peer[1]}" if peer else "?", reason(error))
            return
        if secured is None or self._lost:
            return
        protocol = self._make()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._early:
            protocol.data_received(data)

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._lost = True
