"""What brokers' admin ports tell: counters of each, and the overlay as one of each cluster sees it.

How often they are asked follows from how many they are, so that this costs about the same for three and for a hundred.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from mercast.broker.addresses import Address, parse_address
from mercast.dashboard.missing import AWAY, THERE, Source
from mercast.dashboard.view import State

_EVERY = 1.0
_A_SECOND = 100
"""Brokers that are asked."""
_ANSWER_WITHIN = 2.0
_MOST_BYTES = 16 * 1024 * 1024
_AT_ONCE = 16
_MOST_FOUND = 1_000
_NAMED = 3
_UNAUTHORIZED, _OK = 401, 200


class AdminSource:
    """`find` says whether brokers of this machine may be looked for: their admin port is next to the one for peers."""

    def __init__(
        self, addresses: Sequence[tuple[Address, bool]], token: str, state: State, ssl: Any = None, find: bool = True
    ) -> None:
        """Addresses, each with whether it is by TLS."""
        self._given = [_url(*one) for one in addresses]
        self._urls = dict.fromkeys(self._given, -1)
        """By URL, the broker that answers there."""
        self._token, self._state, self._ssl, self._find = token, state, ssl, find and not token
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._session: ClientSession | None = None
        self._why = ""

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connector = TCPConnector(ssl=self._ssl if self._ssl is not None else True, force_close=True)
        timeout = ClientTimeout(total=_ANSWER_WITHIN)
        async with ClientSession(headers=headers, connector=connector, timeout=timeout) as self._session:
            while True:
                began = time.monotonic()
                await self._ask_all()
                every = self._state.brokers.asked_every = max(_EVERY, len(self._urls) / _A_SECOND)
                await asyncio.sleep(max(_EVERY / 4, every - (time.monotonic() - began)))

    async def tables(self, broker: int) -> Mapping[str, Any] | None:
        """Of one broker, if its admin port is known and answers."""
        url = next((url for url, id in self._urls.items() if id == broker), None)
        said = None if url is None else await self._get(url, "tables")
        return said if said is not None and said.get("broker") == broker else None

    async def _ask_all(self) -> None:
        said = await asyncio.gather(*(self._counters(url) for url in list(self._urls)))
        answered = [one for one in said if one is not None]
        first: dict[str, str] = {}
        for url, cluster in answered:
            first.setdefault(cluster, url)
        for overlay in await asyncio.gather(*(self._get(url, "overlay") for url in first.values())):
            if overlay is not None:
                self._take(self._state.brokers.take_overlay, overlay)
                self._look_around(overlay)
        asked = [url.partition("://")[2] for url in self._given]
        some = ", ".join(asked[:_NAMED]) + (", …" if len(asked) > _NAMED else "")
        shown = f"{len(answered)} of {len(self._urls)} answer" if answered else some
        self._state.told.admin = Source(THERE if answered else AWAY, shown, "" if answered else self._why)

    async def _counters(self, url: str) -> tuple[str, str] | None:
        """The URL and the cluster of the broker there; one that does not know of counters says at least that it is."""
        said = await self._get(url, "counters")
        if said is None:
            return None
        self._take(self._state.brokers.take_counters, said)
        self._urls[url] = said.get("broker", -1)
        return url, str(said.get("cluster"))

    async def _get(self, url: str, path: str) -> dict[str, Any] | None:
        assert self._session is not None
        async with self._gate:
            try:
                async with self._session.get(f"{url}/{path}", allow_redirects=False) as answer:
                    body = await answer.content.read(_MOST_BYTES)
                    while not answer.content.at_eof() and len(body) < _MOST_BYTES:
                        body += await answer.content.read(_MOST_BYTES)
            except (ClientError, OSError, TimeoutError) as error:
                self._why = "" if isinstance(error, OSError) else str(error)
                return None
        if answer.status != _OK:
            asks = "it asks for a token: --admin-token" if answer.status == _UNAUTHORIZED else f"status {answer.status}"
            self._why = f"{url}/{path}: {asks}"
            return None
        self._state.told.bytes += len(body)
        try:
            said = orjson.loads(body)
        except orjson.JSONDecodeError:
            self._why = f"{url} is not the admin port of a broker"
            return None
        return said if isinstance(said, dict) else None

    def _take(self, take: Any, said: Mapping[str, Any]) -> None:
        try:
            take(said, time.monotonic())
        except (KeyError, TypeError, ValueError, AttributeError):
            self._state.told.unreadable += 1

    def _look_around(self, overlay: Mapping[str, Any]) -> None:
        """`mercast local` gives each broker three ports in a row, for clients, peers and admins."""
        if not self._find or not all("127.0.0.1" in url for url in self._given):
            return
        known = set(self._urls.values())
        for view in (overlay, *overlay.get("others", ())):
            for member in view["members"]:
                peer = parse_address(member["peer_address"])
                if member["id"] not in known and peer.is_loopback and len(self._urls) < _MOST_FOUND:
                    self._urls.setdefault(_url(Address(peer.host, peer.port + 1), False), -1)


def _url(address: Address, tls: bool) -> str:
    return f"{'https' if tls else 'http'}://{address}"
