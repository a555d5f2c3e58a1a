"""Keeps this broker linked to the neighbours that follow from the members that are there, in one of its clusters.

Of two brokers the one with the lower number dials. The other one knocks: it dials, says who it is and hangs up; then it
is known, and dialled. The same knock finds out whether a member is there, and is how a broker joins a cluster.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping

import orjson
import structlog

from mercast.broker.addresses import parse_address
from mercast.broker.broker import Broker
from mercast.broker.clashes import clashes
from mercast.broker.config_kubernetes import STATIC
from mercast.broker.links import ASKING, IN_HELLO, LINKING, Link
from mercast.broker.seeking import LATE, SOON, Seeking, until
from mercast.membership.members import Member, to_json
from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.construct import neighbours
from mercast.overlay.topology import MOST_COST
from mercast.protocol.effects import UNWANTED
from mercast.protocol.stimuli import LinkDown, LinkUp
from mercast.security import tls
from mercast.wire.frames import Kind, frame

log = structlog.get_logger()

_WATCH = 1.0
"""Seconds between two looks at who is there."""

_KNOCKS = 3
"""Without the other side dialling, before this one does."""

_PART_WITHIN, _LOOK = 10.0, 0.05
"""Seconds for events to go another way before a link that is no longer wanted is closed; between two looks at that."""

_AHEAD = 30 * 24 * 3600.0
"""Seconds that a clock may have been set back by since an earlier life: more is a lie, or a clock without a battery."""

_MILLISECONDS = 1000
"""Of a second: what incarnations count."""


class Overlay:
    def __init__(self, broker: Broker, place: int, peer_address: str, client_address: str) -> None:
        self.broker, self.place = broker, place
        self.peer_address, self.client_address = peer_address, client_address
        clusters = broker.config.clusters()
        self._config = clusters[place]
        self.name, self.number = self._config.name, self._config.number
        self._also_in = tuple(one.name for one in clusters if one is not self._config)
        self.members = broker.members[place]
        self._me = broker.config.id
        self._keepers: dict[int, asyncio.Task[None]] = {}
        """A task for each neighbour that there should be a link to."""
        self._knocked: dict[int, asyncio.Event] = {}
        self._parting: dict[int, asyncio.Task[None]] = {}
        """A task for each link that is no longer wanted."""
        self._organises = broker.config.organise != "off"
        self._opened: set[int] = set()
        self._closed: set[int] = set()
        """Neighbours that the core wants, or does not want, whatever follows from the members."""
        self._answers: dict[int, bool] = {}
        """Whether the last try to reach a neighbour was answered."""
        needed = broker.config.membership == STATIC
        self._seeking = Seeking(self.members, self._config.seeds, self._ask, broker.now, peer_address, needed)
        self.finding: Callable[[], str] = lambda: ""
        """What is still to be heard, of the Kubernetes API for one, before this broker can know its place."""
        self._was_ready = False
        self._asking_back: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def cluster(self) -> Cluster:
        """What the core knows of it."""
        return self.broker.core.clusters[self.place]

    @property
    def links(self) -> dict[int, Link]:
        """Of this cluster, by neighbour."""
        links = self.broker.links.items()
        return {at & NUMBER: one for at, one in links if place_of(at) == self.place and isinstance(one, Link)}

    def begin(self) -> None:
        fixed = self._config.members.items()
        self.members.fix(Member(id, str(address)) for id, address in fixed if id != self._me)
        self._tasks = [*self._seeking.begin(), asyncio.create_task(self._watch())]
        self._rewire()

    def end(self) -> None:
        for task in (
            *self._keepers.values(),
            *self._parting.values(),
            *self._tasks,
            *filter(None, [self._asking_back]),
        ):
            task.cancel()

    # -- who should be a neighbour -----------------------------------------------------------------------------------

    def _wanted(self) -> set[int]:
        pairs, links = self._config.links, self.links
        if pairs:
            wanted = {one + other - self._me for one, other in pairs if self._me in (one, other)}
        else:
            leaving = self._leaving()
            present = self.members.present(self.broker.now()) - leaving
            # Those who leave hang up themselves: until then their clients and their events go by these links.
            wanted = neighbours({self._me, *present}, self._me, self.broker.config.degree) | (leaving & links.keys())
        if self._organises:
            self._closed &= self.cluster.state.reachable  # whoever is not gets its links back
            wanted = (wanted | self._opened) - self._closed
        return wanted & self.members.keys()

    def _leaving(self) -> set[int]:
        """Members without whom the overlay is to be built at once: a crashed one may be back soon, these say that they
        go. Where links move, the dearest may be something else."""
        return set() if self._organises else self.cluster.state.retiring

    def _rewire(self) -> None:
        wanted, links = self._wanted(), self.links
        for neighbour in wanted - self._keepers.keys():
            self._knocked[neighbour] = asyncio.Event()
            self._keepers[neighbour] = asyncio.create_task(self._keep(neighbour))
        for neighbour in self._keepers.keys() - wanted:
            self._keepers.pop(neighbour).cancel()
            del self._knocked[neighbour]
            self._answers.pop(neighbour, None)
        if wanted <= links.keys() and not self._organises:  # what is new stands before what is old goes
            for neighbour in sorted(links.keys() - wanted - self._parting.keys()):
                if links[neighbour].role is not None:  # whoever has dialled hangs up
                    self._parting[neighbour] = asyncio.create_task(self._part(links[neighbour]))

    def ready(self) -> tuple[bool, str]:
        """Linked to every neighbour that answers, and of one view with them; once so, always so."""
        if not self._was_ready:
            lacks = self.finding() or self._seeking.lacks()
            if lacks:
                return False, lacks
            for neighbour in self._keepers:
                if neighbour not in self.links and self._answers.get(neighbour, True):
                    return False, f"not linked to broker {neighbour} yet"
            for neighbour, known in self.cluster.neighbourhood.neighbours.items():
                if known.beat is None or known.differed:
                    return False, f"broker {neighbour} sees another overlay yet"
            self._was_ready = True
        return True, ""

    async def _watch(self) -> None:
        """Who is part of the overlay is there. Who was heard of, and has been away for long, will not come back."""
        since: dict[int, float] = {}
        broker, members, overfull = self.broker, self.members, set[int]()
        while True:
            await asyncio.sleep(_WATCH)
            now = broker.now()
            leaving = self._leaving()
            members.see(self.cluster.state.reachable - leaving, now)
            members.leave(leaving)
            self._take_hints()
            overfull = self._tell_of(overfull)
            self._tell_of_clashes()
            self.ready()  # from the moment it is, whether anybody asks or not
            lost = members.keys() - members.present(now) - members.fixed - members.hinted.keys()
            since = {id: since.get(id, now) for id in lost}
            for id, when in since.items():
                if now - when > broker.config.purge_after:
                    log.info("member forgotten", member=id)
                    members.forget(id)
            self._rewire()

    def _tell_of(self, known: set[int]) -> set[int]:
        """Log the peers that have this broker keep as much as they may, each when it is found out."""
        exchange, config = self.broker.core.exchange, self.broker.config
        overfull = {peer for peer in exchange.overfull if place_of(peer) == self.place}
        for peer in overfull - known:
            items, size = exchange.said[peer].size
            reason = (
                f"it may have {config.peer_items} items (peer_items) of {config.peer_bytes} bytes (peer_bytes) kept, "
                f"and all peers {config.all_peer_items} (all_peer_items) of {config.all_peer_bytes} (all_peer_bytes)"
            )
            log.warning(
                "peer refused: more control state is not taken in",
                peer=peer & NUMBER,
                reason=reason,
                items=items,
                bytes=size,
            )
        return overfull

    def _tell_of_clashes(self) -> None:
        """By the home of an edge, for all its clusters."""
        if self._also_in and not self.place:
            for clash in clashes(self.broker):
                if self.broker.said.first("clash", clash):
                    log.error("clusters that do not go together", reason=clash)

    # -- links -------------------------------------------------------------------------------------------------------

    async def _keep(self, neighbour: int) -> None:
        """Stay linked to a neighbour."""
        wait, knocks = SOON, 0
        while True:
            link = self.links.get(neighbour)
            if link is not None:
                await asyncio.wait([link.closed])
                wait, knocks = SOON, 0
            member = self.members.get(neighbour)
            if member is not None and neighbour not in self.links:
                # Where links move, the other side may have forgotten that it wants this one.
                dials = self._me < neighbour or (self._organises and knocks > _KNOCKS)
                role, knocks = LINKING if dials else ASKING, knocks + 1
                self._answers[neighbour] = await self._call(member.peer, role, neighbour) is not None
                if neighbour in self.links:
                    continue
            knocked = self._knocked[neighbour]
            knocked.clear()
            await until(knocked, wait * random.uniform(0.5, 1.5))
            wait = min(2 * wait, LATE)

    async def _ask(self, address: str, whom: int | None) -> str | None:
        return await self._call(address, ASKING, whom)

    async def _call(self, address: str, role: str, whom: int | None) -> str | None:
        """Dial somebody. Empty once both know each other, else who refuses and why; None if nobody answers."""
        link = Link(self, role, whom)
        try:
            host, port = parse_address(address)
            async with asyncio.timeout(self.broker.config.handshake_seconds):
                secured = self.broker.security.calling
                await asyncio.get_running_loop().create_connection(lambda: link, host, port, ssl=secured)
                await asyncio.wait([link.greeted, link.closed], return_when=asyncio.FIRST_COMPLETED)
        except ssl.SSLError as error:
            link.refused = f"certificate: {tls.reason(error)}"
        except (OSError, TimeoutError, ValueError):
            link.close()
            return None
        if link.refused:
            if self.broker.said.first("refused", address, link.refused):
                log.warning("refused", address=address, reason=link.refused)
            return f"{'is refused' if link.refuses else 'refuses'}: {link.refused}"
        return "" if link.greeted.done() else None

    def greeted(self, link: Link, role: str) -> None:
        """Both sides know each other now."""
        neighbour = link.neighbour
        if neighbour not in self._leaving():
            self.members.see((neighbour,), self.broker.now())
        if role == ASKING or link.role == ASKING:
            link.close()  # all has been said
        else:
            self._link(neighbour, link)
        self._rewire()
        if neighbour in self._knocked:
            self._knocked[neighbour].set()

    def _link(self, neighbour: int, link: Link) -> None:
        if neighbour in self.links:  # the other side has given that one up
            self.unlink(neighbour, "replaced by another")
        self.broker.links[link.at] = link
        log.info("linked", neighbour=neighbour, cluster=self.name, address=link.address, version=link.version)
        if rest := self.told(neighbour)[IN_HELLO:]:
            link.out.append(frame(Kind.MEMBERS, orjson.dumps({"members": to_json(rest)})))
            link.flush()
        self.broker.take(LinkUp(link.at, link.incarnation))

    async def _part(self, link: Link) -> None:
        """Hang up, once events go another way and what is on this one has arrived."""
        broker, neighbour, began = self.broker, link.neighbour, self.broker.now()
        broker.take(LinkUp(link.at, link.incarnation, MOST_COST))
        while not link.closed.done() and broker.now() < began + _PART_WITHIN:
            await asyncio.sleep(_LOOK)
            if neighbour in self._wanted():
                del self._parting[neighbour]
                broker.take(LinkUp(link.at, link.incarnation))
                return
            if self.cluster.neighbourhood.is_known_since(began) and link.has_all():
                break
        del self._parting[neighbour]
        if broker.links.get(link.at) is link:
            self.unlink(neighbour, "no longer a neighbour")

    def lost(self, link: Link) -> None:
        self.broker.calls.discard(link)
        if self.broker.links.get(link.at) is link:
            del self.broker.links[link.at]
            self.broker.let_go(link.at)
            log.info("link lost", neighbour=link.neighbour, cluster=self.name)
            self.broker.take(LinkDown(link.at))

    def link(self, neighbour: int) -> None:
        """The core wants it for a neighbour."""
        self._opened.add(neighbour)
        self._closed.discard(neighbour)
        self._rewire()

    def unlink(self, neighbour: int, reason: str) -> None:
        """The core has given a link up, or it is no longer wanted."""
        if reason == UNWANTED:
            self._opened.discard(neighbour)
            self._closed.add(neighbour)
            self._rewire()
        link = self.links.get(neighbour)
        if link is not None and link.transport is not None:
            self.lost(link)
            log.info("link closed", neighbour=neighbour, cluster=self.name, reason=reason)
            link.transport.abort()

    # -- members -----------------------------------------------------------------------------------------------------

    def told(self, whom: int | None) -> list[Member]:
        """Whom others are told of: this broker, what is known of the one that is spoken to, and who is there."""
        core, members = self.broker.core, self.members
        me = Member(core.me, self.peer_address, self.client_address, core.incarnation, self._also_in)
        there = sorted(members.present(self.broker.now()), key=lambda id: id != whom)
        absent = [whom] if whom is not None and whom in members.keys() - set(there) else []
        return [me, *(members[id] for id in (*absent, *there))]

    def hint(self, addresses: Mapping[int, str]) -> None:
        """Where members may be found, all of them: those that are hinted at no more are forgotten as any others are."""
        self.members.hinted = dict(addresses)
        self._take_hints()

    def _take_hints(self) -> None:
        if news := self.members.take_hints(self.cluster.state.reachable | self.links.keys()):
            log.info("members", hinted=news, all=len(self.members), cluster=self.name)
            self._seeking.heard_of_more(news)
            self._rewire()
            for id in self._knocked.keys() & set(news):
                self._knocked[id].set()

    def learn(self, members: list[Member], teller: int) -> None:
        news = self.members.learn(members)
        if not news:
            return
        log.info("members", new=[member.id for member in news], all=len(self.members), cluster=self.name)
        said = frame(Kind.MEMBERS, orjson.dumps({"members": to_json(news)}))
        for neighbour, link in self.links.items():
            if neighbour != teller:
                link.out.append(said)
                link.flush()
        self._seeking.heard_of_more()
        self._rewire()

    def outlived(self, incarnation: int, teller: int, called: bool) -> bool:
        """Others have met a later incarnation of this broker: its clock was set back. Whether it begins anew.

        Anybody can call and say so: whom this broker has not called itself it calls back, and asks.
        """
        broker = self.broker
        if self._was_ready or incarnation <= broker.core.incarnation:
            return False
        if incarnation > _MILLISECONDS * (broker.now() + _AHEAD):
            if broker.said.first("no earlier life", str(teller)):
                reason = "it lies too far beyond the clock; if that is wrong, set it right and start this broker again"
                log.warning("no earlier life of this broker", told_by=teller, incarnation=incarnation, reason=reason)
            return False
        if not called:
            if self._asking_back is None or self._asking_back.done():
                self._asking_back = asyncio.create_task(self._ask_back(teller))
            return False
        log.warning("the clock is behind an earlier life of this broker", incarnation=incarnation)
        broker.begin_anew(incarnation + 1)
        return True

    async def _ask_back(self, id: int) -> None:
        member = self.members.get(id)
        if member is not None:
            await self._ask(member.peer, id)
