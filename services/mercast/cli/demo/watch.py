"""The brokers as the machine and their admin ports show them."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import aiohttp

from mercast.broker.local import Local, NotReady
from mercast_loadtest.bench.processes import cpu_seconds, resident_bytes

_ANSWER_WITHIN = aiohttp.ClientTimeout(total=2.0)
_PERCENT = 100.0


@dataclass
class Usage:
    """Of a process."""

    cpu_seconds: float
    cpu_percent: float
    """Of one processor, since the last look."""
    memory_bytes: int


class Watch:
    def __init__(self, mesh: Local, http: aiohttp.ClientSession) -> None:
        self._mesh, self._http = mesh, http
        self._looked = 0.0
        self.usage: dict[int, Usage] = {}
        """By process; none but on Linux."""
        self.links: dict[int, set[int]] = {}
        """Neighbours, by broker."""

    async def look(self, at: int) -> None:
        """Look at all processes, and at the overlay as one broker sees it. NotReady, if one has ended by itself."""
        for broker in self._mesh.brokers.values():
            if broker.process is not None and broker.process.poll() is not None:
                raise NotReady(f"broker {broker.id} has ended; its log:\n{broker.tail()}")
        self._look_at_processes()
        seen = await self._ask(at, "overlay")
        if seen:
            self.links = {}
            for one, other in (link["between"] for link in seen["overlay"]["links"] if link["state"] == "up"):
                self.links.setdefault(one, set()).add(other)
                self.links.setdefault(other, set()).add(one)

    async def is_ready(self, broker: int) -> bool:
        return bool((await self._ask(broker, "readyz")).get("ready"))

    async def all_see(self, brokers: Iterable[int], of: int, reachable: bool) -> bool:
        """Whether all these brokers see that another one is reachable, or is not."""
        views = await asyncio.gather(*(self._ask(broker, "overlay") for broker in brokers))
        return all(view and reachable == (of in _reachable(view)) for view in views)

    def _look_at_processes(self) -> None:
        now = monotonic()
        pids = [broker.process.pid for broker in self._mesh.brokers.values() if broker.process is not None]
        before, self.usage = self.usage, {}
        for pid in (os.getpid(), *pids):
            usage = _usage(pid)
            if usage is not None:
                if pid in before:
                    spent = usage.cpu_seconds - before[pid].cpu_seconds
                    usage.cpu_percent = _PERCENT * spent / (now - self._looked)
                self.usage[pid] = usage
        self._looked = now

    async def _ask(self, broker: int, path: str) -> dict[str, Any]:
        """Empty, if there is no answer."""
        url = f"http://{self._mesh[broker].admin}/{path}"
        try:
            async with self._http.get(url, timeout=_ANSWER_WITHIN) as answer:
                return dict(await answer.json())
        except (aiohttp.ClientError, TimeoutError):
            return {}


def _reachable(view: dict[str, Any]) -> set[int]:
    return {one["id"] for one in view["overlay"]["brokers"] if one["reachable"]}


def _usage(pid: int) -> Usage | None:
    try:
        return Usage(cpu_seconds(pid), 0.0, resident_bytes(pid))
    except OSError:
        return None
