"""Clients' connections."""

import asyncio
import time
from itertools import count

import structlog

from mercast import __version__
from mercast.broker.admission import guard_for
from mercast.broker.broker import Broker
from mercast.broker.outgoing import Outgoing, keep_alive
from mercast.content.errors import ContentError
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.protocol.stimuli import Advertise, Declare, Leave, Publish, Stimulus, Subscribe
from mercast.security.guard import Guard
from mercast.security.tokens import hash_of
from mercast.wire import hello, replies
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError, pong
from mercast.wire.requests import Refused, read_publish, read_request

log = structlog.get_logger()

_numbers = count(1)

DRAINING = "draining", "this broker is about to stop: try another"


class Session(Outgoing):
    def __init__(self, broker: Broker, live: set["Session"]) -> None:
        super().__init__()
        self.broker = broker
        self.client = ""
        """The id that the client was given; empty until it has said who it is."""
        self._hash: bytes | None = None
        """Of its token."""
        self._guard: Guard | None = None
        self._denied = False
        """Whether something was denied to it: that is logged once."""
        self._live = live
        self._framing = Framing()
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        return self.client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.broker.draining:
            self.refuse(*DRAINING)
            return
        if len(self._live) >= self.broker.config.max_clients:
            self.refuse("full", f"this broker has {len(self._live)} clients, and takes no more")
            return
        self._live.add(self)
        keep_alive(transport)
        seconds = self.broker.config.handshake_seconds
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.refuse, "protocol", f"no HELLO within {seconds} s")

    def connection_lost(self, _: Exception | None) -> None:
        self._live.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self.broker.sessions.get(self.client) is self:
            del self.broker.sessions[self.client]
            self.broker.take(Leave(self.client))

    def refuse(self, code: str, reason: str) -> None:
        self.broker.counters.denied[code] += 1
        log.info("client cut off", client=self.client or self.address, code=code, reason=reason)
        self.part(hello.refusal(code, reason))

    def data_received(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            return  # TLS hands on what it has even then
        self.broker.counters.bytes_from_clients += len(data)
        try:
            frames = self._framing.feed(data)
            if not self.client:
                if not frames:
                    return
                if self.broker.draining:
                    self.refuse(*DRAINING)
                    return
                self._greet(*frames.pop(0))
                frames += self._framing.feed(b"")  # what was too large to come before the HELLO
            self._read(frames)
        except ProtocolError as error:
            self.refuse(error.code, str(error))

    def _greet(self, kind: int, body: bytes) -> None:
        if kind != Kind.HELLO:
            raise ProtocolError("the first frame is a HELLO (docs/wire.md)")
        said = hello.read_json(body)
        if hello.field(said, "role", str, "client") != "client":
            raise ProtocolError("this port is for clients; brokers use the peer port")
        version = hello.common_version(said.get("mercast"))
        try:
            name = check_name(hello.field(said, "name", str, "client") or "client", "name")
        except ContentError as error:
            raise ProtocolError(str(error)) from None
        token = "" if said.get("token") is None else hello.field(said, "token", str)
        self._hash = hash_of(token) if token else None
        self._guard = guard_for(self.broker, self._hash)
        self.client = f"{name[: DEFAULTS.name_length // 2]}.{next(_numbers)}"
        self._framing.limit = FRAME_BYTES
        if self._deadline is not None:
            self._deadline.cancel()
        core = self.broker.core
        self.broker.sessions[self.client] = self
        self.out.append(
            hello.hello(
                mercast=version,
                broker=core.me,
                incarnation=core.incarnation,
                client=self.client,
                brokers=self.broker.other_brokers(),
                version=__version__,
            )
        )
        self.flush()

    def _read(self, frames: list[tuple[int, bytes]]) -> None:
        now, client = time.time_ns(), self.client
        asked: list[Stimulus] = []
        for kind, body in frames:
            if kind == Kind.PUBLISH:
                asked.append(read_publish(client, body, now))
            elif kind == Kind.PING:
                self.out.append(pong(body))
            else:
                try:
                    request = read_request(kind, client, body)
                except Refused as refused:
                    self.out.append(replies.answer(refused.request, str(refused)))
                else:
                    if request is not None:
                        asked.append(request)
        if self._guard is not None:
            asked = self._allowed(asked, self._guard)
        if self.out:
            self.flush()
        if asked:
            self.broker.take_all(asked)
            if not self.publishes and any(type(one) is Publish for one in asked):
                self.publishes = True
                if self.broker.pressed:
                    self.hold(True)

    # -- what its token allows ---------------------------------------------------------------------------------------

    def _allowed(self, asked: list[Stimulus], guard: Guard) -> list[Stimulus]:
        """Those that it may do; the others are answered."""
        guard.look()
        allowed: list[Stimulus] = []
        for one in asked:
            why = guard.publish(one.type) if type(one) is Publish else guard.against(one)
            if why and isinstance(one, Publish | Advertise | Subscribe | Declare):
                self._deny(type(one).__name__.lower(), one.request, why)
            else:
                allowed.append(one)
        return allowed

    def _deny(self, what: str, request: int, why: str) -> None:
        self.broker.counters.forbidden[what] += 1
        self.broker.counters.refused += 1
        self.out.append(replies.answer(request, why))
        if not self._denied:
            self._denied = True
            log.warning("denied, and not logged again for this client", client=self.client, request=what, reason=why)

    def judge_anew(self) -> None:
        """Tokens, rules or types have changed."""
        try:
            self._guard = guard_for(self.broker, self._hash)
        except ProtocolError as error:
            self.refuse(error.code, str(error))

    def review_standing(self) -> None:
        """What was allowed when it was asked for, and is no longer, cannot stay: connected anew, it is refused."""
        clients, guard = self.broker.core.clients, self._guard
        if guard is None or self.transport is None or self.transport.is_closing():
            return
        whys = [guard.subscribe(clients.subscriptions[one].type) for one in clients.subscriptions_of(self.client)]
        advertised = [clients.advertisements[one].type for one in clients.advertisements_of(self.client)]
        whys += [guard.publish(type) for type in advertised if type is not None]
        for why in filter(None, whys):
            self.refuse("token", why)
            return

    @property
    def most_queued(self) -> int:
        return self.broker.config.client_queue_bytes

    def flush(self) -> int:
        written = super().flush()
        self.broker.counters.bytes_to_clients += written
        return written

    def cut_off(self) -> None:
        self.broker.counters.slow_clients += 1
        log.info("slow client cut off", client=self.client, queued=self.queued)
        super().cut_off()
