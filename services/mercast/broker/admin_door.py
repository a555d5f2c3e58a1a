"""Who comes to the admin port: at most so many at a time, and whoever does not ask for anything soon has to go."""

import asyncio
from typing import cast

from aiohttp import web

MOST_CONNECTIONS = 64
"""Probes, scrapes and people: each asks once and is gone."""

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 26\r\n\r\ntoo many others are asking"


class Entrance:
    """Makes the protocol of each connection."""

    def __init__(self, server: web.Server, seconds: float) -> None:
        """`seconds` are for the first request."""
        self._server, self._seconds = server, seconds
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        """Who has not asked yet, and until when it may."""

    def __call__(self) -> asyncio.Protocol:
        if len(self._server.connections) >= MOST_CONNECTIONS:
            oldest = next(iter(self._silent), None)
            if oldest is None or not self._close(oldest):
                return _Full()
        visitor = self._server()
        self._silent[visitor] = asyncio.get_running_loop().call_later(self._seconds, self._close, visitor)
        return visitor

    def heard(self, visitor: asyncio.BaseProtocol) -> None:
        """It has asked for something."""
        if visitor in self._silent:
            self._silent.pop(visitor).cancel()

    def _close(self, visitor: asyncio.BaseProtocol) -> bool:
        """Whether it was there."""
        self.heard(visitor)
        transport = cast("web.RequestHandler", visitor).transport
        if transport is not None:
            transport.abort()
        return transport is not None


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(_FULL)
        transport.close()
