"""The web server: the page, a stream of what happens, and answers to what it asks for.

Nothing is queued for a page: once a second it is told the newest, when the last has gone out. A page that takes too
long is let go, and comes back by itself.
"""

import asyncio
import gzip
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from mercast.broker.addresses import Address
from mercast.content.event import EventId
from mercast.dashboard.cost import Cost
from mercast.dashboard.door import Door, headers
from mercast.dashboard.events import parse_id, path
from mercast.dashboard.load import Choice
from mercast.dashboard.older import Older
from mercast.dashboard.view import State

PORT = 7480

EVERY = 1.0
"""Seconds from pulse to pulse."""

MOST_PAGES = 64
_STUCK = 20.0
"""Seconds that a page may take for what it is told."""
_MOST_MINUTES, _MINUTES = 120, re.compile("[0-9]{1,3}")
_DAY = "private, max-age=86400"
_STATIC = Path(__file__).parent / "static"

Tables = Callable[[int], Any]
"""What a broker's admin port says of its tables."""


class Server:
    def __init__(
        self, state: State, token: str = "", tables: Tables | None = None, older: Callable[[], Older] | None = None
    ) -> None:
        self._state, self._cost = state, Cost()
        self._tables, self._older = tables, older
        self._door = Door(token, (_STATIC / "token.html").read_text())
        self._beats, self._beaten = 0, asyncio.Event()
        self._pulses: dict[Choice, bytes] = {}
        self._plotly: asyncio.Task[bytes] | None = None
        self._searching = asyncio.Lock()
        self._runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=0.5)

    async def start(self, address: Address) -> Address:
        """The address that was bound: port 0 takes any. OSError if it cannot be."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, address.host, address.port, reuse_address=True)
        await site.start()
        return Address(*self._runner.addresses[0][:2])

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._door.check], client_max_size=4096)
        app.on_response_prepare.append(headers)
        app.router.add_get("/", self._page)
        app.router.add_post("/token", self._door.take)
        app.router.add_get("/plotly.js", self._plotly_js)
        app.router.add_get("/events", self._events)
        app.router.add_get("/api/history", self._history)
        app.router.add_get("/api/broker/{id:[0-9]{1,9}}", self._broker)
        app.router.add_get("/api/event", self._event)
        app.router.add_static("/static", _STATIC)
        return app

    # -- time passes -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The pulse."""
        while True:
            began = time.monotonic()
            await self.beat()
            await asyncio.sleep(max(EVERY / 4, EVERY - (time.monotonic() - began)))

    async def beat(self) -> None:
        state = self._state
        state.look(time.monotonic(), int(time.time() * 1_000))
        unlaid = state.unlaid()
        if unlaid is not None:
            await asyncio.to_thread(state.layout.draw, *unlaid)
            state.look(time.monotonic(), int(time.time() * 1_000))
        self._cost.look(state.told.bytes)
        self._pulses.clear()
        self._beats += 1
        self._beaten.set()
        self._beaten = asyncio.Event()

    # -- the stream --------------------------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._cost.pages >= MOST_PAGES:
            return web.Response(status=web.HTTPServiceUnavailable.status_code, text=f"{MOST_PAGES} pages are open\n")
        choice = _choice(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        self._cost.pages += 1
        version = -1
        try:
            while True:
                said = b"" if version == self._state.version else _said("overlay", self._state.overlay())
                version = self._state.version
                said += self._pulse(choice)
                self._cost.sent += len(said)
                beaten = self._beaten
                await asyncio.wait_for(response.write(said), _STUCK)
                await beaten.wait()
        except (ConnectionError, TimeoutError):
            return response
        finally:
            self._cost.pages -= 1

    def _pulse(self, choice: Choice) -> bytes:
        """The same for all who look at the same."""
        if choice not in self._pulses:
            if len(self._pulses) > MOST_PAGES:
                self._pulses.clear()
            self._pulses[choice] = _said("pulse", self._state.pulse(choice, self._cost.told()))
        return self._pulses[choice]

    # -- answers -----------------------------------------------------------------------------------------------------

    async def _page(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(_STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    async def _plotly_js(self, _: web.Request) -> web.StreamResponse:
        """From the installed wheel; packed once."""
        if self._plotly is None:
            self._plotly = asyncio.create_task(asyncio.to_thread(_packed))
        body = await asyncio.shield(self._plotly)
        given = {"Content-Type": "text/javascript", "Content-Encoding": "gzip", "Cache-Control": _DAY}
        return web.Response(body=body, headers=given)

    async def _history(self, request: web.Request) -> web.StreamResponse:
        minutes = request.query.get("minutes", "15")
        if not _MINUTES.fullmatch(minutes) or not 0 < int(minutes) <= _MOST_MINUTES:
            return _wrong(f"minutes={minutes}: expected 1 to {_MOST_MINUTES}")
        return _json(self._state.history(_choice(request), int(minutes)))

    async def _broker(self, request: web.Request) -> web.StreamResponse:
        id = int(request.match_info["id"])
        found = self._state.broker(id)
        if found is None:
            return _wrong(f"no broker {id} is known", web.HTTPNotFound.status_code)
        return _json(found | {"tables": await self._tables(id) if self._tables is not None else None})

    async def _event(self, request: web.Request) -> web.StreamResponse:
        """Looked for in memory, then in what was kept; one search at a time, for files may be large."""
        text = request.query.get("id", "")
        last = self._state.recent.last
        if text == "latest" and last is None:
            return _wrong("no event has been published since the dashboard was started", web.HTTPNotFound.status_code)
        try:
            event = last if text == "latest" and last is not None else parse_id(text)
        except ValueError as error:
            return _wrong(str(error))
        async with self._searching:
            return _json({"event": list(event)} | await asyncio.to_thread(self._search, event))

    def _search(self, event: EventId) -> dict[str, Any]:
        found = path(event, self._state.recent)
        if any(row["kind"] == "published" for row in found) or self._older is None:
            where = "recent rows in memory" + ("" if self._older else "; older ones are looked for with --older FOLDER")
            return {"rows": found, "where": where}
        kept = self._older()
        found = path(event, (value for source in (self._state.recent, kept) for value in source))
        unread = "" if kept.whole else ", not all of which could be read in time"
        return {"rows": found, "where": f"recent rows in memory and {kept.folder}{unread}"}


def _choice(request: web.Request) -> Choice:
    return Choice(request.query.get("cluster", "")[:255], request.query.get("strategy", "")[:255])


def _said(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def _json(value: Any) -> web.Response:
    return web.Response(
        body=orjson.dumps(value), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _wrong(said: str, status: int = web.HTTPBadRequest.status_code) -> web.Response:
    return web.Response(status=status, text=said + "\n")


def _packed() -> bytes:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return gzip.compress(get_plotlyjs().encode(), 5)
