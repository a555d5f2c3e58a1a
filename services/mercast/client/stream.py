"""A socket that one thread reads and any thread writes."""

import selectors
import socket
import ssl
import threading
from contextlib import suppress

from mercast.client.address import Address

_READ_BYTES = 256 * 1024
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def open_stream(address: Address, tls: ssl.SSLContext | None, timeout: float) -> "Stream":
    connection = socket.create_connection((address.host, address.port), timeout)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_hostname=address.host)
        return Stream(connection)
    except BaseException:
        connection.close()
        raise


class Stream:
    """Waits outside of the lock: TLS must not be read and written at the same moment."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._lock = threading.Lock()
        # Looked up now, not at import: gevent may have put its own in place.
        self._readable, self._writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._readable.register(connection, selectors.EVENT_READ)
        self._writable.register(connection, selectors.EVENT_WRITE)

    def read(self, timeout: float | None = None) -> bytes:
        """What there is, as soon as there is something; empty at the end. TimeoutError if nothing comes in time."""
        while True:
            with self._lock:
                try:
                    return self._socket.recv(_READ_BYTES)
                except _AGAIN:
                    pass
            if not self._readable.select(timeout):
                raise TimeoutError("nothing to read")

    def write(self, data: bytes, timeout: float) -> None:
        """All of it, by one thread at a time. TimeoutError if the other side takes nothing for so long."""
        rest = memoryview(data)
        while rest:
            with self._lock:
                try:
                    rest = rest[self._socket.send(rest) :]
                    continue
                except _AGAIN:
                    pass
            if not self._writable.select(timeout):
                raise TimeoutError(f"what it was sent has not been read for {timeout:g} s")

    def end(self) -> None:
        """Nothing more to say."""
        self._shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """Nothing more to hear either: wakes whoever reads."""
        self._shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """By the reader, at last: others may still look at the socket until then."""
        with self._lock:
            self._readable.close()
            self._writable.close()
            self._socket.close()

    def _shutdown(self, how: int) -> None:
        with self._lock, suppress(OSError):  # it may have ended already
            self._socket.shutdown(how)
