"""Two linked brokers that are fuzzed, and what must hold meanwhile."""

import asyncio
import json
from contextlib import AsyncExitStack
from urllib.error import URLError

from fuzz.conversations import ADMIN, CLIENT, CLUSTER, PEER
from fuzz.playing import play
from fuzz.steady import Steady
from system.live import ERROR, HTTP, Mesh, ask, metrics, rss

MIB = 1024 * 1024
GROWTH = {False: 192 * MIB, True: 256 * MIB}
"""Of the memory of a broker since its start, for what strangers say, and for what those say that pass as brokers. It
keeps the types that anybody has declared, and what brokers tell it, up to limits. About 50 MiB were seen."""

_TOGETHER = 32
"""Conversations at a time."""

OPTIONS = ("--cluster", CLUSTER, "--handshake-seconds", "1", "--client-queue-bytes", str(MIB))


class Target:
    """`believed`: conversations are with brokers that take the other side for one of theirs. What such a peer says
    counts, so it may do harm to routes: then only what happens at one broker alone must go on."""

    def __init__(self, believed):
        self.believed = believed
        self._mesh = Mesh(2, [(1, 2)], options=OPTIONS)
        self._ends = AsyncExitStack()
        self._read = {}
        """How much of each log has been looked at."""

    async def __aenter__(self):
        await asyncio.to_thread(self._mesh.__enter__)
        async with AsyncExitStack() as ends:
            ends.callback(self._mesh.__exit__, Exception)  # its own look at the logs is not needed
            self.steady = await ends.enter_async_context(Steady(self._mesh.brokers, not self.believed))
            self._at_first = {id: rss(broker.pid) for id, broker in self._mesh.brokers.items()}
            self._ends = ends.pop_all()
        return self

    async def __aexit__(self, *_):
        await self._ends.aclose()

    @property
    def brokers(self):
        return self._mesh.brokers

    @property
    def grown(self):
        """Bytes, of the broker that has grown most."""
        return max(rss(broker.pid) - self._at_first[id] for id, broker in self.brokers.items())

    async def play(self, conversations):
        """With the first broker; the second hears of it only through the first."""
        room = asyncio.Semaphore(_TOGETHER)
        ports = {CLIENT: self.brokers[1].client, PEER: self.brokers[1].peer, ADMIN: self.brokers[1].admin}

        async def one(conversation):
            async with room:
                await play(conversation, ports[conversation.port])

        self.steady.go_on()
        await asyncio.gather(*map(one, conversations))

    async def problems(self):
        """What does not hold; each a sentence."""
        ended = [
            f"broker {broker.id} has ended with status {broker.process.returncode}; its log:\n{broker.tail()}"
            for broker in self.brokers.values()
            if broker.process.poll() is not None
        ]
        if ended:
            return ended
        found = await self.steady.problems() + await self.steady.visit()
        for broker in self.brokers.values():
            try:
                found += await asyncio.to_thread(self._seen_from_outside, broker)
            except (URLError, OSError, ValueError) as error:
                found.append(f"the admin port of broker {broker.id} does not answer: {error}")
            found += self._logged(broker)
            if rss(broker.pid) - self._at_first[broker.id] > GROWTH[self.believed]:
                before, now = (size // MIB for size in (self._at_first[broker.id], rss(broker.pid)))
                found.append(f"broker {broker.id} had {before} MiB of memory, and has {now} MiB")
        return found

    def _seen_from_outside(self, broker):
        defects = metrics(broker)["mercast_defects_total"]
        ready = ask(broker, "readyz")
        found = [] if ready["ready"] else [f"broker {broker.id} is no longer ready: {ready['reason']}"]
        return [*found, f"broker {broker.id} has {defects:.0f} defects"] if defects else found

    def _logged(self, broker):
        """Errors and exceptions since the last look. The library's own word about what is no HTTP is none of ours."""
        with broker.log.open("rb") as log:
            log.seek(self._read.get(broker.id, 0))
            new = log.read()
        whole = new.rfind(b"\n") + 1
        self._read[broker.id] = self._read.get(broker.id, 0) + whole
        lines = new[:whole].decode(errors="replace").splitlines()
        wrong = [line for line in lines if ERROR in line or "Traceback" in line or "exception" in line.lower()]
        return [
            f"broker {broker.id} logs: {_readable(line)}" for line in wrong if HTTP not in line or "/mercast/" in line
        ]


def _readable(line):
    try:
        said = json.loads(line)
    except ValueError:
        return line
    return f"{said.get('message')}\n{said.get('exception', '')}".strip()
