"""Connections between brokers: one conversation each, from the first HELLO to the last frame."""

import asyncio
from collections import deque
from typing import Any, Protocol

import structlog

from mercast.broker.addresses import parse_address
from mercast.broker.broker import Broker
from mercast.broker.outgoing import Outgoing
from mercast.membership.members import Member, from_json, to_json
from mercast.overlay.split import BROKER
from mercast.protocol.messages import Forward, Message
from mercast.protocol.stimuli import Received
from mercast.security import tls
from mercast.security.identity import against_peer, identities
from mercast.wire import hello
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError, pong
from mercast.wire.peers import decode_message, events_in

log = structlog.get_logger()

LINKING, ASKING = "broker", "asking"
"""What a dialling broker wants: to be linked, or only to tell of itself and hear who the members are."""


IN_HELLO = 256
"""Members that are told in a HELLO, which has to be small; a link tells the others later."""

_AHEAD_BYTES = 2 * 1024 * 1024
"""What is handed to the network before it is taken, and lost if the link goes down."""

_CALLERS_BYTES = 1024 * 1024
"""What may wait to be written to one that has called and is not linked."""


class Refusal(Exception):  # noqa: N818 - it is said to the other side
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Host(Protocol):
    """Who keeps the links (broker/overlay.py)."""

    broker: Broker
    peer_address: str
    client_address: str
    calls: set["Link"]

    def told(self, whom: int | None) -> list[Member]: ...
    def outlived(self, incarnation: int) -> bool: ...
    def greeted(self, link: "Link", role: str) -> None: ...
    def lost(self, link: "Link") -> None: ...
    def learn(self, members: list[Member], teller: int) -> None: ...


