"""Keeps this broker linked to the neighbours that the member list gives it.

Of two brokers the one with the lower number dials. The other one knocks: it dials, says who it is and hangs up; then it
is known, and dialled. The same knock on a seed address is how a broker joins a cluster.
"""

import asyncio
import random

import orjson
import structlog

from mercast.broker.addresses import parse_address
from mercast.broker.broker import Broker
from mercast.broker.links import ASKING, LINKING, Link
from mercast.membership.members import Member, to_json
from mercast.overlay.construct import neighbours
from mercast.protocol.stimuli import LinkDown, LinkUp
from mercast.wire.frames import Kind, frame

log = structlog.get_logger()

_SOON, _LATE = 0.1, 5.0
"""Seconds between two tries to reach somebody: they double from the first to the second."""

_SEEDS_AGAIN = 30.0
"""Seconds between knocks on the seeds when all is well: halves of a cluster that lost each other find together."""


class Overlay:
    def __init__(self, broker: Broker, peer_address: str, client_address: str) -> None:
        self.broker = broker
        self.peer_address, self.client_address = peer_address, client_address
        self._me = broker.config.id
        self._keepers: dict[int, asyncio.Task[None]] = {}
        """A task for each neighbour that there should be a link to."""
        self._knocked: dict[int, asyncio.Event] = {}
        self._answers: dict[int, bool] = {}
        """Whether the last try to reach a neighbour was answered."""
        self._asked_seeds = not broker.config.seeds
        self._was_ready = False
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        config = self.broker.config
        self.broker.members.fix(
            Member(id, str(address)) for id, address in config.static_members().items() if id != self._me
        )
        self.broker.readiness = self._ready
        self._tasks = [asyncio.create_task(self._forget_the_lost())]
        if config.seeds:
            self._tasks.append(asyncio.create_task(self._ask_seeds()))
        self._rewire()

    def end(self) -> None:
        for task in (*self._keepers.values(), *self._tasks):
            task.cancel()

    # -- who should be a neighbour -----------------------------------------------------------------------------------

    def _wanted(self) -> set[int]:
        config = self.broker.config
        if config.links:
            pairs = [tuple(map(int, link.split("-"))) for link in config.links]
            return {one + other - self._me for one, other in pairs if self._me in (one, other)}
        return neighbours({self._me, *self.broker.members}, self._me, config.degree)

    def _rewire(self) -> None:
        wanted = self._wanted() & self.broker.members.keys()
        for neighbour in wanted - self._keepers.keys():
            self._knocked[neighbour] = asyncio.Event()
            self._keepers[neighbour] = asyncio.create_task(self._keep(neighbour))
        for neighbour in self._keepers.keys() - wanted:
            self._keepers.pop(neighbour).cancel()
            self._answers.pop(neighbour, None)
            if self._me < neighbour and neighbour in self.broker.links:
                self.unlink(neighbour, "no longer a neighbour")

    def _ready(self) -> tuple[bool, str]:
        """Linked to every neighbour that answers, and of one view with them; once so, always so."""
        if not self._was_ready:
            if not self._asked_seeds:
                return False, "no seed has answered yet"
            for neighbour in self._keepers:
                if neighbour not in self.broker.links and self._answers.get(neighbour, True):
                    return False, f"not linked to broker {neighbour} yet"
            for neighbour, known in self.broker.core.neighbourhood.neighbours.items():
                if known.beat is None or known.differed:
                    return False, f"broker {neighbour} sees another overlay yet"
            self._was_ready = True
        return True, ""

    # -- links -------------------------------------------------------------------------------------------------------

    async def _keep(self, neighbour: int) -> None:
        """Stay linked to a neighbour."""
        wait = _SOON
        while True:
            link = self.broker.links.get(neighbour)
            if isinstance(link, Link):
                await asyncio.wait([link.closed])
                wait = _SOON
            member = self.broker.members.get(neighbour)
            if member is not None and neighbour not in self.broker.links:
                role = LINKING if self._me < neighbour else ASKING
                self._answers[neighbour] = await self._call(member.peer, role)
                if neighbour in self.broker.links:
                    continue
            knocked = self._knocked[neighbour]
            knocked.clear()
            await _either(knocked, wait * random.uniform(0.5, 1.5))
            wait = min(2 * wait, _LATE)

    async def _call(self, address: str, role: str) -> bool:
        """Dial somebody; whether there was an answer. Returns when the link is up, or the conversation is over."""
        loop = asyncio.get_running_loop()
        link = Link(self, role)
        try:
            host, port = parse_address(address)
            async with asyncio.timeout(self.broker.config.handshake_seconds):
                await loop.create_connection(lambda: link, host, port)
                while not link.closed.done() and self.broker.links.get(link.neighbour) is not link:
                    await asyncio.wait([link.closed], timeout=_SOON / 10)
        except (OSError, TimeoutError, ValueError):
            link.close()
            return False
        if link.refused:
            log.warning("refused", address=address, reason=link.refused)
        return link.neighbour >= 0

    def greeted(self, link: Link, role: str) -> None:
        """Both sides know each other now."""
        neighbour = link.neighbour
        if role == ASKING or link.role == ASKING:
            if link.role is not None:
                link.close()  # this side has called, and heard all that it wanted
            if neighbour in self._knocked:
                self._knocked[neighbour].set()
            return
        before = self.broker.links.get(neighbour)
        if isinstance(before, Link):  # the other side has given that one up
            self.lost(before)
            before.close()
        self.broker.links[neighbour] = link
        log.info("linked", neighbour=neighbour, address=link.address)
        self.broker.take(LinkUp(neighbour, link.incarnation))
        if neighbour in self._knocked:
            self._knocked[neighbour].set()

    def lost(self, link: Link) -> None:
        if self.broker.links.get(link.neighbour) is link:
            del self.broker.links[link.neighbour]
            log.info("link lost", neighbour=link.neighbour)
            self.broker.take(LinkDown(link.neighbour))

    def unlink(self, neighbour: int, reason: str) -> None:
        """The core has given a link up, or it is no longer wanted."""
        link = self.broker.links.get(neighbour)
        if isinstance(link, Link) and link.transport is not None:
            self.lost(link)
            log.info("link closed", neighbour=neighbour, reason=reason)
            link.transport.abort()

    # -- members -----------------------------------------------------------------------------------------------------

    def learn(self, members: list[Member], teller: int) -> None:
        news = self.broker.members.learn(members)
        if not news:
            return
        log.info("members", new=[member.id for member in news], all=len(self.broker.members))
        said = frame(Kind.MEMBERS, orjson.dumps({"members": to_json(news)}))
        for neighbour, link in self.broker.links.items():
            if neighbour != teller:
                link.out.append(said)
                link.flush()
        self._rewire()

    async def _ask_seeds(self) -> None:
        wait = _SOON
        while True:
            answered = [
                await self._call(seed, ASKING) for seed in self.broker.config.seeds if seed != self.peer_address
            ]
            self._asked_seeds = self._asked_seeds or any(answered) or not answered
            wait = _SEEDS_AGAIN if self._asked_seeds else min(2 * wait, _LATE)
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))

    async def _forget_the_lost(self) -> None:
        """Members that were heard of, and have been out of reach for so long that they will not come back."""
        since: dict[int, float] = {}
        while True:
            await asyncio.sleep(_LATE)
            now, reachable = self.broker.now(), self.broker.core.state.reachable
            lost = self.broker.members.keys() - reachable - self.broker.members.fixed
            since = {id: since.get(id, now) for id in lost}
            for id, when in since.items():
                if now - when > self.broker.config.purge_after:
                    log.info("member forgotten", member=id)
                    self.broker.members.forget(id)
            self._rewire()


async def _either(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
