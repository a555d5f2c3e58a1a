"""TLS as brokers use it: contexts, and a door that connections pass before anything is read from them."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

MOST_OPENING = 2048
"""Handshakes of one listener at a time: as many as a processor can finish before they take too long. Whoever comes
later tries again, and those who never go on take no more file descriptors than that."""


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
    if isinstance(error, ConnectionResetError):  # some say nothing when they do not trust a certificate
        return "the other side broke it off: perhaps it does not accept the certificate that it was shown"
    return str(error) or type(error).__name__


def _address(peer: tuple[Any, ...] | None) -> str:
    return f"{peer[0]}:{peer[1]}" if peer else "?"


class Door(asyncio.Protocol):
    """A connection before it is one: TLS first, then what `make` makes takes over.

    Not left to the listener, which would neither tell of those who fail nor take other certificates later on. The
    socket goes to a transport of its own: uvloop would not wait with reading until TLS has begun.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        seconds: float,
        failed: Callable[[str, str], None],
        opening: set[asyncio.Task[None]],
    ) -> None:
        """`opening` are the handshakes of this listener: the loop alone does not keep tasks alive."""
        self._make, self._context, self._seconds, self._failed = make, context, seconds, failed
        self._opening = opening

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._opening) >= MOST_OPENING:
            cast("asyncio.Transport", transport).abort()
            self._failed(_address(transport.get_extra_info("peername")), "too many others are at it: try again")
            return
        try:
            connection = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        except OSError as error:  # no file descriptor is left
            self._failed(_address(transport.get_extra_info("peername")), error.strerror or str(error))
            return
        finally:
            cast("asyncio.Transport", transport).abort()
        task = asyncio.get_running_loop().create_task(self._open(connection))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, connection: socket.socket) -> None:
        address = _address(None)
        try:
            address = _address(connection.getpeername())
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, connection, ssl=self._context, ssl_handshake_timeout=self._seconds
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            connection.close()
            self._failed(address, reason(error))