class Link(Outgoing):
    def __init__(self, host: Host, role: str | None = None, whom: int | None = None) -> None:
        """`role` is what this side dials for; None if it was called. `whom` is who should be there."""
        super().__init__()
        self.host, self.broker = host, host.broker
        self.role = role
        self.neighbour, self.incarnation = -1, 0
        self.refused = ""
        """Why the other side wants no link."""
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
        self._waiting: deque[tuple[Forward, bytes]] = deque()
        """Events that wait here meanwhile: if the link goes down, they find another way."""
        self._waiting_bytes = 0
        self._secured = self._hung_up = False
        """Whether it is by TLS, and whether this side has closed it."""
        self._framing = Framing()
        self._deadline: asyncio.TimerHandle | None = None

    # -- the beginning -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.set_write_buffer_limits(high=min(_AHEAD_BYTES, self.broker.config.link_queue_bytes // 4))
        if self.role is None:
            if len(self.host.calls) >= self.broker.config.max_peers:
                self.refuse("full", f"{len(self.host.calls)} others have called, and this broker takes no more")
                return
            self.host.calls.add(self)
        secured = transport.get_extra_info("ssl_object")
        self._secured = secured is not None
        if secured is not None and (why := against_peer(identities(secured.getpeercert()), self.broker.config.cluster)):
            self.refuse("certificate", why)
            return
        seconds = self.broker.config.handshake_seconds
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.refuse, "protocol", f"no HELLO within {seconds} s")
        if self.role is not None:
            self._say_hello(self.role)

    def _say_hello(self, role: str) -> None:
        config, core = self.broker.config, self.broker.core
        told = self.host.told(self.neighbour if self.neighbour >= 0 else self._whom)
        self.out.append(
            hello.hello(
                mercast=list(hello.VERSIONS),
                role=role,
                broker=core.me,
                incarnation=core.incarnation,
                cluster=config.cluster,
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
            if self.role is None:  # whoever has called logs it by itself
                log.warning("refused", address=self.address, reason=self.refused)
            raise ConnectionResetError(self.refused)
        if kind != Kind.HELLO:
            raise ProtocolError("the first frame is a HELLO (docs/wire.md)")
        hello.common_version(said.get("mercast"))
        config, role = self.broker.config, hello.field(said, "role", str, "client")
        if role not in (LINKING, ASKING):
            raise ProtocolError("this port is for brokers; clients use the client port")
        neighbour = hello.field(said, "broker", int)
        if not 0 <= neighbour < BROKER:
            raise ProtocolError(f"brokers have numbers from 0 to {BROKER - 1}")
        self._check(said, neighbour)
        members = _members(said.get("members", []))
        if any(member.id == config.id and self.host.outlived(member.incarnation) for member in members):
            raise ConnectionResetError("this side begins anew")
        self.incarnation = hello.field(said, "incarnation", int)
        self.neighbour = neighbour
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

    def _check(self, said: dict[str, Any], neighbour: int) -> None:
        config = self.broker.config
        known = self.broker.members.get(neighbour)
        moved = known is not None and known.incarnation and known.peer != said.get("peer")
        if neighbour == config.id or (moved and neighbour in self.broker.core.state.reachable):
            where = known.peer if known else self.host.peer_address
            raise Refusal("identity", f"broker {neighbour} is at {where} already: give each broker an id of its own")
        for key, mine in (("cluster", config.cluster), ("strategy", config.strategy)):
            theirs = hello.field(said, key, str)
            if theirs != mine:
                raise Refusal(key, f"broker {config.id} has {key} {mine!r}, broker {neighbour} has {theirs!r}")

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
                if type(message) is Forward:
                    self.broker.counters.received += len(message.packets)
                    if len(message.packets) < events_in(body):
                        self.broker.counters.dropped["unreadable"] += events_in(body) - len(message.packets)
            elif kind == Kind.MEMBERS:
                if self._is_link():
                    self.host.learn(_members(hello.read_json(body).get("members")), self.neighbour)
            elif kind == Kind.PING:
                self.out.append(pong(body))
            elif kind == Kind.ERROR:
                said = hello.read_json(body)
                code, reason = said.get("code"), said.get("reason")
                log.warning("the other side ends the link", neighbour=self.neighbour, code=code, reason=reason)
        if messages and self._is_link():
            self.broker.take_all(Received(self.neighbour, (message,)) for message in messages)
        if self.out:
            self.flush()

    def _is_link(self) -> bool:
        return self.broker.links.get(self.neighbour) is self

    # -- what waits to be written ------------------------------------------------------------------------------------

    @property
    def most_queued(self) -> int:
        """Events are dropped long before that: it is control, or none of a link's business."""
        return 2 * self.broker.config.link_queue_bytes if self._is_link() else _CALLERS_BYTES

    @property
    def queued(self) -> int:
        return self.untaken + self._waiting_bytes

    def forward(self, message: Forward, encoded: bytes) -> None:
        if self._full:
            self._waiting.append((message, encoded))
            self._waiting_bytes += len(encoded)
        else:
            self.out.append(encoded)

    def unsent(self) -> tuple[Forward, ...]:
        """The events that wait; they no longer do."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        return tuple(message for message, _ in waiting)

    def flush(self) -> int:
        written = super().flush()
        self._written += written
        self.broker.counters.bytes_to_peers += written
        return written

    def pause_writing(self) -> None:
        if self._is_link():
            self._full = True
            self.broker.link_full(self.neighbour, True)
            self._watch()

    def resume_writing(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
        self._full = False
        while self._waiting and not self._full:  # writing may fill it again
            _, encoded = self._waiting.popleft()
            self._waiting_bytes -= len(encoded)
            self.out.append(encoded)
            self.flush()
        if self._is_link() and not self._full:
            self.broker.link_full(self.neighbour, False)

    def _watch(self) -> None:
        """It may read slowly. If it reads nothing for as long as it may be silent, it is cut off."""
        self._taken = self._written - self.untaken
        timing = self.broker.core.settings.timing
        self._stuck = asyncio.get_running_loop().call_later(timing.heart_beat * timing.misses, self._look)

    def _look(self) -> None:
        if self._written - self.untaken == self._taken:
            self.cut_off()
        else:
            self._watch()

    def cut_off(self) -> None:
        self.broker.counters.denied["slow"] += 1
        log.warning("peer cut off", peer=self.neighbour, reason="it does not read", queued=self.queued)
        super().cut_off()

    # -- the end -----------------------------------------------------------------------------------------------------

    def refuse(self, code: str, reason: str) -> None:
        self.broker.counters.denied[code] += 1
        self.refused = self.refused or f"{code}: {reason}"
        who = self.neighbour if self.neighbour >= 0 else self.address
        log.warning("peer cut off", peer=who, code=code, reason=reason)
        self.part(hello.refusal(code, reason))

    def close(self) -> None:
        self._hung_up = True
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self._secured and not (self.refused or self.greeted.done() or self._hung_up):
            # Under TLS, whoever calls thinks that all is well before its certificate has been looked at.
            self.refused = f"certificate: {tls.reason(error or ConnectionResetError())}"
        for timer in (self._deadline, self._stuck):
            if timer is not None:
                timer.cancel()
        self.host.lost(self)
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
