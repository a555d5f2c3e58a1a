"""Connections between brokers: one conversation each, from the first HELLO to the last frame."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import structlog

from mercast.broker.addresses import parse_address
from mercast.broker.broker import Broker
from mercast.broker.clashes import same_elsewhere
from mercast.broker.on_the_way import OnTheWay
from mercast.broker.outgoing import OutgoingLink, unacknowledged
from mercast.membership.members import INCARNATIONS, Member, Members, from_json, to_json
from mercast.overlay.cluster import Cluster, address_of
from mercast.overlay.split import BROKER
from mercast.protocol.messages import Forward, HeartBeat, Message
from mercast.protocol.stimuli import Received, Unsent
from mercast.security import tls
from mercast.security.identity import Identity, against_peer, identities
from mercast.wire import hello
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError, frame, pong
from mercast.wire.peers import decode_message, encode_message, events_in, forward_frames

log = structlog.get_logger()

LINKING, ASKING = "broker", "asking"
"""What a dialling broker wants: to be linked, or only to tell of itself and hear who the members are."""


IN_HELLO = 256
"""Members that are told in a HELLO, which has to be small; a link tells the others later."""

_AHEAD_BYTES = 256 * 1024
"""What the network is given before it is taken: enough that it never waits for this broker."""

_PRESSING_BYTES = 2 * 1024 * 1024
"""What may wait before publishers have to: they are faster when they are not stopped at every moment."""

_CALLERS_BYTES = 1024 * 1024
"""What may wait to be written to one that has called and is not linked."""

_LAST = b"last"
"""The PING of a side that is about to hang up. A link carries all in order: what was sent before it has arrived when it
is answered."""

_ASKING_BACK = frame(Kind.PING, b"mine")
"""Of the side that is asked so: it shall know that what it has sent has arrived too."""


class Refusal(Exception):  # noqa: N818 - it is said to the other side
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Host(Protocol):
    """Who keeps the links of one cluster (broker/overlay.py)."""

    broker: Broker
    name: str
    """Of the cluster."""
    number: int
    place: int
    members: Members
    peer_address: str
    client_address: str

    @property
    def cluster(self) -> Cluster: ...

    def told(self, whom: int | None) -> list[Member]: ...
    def outlived(self, incarnation: int, teller: int, called: bool) -> bool: ...
    def greeted(self, link: "Link", role: str) -> None: ...
    def lost(self, link: "Link") -> None: ...
    def learn(self, members: list[Member], teller: int) -> None: ...


class Link(OutgoingLink):
    def __init__(
        self, host: Host, role: str | None = None, whom: int | None = None, others: Sequence[Host] = ()
    ) -> None:
        """`role` is what this side dials for; None if it was called, for this host or one of the others. `whom` is who
        should be there."""
        super().__init__()
        self.host, self.broker = host, host.broker
        self._hosts = {one.name: one for one in (host, *others)}
        self.role = role
        self.neighbour, self.incarnation = -1, 0
        self.refused, self.refuses = "", False
        """Why there is no link, and whether it is this side that wants none."""
        loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[None] = loop.create_future()
        """Both sides know each other."""
        self.closed: asyncio.Future[None] = loop.create_future()
        self._whom = whom
        self._written = self._taken = 0
        """Bytes in all, and how many of them the other side had taken when that was last looked at."""
        self._stuck: asyncio.TimerHandle | None = None
        self._full = False
        """Whether the network takes no more for now."""
        self._events = OnTheWay()
        self._secured = self._hung_up = False
        """Whether it is by TLS, and whether this side has closed it."""
        self._proved: list[Identity] = []
        """Who the other side is, by its certificate."""
        self._owed: list[bytes] = []
        """Answers to PINGs, and a PING in return: they come after all events that were to be sent before."""
        self._asked = self._answered = False
        """Whether the last PING was sent, and answered."""
        self._framing = Framing()
        self._deadline: asyncio.TimerHandle | None = None

    # -- the beginning -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.set_write_buffer_limits(high=_AHEAD_BYTES)
        if self.role is None:
            calls = self.broker.calls
            if len(calls) >= self.broker.config.max_peers:
                self.refuse("full", f"{len(calls)} others have called, and this broker takes no more")
                return
            calls.add(self)
        secured = transport.get_extra_info("ssl_object")
        self._secured = secured is not None
        self._proved = identities(secured.getpeercert()) if secured is not None else []
        if why := self._unproved(*self._hosts):
            self.refuse("certificate", why)
            return
        self.broker.strangers[self] = self.broker.now()
        seconds = self.broker.config.handshake_seconds
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.refuse, "protocol", f"no HELLO within {seconds} s")
        if self.role is not None:
            self._say_hello(self.role)

    def _unproved(self, *clusters: str) -> str:
        """Why its certificate, if there need be one, does not make the other side a broker of any of these."""
        if not self._secured or any(not against_peer(self._proved, cluster) for cluster in clusters):
            return ""
        return against_peer(self._proved, clusters[0])

    def _say_hello(self, role: str) -> None:
        config, core = self.broker.config, self.broker.core
        told = self.host.told(self.neighbour if self.neighbour >= 0 else self._whom)
        self.out.append(
            hello.hello(
                mercast=list(hello.VERSIONS),
                role=role,
                broker=core.me,
                incarnation=core.incarnation,
                cluster=self.host.name,
                number=self.host.number,
                strategy=config.strategy,
                peer=self.host.peer_address,
                clients=self.host.client_address,
                members=to_json(told[:IN_HELLO]),
            )
        )
        self.flush()

    def _greet(self, kind: int, body: bytes) -> None:
        said = hello.read_json(body)
        if kind == Kind.ERROR:
            self.refused = f"{said.get('code')}: {said.get('reason')}"
            # Whoever has called logs it by itself.
            if self.role is None and self.broker.said.first("refused", self.host_address, self.refused):
                log.warning("refused", address=self.address, reason=self.refused)
            raise ConnectionResetError(self.refused)
        if kind != Kind.HELLO:
            raise ProtocolError("the first frame is a HELLO (docs/wire.md)")
        self.version = hello.common_version(said.get("mercast"))
        config, role = self.broker.config, hello.field(said, "role", str, "client")
        if role not in (LINKING, ASKING):
            raise ProtocolError("this port is for brokers; clients use the client port")
        neighbour = hello.field(said, "broker", int)
        if not 0 <= neighbour < BROKER:
            raise ProtocolError(f"brokers have numbers from 0 to {BROKER - 1}")
        self._choose_host(said, neighbour)
        self._check(said, neighbour)
        members = _members(said.get("members", []))
        self.incarnation = hello.field(said, "incarnation", int)
        if self.incarnation not in INCARNATIONS:
            raise ProtocolError(f"incarnations are numbered 0 to {INCARNATIONS[-1]}")
        mine = max((member.incarnation for member in members if member.id == config.id), default=0)
        if self.host.outlived(mine, neighbour, self.role is not None):
            raise ConnectionResetError("this side begins anew")
        self.neighbour = neighbour
        self.broker.strangers.pop(self, None)
        self._framing.limit = FRAME_BYTES
        if self._deadline is not None:
            self._deadline.cancel()
        if self.role is None:
            self._say_hello(role)
        # Whoever only calls speaks for itself alone; whom this side has called, or is linked to, also of others.
        known = self.role is not None or role == LINKING
        self.host.learn([member for member in members if known or member.id == neighbour], neighbour)
        self.greeted.set_result(None)
        self.host.greeted(self, role)

    def _choose_host(self, said: dict[str, Any], neighbour: int) -> None:
        """For which of its clusters a broker is called the caller says; who is called can say no other."""
        theirs = hello.field(said, "cluster", str)
        host = self._hosts.get(theirs)
        if host is None:
            mine = " and ".join(map(repr, self._hosts))
            raise self._different("cluster", mine, repr(theirs), neighbour)
        self.host = host
        if why := self._unproved(theirs):
            raise Refusal("certificate", why)

    def _check(self, said: dict[str, Any], neighbour: int) -> None:
        config = self.broker.config
        known = self.host.members.get(neighbour)
        moved = known is not None and known.incarnation and known.peer != said.get("peer")
        if neighbour == config.id or (moved and neighbour in self.host.cluster.state.reachable):
            where = known.peer if known else self.host.peer_address
            raise Refusal("identity", f"broker {neighbour} is at {where} already: give each broker an id of its own")
        if clash := same_elsewhere(self.broker, self.host.place, neighbour, hello.field(said, "peer", str, "")):
            raise Refusal("identity", clash)
        number = hello.field(said, "number", int, self.host.number)  # which older brokers do not say
        if number != self.host.number:
            raise self._different("cluster-number", str(self.host.number), str(number), neighbour)
        strategy = hello.field(said, "strategy", str)
        if strategy != config.strategy:
            raise self._different("strategy", repr(config.strategy), repr(strategy), neighbour)

    def _different(self, key: str, mine: str, theirs: str, neighbour: int) -> Refusal:
        name = key.replace("-", " ")
        both = f"broker {self.broker.config.id} has {name} {mine}, broker {neighbour} has {theirs}"
        where = ", those that join it in --joins" if name != key else ""
        return Refusal(key.partition("-")[0], f"{both}: give all brokers that shall be linked the same --{key}{where}")

    # -- frames ------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            return  # TLS hands on what it has even then
        self.broker.counters.bytes_from_peers += len(data)
        try:
            frames = self._framing.feed(data)
            if self.neighbour < 0 and frames:
                self._greet(*frames.pop(0))
                frames += self._framing.feed(b"")  # what was too large to come before the HELLO
            if frames:
                self._read(frames)
        except ProtocolError as error:
            self.refuse(error.code, str(error))
        except Refusal as refusal:
            self.refuse(refusal.code, str(refusal))
        except ConnectionResetError:
            self.close()

    def _read(self, frames: list[tuple[int, bytes]]) -> None:
        me, messages = self.broker.config.id, list[Message]()
        for kind, body in frames:
            message = decode_message(kind, body, me)
            if message is not None:
                messages.append(message)
                self._note(message, body)
            elif kind == Kind.MEMBERS:
                if self._is_link():
                    self.host.learn(_members(hello.read_json(body).get("members")), self.neighbour)
            elif kind == Kind.PING:
                if body == _LAST and self._is_link():
                    self._owed.append(_ASKING_BACK)  # before the answer: then the other side hangs up
                self._owed.append(pong(body))
            elif kind == Kind.PONG:
                self._answered |= body == _LAST
                self._events.answered()
            elif kind == Kind.ERROR:
                said = hello.read_json(body)
                code, reason = said.get("code"), said.get("reason")
                log.warning("the other side ends the link", neighbour=self.neighbour, code=code, reason=reason)
        if messages and self._is_link():
            self.broker.take_all(Received(self.at, (message,)) for message in messages)
        if self.out or self._owed:
            self._give()

    def _note(self, message: Message, body: bytes) -> None:
        if type(message) is Forward:
            self.broker.counters.received += len(message.packets)
            self.received += len(message.packets)
            if len(message.packets) < events_in(body):
                self.broker.counters.dropped["unreadable"] += events_in(body) - len(message.packets)
        elif type(message) is HeartBeat and message.echo is not None:
            self._events.echoed(message.echo)

    @property
    def at(self) -> int:
        """The neighbour's address: also says in which cluster it is a neighbour."""
        return address_of(self.host.place, self.neighbour)

    def _is_link(self) -> bool:
        return self.broker.links.get(self.at) is self

    # -- what waits to be written ------------------------------------------------------------------------------------

    @property
    def most_queued(self) -> int:
        """Only control comes to that much, for events are not written then; or it is none of a link's business."""
        return 2 * self.broker.config.link_queue_bytes if self._is_link() else _CALLERS_BYTES

    @property
    def queued(self) -> int:
        return self.untaken + self._events.bytes

    @property
    def presses(self) -> bool:
        limit = min(_PRESSING_BYTES, self.broker.config.link_queue_bytes // 4)
        return self._full and self.queued > limit

    def send(self, messages: Iterable[Message]) -> None:
        """Events wait until the network takes them, and are dropped if too many do. Control never waits."""
        for message in messages:
            if type(message) is Forward:
                for forward, encoded in forward_frames(message):
                    if not self._has_room(len(encoded)):
                        self.broker.core.dropped["link queue full"] += len(forward.packets)
                    else:
                        self._events.add(forward, encoded)
            else:
                self._fill()
                if type(message) is HeartBeat:
                    self._events.beat(message.sent)
                self.out.append(encode_message(message))
        self._give()

    def _has_room(self, size: int) -> bool:
        most = self.broker.config.link_queue_bytes - size
        if self.queued > most:
            self._give()
        return self.queued <= most or not self.queued

    def _give(self) -> None:
        """To the network, until it has enough."""
        self._fill()
        while self.flush() and (self._events or self._owed):
            self._fill()

    def _fill(self) -> None:
        """Take as many events as the network should be given."""
        more = sum(map(len, self.out)) if self.out else 0
        while self._events and not self._full and self.untaken + more <= _AHEAD_BYTES:
            forward, encoded = self._events.give(self._written + more)
            self.broker.counters.forwarded += len(forward.packets)
            self.out.append(encoded)
            more += len(encoded)
        if self._owed and not self._events:
            for _ in range(self._owed.count(_ASKING_BACK)):
                self._events.ask()
            self.out += self._owed
            self._owed.clear()

    def flush(self) -> int:
        written = super().flush()
        self._written += written
        self.broker.counters.bytes_to_peers += written
        self._events.taken(self._left)
        return written

    @property
    def _left(self) -> int:
        """Bytes that may have left this process. Under TLS all may: how many wait below it cannot be seen."""
        return self._written if self._secured else self._written - self.untaken

    def pause_writing(self) -> None:
        self._full = True
        if self._is_link():
            self._watch()

    def resume_writing(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
        self._full = False
        self._give()  # which may fill it again
        if not self._events and self._is_link():
            self.broker.let_go(self.at)

    def _watch(self) -> None:
        """It may read slowly. If it reads nothing for as long as it may be silent, it is cut off."""
        self._taken = self._arrived()
        timing = self.broker.core.settings.timing
        self._stuck = asyncio.get_running_loop().call_later(timing.heart_beat * timing.misses, self._look)

    def _look(self) -> None:
        if self._arrived() <= self._taken:
            self.cut_off()
        else:
            self._watch()

    def _arrived(self) -> int:
        """Bytes that the other side has taken."""
        return self._written - self.untaken - (unacknowledged(self.transport) if self.transport else 0)

    def has_all(self) -> bool:
        """Whether the other side has read everything, before this one hangs up: it is asked once nothing waits here."""
        if not self._asked and not self.queued:
            self._asked = True
            self.out.append(frame(Kind.PING, _LAST))
            self._events.ask()
            self.flush()
        return self._answered

    def cut_off(self) -> None:
        self.broker.counters.denied["slow"] += 1
        log.warning("peer cut off", peer=self.neighbour, reason="it does not read", queued=self.queued)
        super().cut_off()

    # -- the end -----------------------------------------------------------------------------------------------------

    def refuse(self, code: str, reason: str) -> None:
        self.broker.counters.denied[code] += 1
        if not self.refused:
            self.refused, self.refuses = f"{code}: {reason}", True
        who = self.neighbour if self.neighbour >= 0 else self.address
        if self.broker.said.first("peer cut off", self.host_address, code, reason):
            log.warning("peer cut off", peer=who, code=code, reason=reason)
        self.part(hello.refusal(code, reason))

    def close(self) -> None:
        self._hung_up = True
        self.part()

    def eof_received(self) -> None:
        """The other side reads no more either: what waits is not for it."""
        if self._is_link():
            super().cut_off()

    def connection_lost(self, error: Exception | None) -> None:
        if self._secured and not (self.refused or self.greeted.done() or self._hung_up):
            # Under TLS, whoever calls thinks that all is well before its certificate has been looked at.
            self.refused = f"certificate: {tls.reason(error or ConnectionResetError())}"
        for timer in (self._deadline, self._stuck):
            if timer is not None:
                timer.cancel()
        self.broker.strangers.pop(self, None)
        self.host.lost(self)
        unsent, uncertain = self._events.end(self._left)
        if unsent:
            self.broker.take(Unsent(self.at, unsent))
        if uncertain:
            self.broker.core.dropped["link down"] += uncertain
        if not self.closed.done():
            self.closed.set_result(None)


def _members(said: Any) -> list[Member]:
    try:
        members = from_json(said)
        for member in members:
            parse_address(member.peer)
            if member.clients:
                parse_address(member.clients)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    return members
