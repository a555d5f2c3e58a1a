"""Admin HTTP: liveness, readiness, metrics, overlay, tables, and what `mercast doctor` asks for. It only reads."""

import asyncio
from collections.abc import Callable
from hmac import compare_digest
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import choose_encoder

from mercast import __version__
from mercast.broker.about import configuration, versions
from mercast.broker.addresses import Address
from mercast.broker.admin_door import Entrance
from mercast.broker.counted import counted
from mercast.broker.lag import LagProbe
from mercast.broker.metrics import registry
from mercast.broker.observed import Observed
from mercast.broker.overview import overview, readiness
from mercast.broker.tables import MOST_ROWS, tables
from mercast.security.tokens import hash_of

_SHUTDOWN_SECONDS = 1.0
"""For answers that are under way when the broker stops."""

_OPEN = ("/livez", "/readyz")
"""Without a token: those who probe have none."""

_BEARER = "Bearer "

Behind = Callable[[Callable[[], asyncio.Protocol]], Callable[[], asyncio.Protocol]]

_INDEX = f"""\
mercast {__version__}, broker {{id}} of cluster {{cluster}}

/livez          200 while the broker runs
/readyz         200 while clients should come here, else 503 with the reason
/metrics        for Prometheus
/overlay        this broker, members, links, and the overlay as it sees it, as JSON
/tables         how much its tables hold, as JSON; /tables?full=1 lists it, up to {MOST_ROWS} rows of each
/counters       what it has done since its start, and how it is, as JSON: little, for those who ask every second
/config         the configuration that counts, without secrets, as JSON
/versions       of mercast, its wire, Python and packages, as JSON
/stimuli        the last stimuli, a line of JSON each, for mercast lab replay: attributes of events are among them
"""


class Admin:
    """The listener. It watches the event loop while it runs."""

    def __init__(self, broker: Observed) -> None:
        self._broker = broker
        self._lag = LagProbe()
        self._metrics = registry(broker, self._lag)
        # One line per scrape and probe would drown all others in the log.
        self._entrance: Entrance | None = None
        self._listener: asyncio.Server | None = None
        self._runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)

    async def start(self, address: Address, behind: Behind = lambda make: make) -> Address:
        """The address that was bound: port 0 takes any. OSError if it cannot be. `behind` puts TLS before it."""
        await self._runner.setup()
        assert self._runner.server is not None
        self._entrance = Entrance(self._runner.server, self._broker.config.handshake_seconds)
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(behind(self._entrance), address.host, address.port)
        except OSError:
            await self._runner.cleanup()
            raise
        self._lag.start()
        return Address(*self._listener.sockets[0].getsockname()[:2])

    async def stop(self) -> None:
        self._lag.stop()
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._check])
        app.on_response_prepare.append(_once)
        paths: dict[str, Handler] = {
            "/": self._index,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/metrics": self._prometheus,
            "/overlay": self._overlay,
            "/tables": self._tables,
            "/counters": self._counters,
            "/config": self._config,
            "/versions": self._versions,
            "/stimuli": self._stimuli,
        }
        for path, handler in paths.items():
            app.router.add_get(path, handler)
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._entrance is not None:
            self._entrance.heard(request.protocol)
        wanted = self._broker.security.admin
        given = request.headers.get("Authorization", "").removeprefix(_BEARER)
        if wanted is None or request.path in _OPEN or compare_digest(hash_of(given), wanted):
            return await handler(request)
        said = "a token is needed here, as in: Authorization: Bearer … (admin_token of the broker)\n"
        return web.Response(
            status=web.HTTPUnauthorized.status_code, text=said, headers={"WWW-Authenticate": _BEARER.strip()}
        )

    async def _index(self, _: web.Request) -> web.StreamResponse:
        config = self._broker.config
        return web.Response(text=_INDEX.format(id=config.id, cluster=config.cluster))

    async def _livez(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.StreamResponse:
        told = readiness(self._broker)
        return _json(told, web.HTTPOk.status_code if told["ready"] else web.HTTPServiceUnavailable.status_code)

    async def _prometheus(self, request: web.Request) -> web.StreamResponse:
        try:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        except (TypeError, ValueError):  # a version that is none
            encode, content_type = choose_encoder("")
        return web.Response(body=encode(self._metrics), headers={"Content-Type": content_type})

    async def _overlay(self, _: web.Request) -> web.StreamResponse:
        return _json(overview(self._broker))

    async def _tables(self, request: web.Request) -> web.StreamResponse:
        full = request.query.get("full", "0")
        if full not in ("0", "1"):
            return web.Response(status=web.HTTPBadRequest.status_code, text=f"full={full}: expected 0 or 1\n")
        return _json(tables(self._broker, full == "1"))

    async def _counters(self, _: web.Request) -> web.StreamResponse:
        return _json(counted(self._broker))

    async def _config(self, _: web.Request) -> web.StreamResponse:
        return _json(configuration(self._broker))

    async def _versions(self, _: web.Request) -> web.StreamResponse:
        return _json({"broker": self._broker.core.me} | await asyncio.to_thread(versions))

    async def _stimuli(self, request: web.Request) -> web.StreamResponse:
        kept = self._broker.last_stimuli
        if kept is None:
            said = "none are kept: keep_stimuli is 0\n"
            return web.Response(status=web.HTTPNotFound.status_code, text=said)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for line in kept.lines():
            await response.write(f"{line}\n".encode())
            await asyncio.sleep(0)  # events go first
        await response.write_eof()
        return response


async def _once(_: web.Request, response: web.StreamResponse) -> None:
    """One question each: nobody stays who does not ask."""
    response.force_close()


def _json(value: Any, status: int = web.HTTPOk.status_code) -> web.Response:
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return web.Response(body=body, status=status, content_type="application/json")
