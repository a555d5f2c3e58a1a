"""Clients' connections."""

import asyncio
import random
import time
from itertools import count, groupby
from operator import itemgetter
from typing import TypeAlias

import structlog

from mercast import __version__
from mercast.broker.admission import guard_for, paces_for
from mercast.broker.broker import Broker
from mercast.broker.outgoing import EARLY, PRESSED, TOO_FAST, Outgoing, keep_alive
from mercast.broker.rates import MOMENT, Pace, Rates, Verdict, paces
from mercast.content.errors import ContentError
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.protocol.stimuli import Advertise, Declare, Leave, Publish, Refuse, Stimulus, Subscribe
from mercast.security.guard import Guard
from mercast.security.tokens import hash_of
from mercast.wire import hello, replies
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError, pong
from mercast.wire.requests import Refused, read_publishes, read_request

log = structlog.get_logger()

_numbers = count(1)

DRAINING = "draining", "this broker is about to stop: try another"
STOPPED = "draining", "this broker has stopped"


_YOUNGEST = 0.75
"""Share of the greatest age at which the first clients are told to go elsewhere: not all at once."""

_HEAVY = 128 * 1024
"""Bytes of requests other than publishes that may wait together: a long filter takes forty times as much when read."""

Frames: TypeAlias = list[tuple[int, bytes]]


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
        self._ended = False
        """Whether it was told everything: nothing it says counts any more."""
        self._live = live
        self._framing = Framing()
        self._deadline: asyncio.TimerHandle | None = None
        """For its HELLO; later, for its going elsewhere."""
        self._own_paces: tuple[Pace, ...] = ()
        self._rates: Rates | None = None
        """None where it may publish as much as it can."""
        self._early = b""
        """What came before the broker was ready to hear it."""
        self._later: Frames = []
        """What was read and has to wait, for it publishes too fast."""
        self._rest: asyncio.TimerHandle | None = None
        self._heavy = 0
        """Bytes of requests other than publishes since all that waited was last handled early."""

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
        self.broker.strangers[self] = self.broker.now()
        keep_alive(transport)
        seconds = self.broker.config.handshake_seconds
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.refuse, "protocol", f"no HELLO within {seconds} s")

    def welcome(self) -> None:
        """The broker is ready to hear clients."""
        early, self._early = self._early, b""
        self.hold(EARLY, False)
        if early:
            self.data_received(early)

    def connection_lost(self, _: Exception | None) -> None:
        self._live.discard(self)
        self.broker.strangers.pop(self, None)
        for timer in (self._deadline, self._rest):
            if timer is not None:
                timer.cancel()
        if self.broker.sessions.get(self.client) is self:
            del self.broker.sessions[self.client]
            self.broker.take(Leave(self.client))

    def refuse(self, code: str, reason: str) -> None:
        self._cut_off_for(code, reason)
        self.part(hello.refusal(code, reason))

    def _cut_off_for(self, code: str, reason: str) -> None:
        self.broker.counters.denied[code] += 1
        log.info("client cut off", client=self.client or self.address, code=code, reason=reason)

    def end(self, code: str, reason: str) -> None:
        """As above, but it may hang up itself: while it still talks, closing would have its machine throw away what
        it has not read yet."""
        if self._ended or self.transport is None or self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self._cut_off_for(code, reason)
            self.out.append(hello.refusal(code, reason))
            self.flush()
            self.transport.write_eof()
        else:
            self.refuse(code, reason)
        self._ended = True
        for why in list(self._held):
            self.hold(why, False)  # that it hangs up has to be read

    def data_received(self, data: bytes) -> None:
        if self._ended or self.transport is None or self.transport.is_closing():
            return  # TLS hands on what it has even then
        if not self.broker.welcoming:
            self._early += data
            self.hold(EARLY, True)  # not before there is something: uvloop reads whatever was said when it connected
            return
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
            if self._rates is None and not self._later:
                self._read(frames)
            else:
                self._read_slowly(frames)
        except ProtocolError as error:
            self.refuse(error.code, str(error))

    def _greet(self, kind: int, body: bytes) -> None:
        if kind != Kind.HELLO:
            raise ProtocolError("the first frame is a HELLO (docs/wire.md)")
        said = hello.read_json(body)
        if hello.field(said, "role", str, "client") != "client":
            raise ProtocolError("this port is for clients; brokers use the peer port")
        self.version = hello.common_version(said.get("mercast"))
        try:
            name = check_name(hello.field(said, "name", str, "client") or "client", "name")
        except ContentError as error:
            raise ProtocolError(str(error)) from None
        token = "" if said.get("token") is None else hello.field(said, "token", str)
        self._hash = hash_of(token) if token else None
        self._guard = guard_for(self.broker, self._hash)
        self.client = f"{name[: DEFAULTS.name_length // 2]}.{next(_numbers)}"
        self._framing.limit = FRAME_BYTES
        self.broker.strangers.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        core, config = self.broker.core, self.broker.config
        limits = config.publish_events_per_second, config.publish_bytes_per_second
        # Without a burst: whoever comes again and again would have one each time.
        self._own_paces = paces("this client", *limits, asyncio.get_running_loop().time())
        self._set_rates()
        self._grow_old()
        self.broker.sessions[self.client] = self
        self.out.append(
            hello.hello(
                mercast=self.version,
                broker=core.me,
                incarnation=core.incarnation,
                client=self.client,
                brokers=self.broker.other_brokers(),
                version=__version__,
            )
        )
        self.flush()

    def _grow_old(self) -> None:
        seconds = self.broker.config.max_connection_seconds
        if seconds:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(seconds * random.uniform(_YOUNGEST, 1), self._move_on)

    def _move_on(self) -> None:
        """It has been here for long: have it go elsewhere, if there is an elsewhere. If it stays, it is told again."""
        others = self.broker.other_brokers()
        if others and not self.broker.draining:
            self.broker.counters.moved += 1
            self.out.append(replies.drain(others))
            self.flush()
        self._grow_old()

    def _read(self, frames: Frames, verdict: Verdict | None = None) -> None:
        asked = self._requests(frames)
        if verdict is not None and verdict.against is not None:
            asked = self._within(asked, verdict.room, verdict.against)
        if self._guard is not None:
            asked = self._allowed(asked, self._guard)
        if self.out:
            self.flush()
        if asked:
            self.broker.take_all(asked)
        if self._heavy > _HEAVY:
            self._heavy = 0
            self.broker.hurry()

    def _requests(self, frames: Frames) -> list[Stimulus]:
        now, client = time.time_ns(), self.client
        asked: list[Stimulus] = []
        for kind, run in groupby(frames, itemgetter(0)):
            bodies = [body for _, body in run]
            if kind == Kind.PUBLISH:
                asked += read_publishes(client, bodies, now)
            elif kind == Kind.PING:
                self.out += map(pong, bodies)
            else:
                self._heavy += sum(map(len, bodies))
                asked += filter(None, (self._read_request(kind, body) for body in bodies))
        return asked

    def _read_request(self, kind: int, body: bytes) -> Stimulus | None:
        try:
            return read_request(kind, self.client, body)
        except Refused as refused:
            return Refuse(self.client, refused.request, str(refused))

    # -- how fast it may publish -------------------------------------------------------------------------------------

    def _set_rates(self) -> None:
        limits = (*self._own_paces, *(paces_for(self.broker, self._guard.token) if self._guard is not None else ()))
        if self._rates is None or self._rates.paces != limits:
            self._rates = Rates(limits) if limits else None

    def _read_slowly(self, frames: Frames) -> None:
        """What the rates allow. The rest waits, and no more is read meanwhile; or it is refused."""
        if self._later:  # TLS hands on what it has, though it should not
            self._later += frames
            return
        rates, publishes = self._rates, list[int]()
        if rates is not None:
            publishes = [at for at, (kind, _) in enumerate(frames) if kind == Kind.PUBLISH]
        if rates is None or not publishes:
            self._read(frames)
            return
        verdict = rates.judge(asyncio.get_running_loop().time(), [len(frames[at][1]) for at in publishes])
        if verdict.room < len(publishes) and verdict.against is None:
            begin = publishes[verdict.room]
            frames, self._later = frames[:begin], frames[begin:]
        if verdict.wait:
            if self._rest is None:
                self.broker.counters.slowed += 1
            self._pause(verdict.wait)
        self._read(frames, verdict)

    def _pause(self, seconds: float) -> None:
        self.hold(TOO_FAST, True)
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        if self._ended or self.transport is None or self.transport.is_closing():
            return
        if PRESSED in self._held:
            self._pause(MOMENT)
            return
        later, self._later = self._later, []
        before = self._rest
        try:
            self._read_slowly(later)
        except ProtocolError as error:
            self.refuse(error.code, str(error))
        if self._rest is before:
            self._rest = None
            self.hold(TOO_FAST, False)

    def _within(self, asked: list[Stimulus], room: int, against: Pace) -> list[Stimulus]:
        """The first publishes, as many as there is room for; the others are refused."""
        kept: list[Stimulus] = []
        for one in asked:
            if type(one) is Publish:
                room -= 1
                if room < 0:
                    self.broker.counters.too_fast[against.name] += 1
                    kept.append(Refuse(one.client, one.request, against.reason))
                    continue
            kept.append(one)
        return kept

    # -- what its token allows ---------------------------------------------------------------------------------------

    def _allowed(self, asked: list[Stimulus], guard: Guard) -> list[Stimulus]:
        """Those that it may do; the others are refused."""
        guard.look()
        allowed: list[Stimulus] = []
        for one in asked:
            why = guard.publish(one.type) if type(one) is Publish else guard.against(one)
            if why and isinstance(one, Publish | Advertise | Subscribe | Declare):
                self._deny(type(one).__name__.lower(), why)
                allowed.append(Refuse(one.client, one.request, why))
            else:
                allowed.append(one)
        return allowed

    def _deny(self, what: str, why: str) -> None:
        self.broker.counters.forbidden[what] += 1
        if not self._denied:
            self._denied = True
            log.warning("denied, and not logged again for this client", client=self.client, request=what, reason=why)

    def judge_anew(self) -> None:
        """Tokens, rules or types have changed."""
        try:
            self._guard = guard_for(self.broker, self._hash)
        except ProtocolError as error:
            self.refuse(error.code, str(error))
        else:
            self._set_rates()

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
        if self._ended:
            self.out.clear()
            return 0
        written = super().flush()
        self.broker.counters.bytes_to_clients += written
        return written

    def cut_off(self) -> None:
        self.broker.counters.slow_clients += 1
        log.info("slow client cut off", client=self.client, queued=self.queued)
        super().cut_off()
