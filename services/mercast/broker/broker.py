"""The core on a real loop: what sockets read goes in, what the core wants done is done.

All that is read in one turn of the event loop is handled as one batch; then each neighbour and each client gets at most
one write. Nothing here waits, and there is no task or future for an event.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, cast

import structlog

from mercast.broker.config import BrokerConfig
from mercast.broker.counters import Counters
from mercast.broker.last_stimuli import LastStimuli
from mercast.broker.once import Once
from mercast.broker.outgoing import PRESSED, Outgoing, OutgoingLink
from mercast.broker.rates import Pace
from mercast.broker.recorder import Recorder
from mercast.membership.members import Members
from mercast.protocol import stimuli
from mercast.protocol.effects import (
    Answer,
    CloseLink,
    Deliver,
    Effect,
    OpenLink,
    Receipts,
    Reported,
    Send,
    Settled,
    Tap,
)
from mercast.protocol.messages import Forward
from mercast.protocol.rows import Written
from mercast.protocol.stimuli import Batch, Received, Stimulus, Tick
from mercast.routing.core import Core
from mercast.routing.strategies import strategy_named
from mercast.security.state import Security
from mercast.taps.taps import Taps
from mercast.wire import replies

log = structlog.get_logger()

_PORTION = 1024
"""Events that are handled together: enough to share the cost of a turn, few enough for the processor's cache."""

_FIRST_HOP = 1
"""Of events that were published here."""


class Broker:
    def __init__(self, config: BrokerConfig, incarnation: int | None = None) -> None:
        self.config = config
        self.started = time.monotonic()
        self.counters = Counters()
        self.core = self._make_core(int(time.time() * 1000) if incarnation is None else incarnation)
        self.sessions: dict[str, Outgoing] = {}
        """Clients by the id that they were given."""
        self.links: dict[int, OutgoingLink] = {}
        """Neighbours, by their addresses."""
        self.members = tuple(Members(config.id) for _ in self.core.clusters)
        """Cluster by cluster, the home first."""
        self.security = Security()
        """What the files of tokens and certificates say."""
        self.paces: dict[bytes, tuple[Pace, ...]] = {}
        """How fast all clients of one token publish together, by its hash."""
        self.strangers: dict[Outgoing, float] = {}
        """Connections that have not said who they are, and since when."""
        self.calls: set[Outgoing] = set()
        """Connections that other brokers have made to the peer port."""
        self.welcoming = False
        """Whether clients are listened to: not before this broker is part of the overlay, or has waited for that."""
        self.draining = False
        self.readiness: Callable[[], tuple[bool, str]] = lambda: (False, "starting")
        self._link: Callable[[int], None] = lambda _address: None
        self._unlink: Callable[[int, str], None] = lambda _address, _reason: None
        self.types_changed: Callable[[], None] = lambda: None
        """A new subtype may be denied to those who subscribe to its parent."""
        self._types_known = 0
        self._pending: list[Stimulus] = []
        self._held_back: dict[int, tuple[set[Outgoing], asyncio.TimerHandle]] = {}
        """Publishers that have to wait, by the link that has so much unsent."""
        self._timer: asyncio.TimerHandle | None = None
        self._rings = float("inf")
        """When the timer goes off."""
        self._record: Recorder | None = None
        self.last_stimuli = LastStimuli(config.keep_stimuli, config.keep_stimuli_bytes) if config.keep_stimuli else None
        self.taps: Taps | None = None
        self._rows: Sequence[Any] = ()
        """Of the turn, for the taps."""
        self._written: set[Outgoing] = set()
        """Sessions that something is to be said to in this turn."""
        self._does: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Answer: self._answer,
            Receipts: self._receipts,
            Settled: self._settled,
            Reported: self._reported,
            OpenLink: self._open_link,
            CloseLink: self._close_link,
            Tap: self._tap,
        }
        self._offset = time.time() - time.monotonic()
        self.said = Once(self.now)
        """What the log need not tell again so soon."""
        self._loop = asyncio.get_running_loop()

    def _make_core(self, incarnation: int) -> Core:
        core = strategy_named(self.config.strategy)(self.config.id, incarnation, self.config.settings())
        core.dropped.update(self.counters.dropped)
        self.counters.dropped = core.dropped
        return core

    def now(self) -> float:
        """Seconds since 1970, never backwards: brokers compare these with their neighbours'."""
        return time.monotonic() + self._offset

    def record(self, record: Recorder | None) -> None:
        """From now on, which is before anything can happen."""
        self._record = record
        self._begin_records()

    def begin(self, link: Callable[[int], None], unlink: Callable[[int, str], None]) -> None:
        """`link(address)` has a broker be a neighbour, `unlink(address, reason)` closes the link to one."""
        self._link, self._unlink = link, unlink
        self._declare()

    def begin_anew(self, incarnation: int) -> None:
        """With nothing known, under another incarnation. All links end; clients have to come again."""
        for at in list(self.links):
            self._unlink(at, "begins anew")
        for session in list(self.sessions.values()):
            if session.transport is not None:
                session.transport.abort()
        self._pending.clear()
        self.core = self._make_core(incarnation)
        if self.taps is not None:
            self.taps.begin_anew(self.taps.head._replace(incarnation=incarnation))
        self._begin_records()
        self._declare()

    def _begin_records(self) -> None:
        if self._record is not None:
            self._record.begin(self.core)
        if self.last_stimuli is not None:
            self.last_stimuli.begin(self.core)

    def _declare(self) -> None:
        for number, declaration in enumerate(self.config.declarations(), 1):
            self.take(stimuli.Declare(str(self.config.types), number, declaration))

    def end(self) -> None:
        """What still happens while connections end is no longer recorded."""
        self._record = None

    def ready(self) -> tuple[bool, str]:
        """Whether clients should be sent here; if not, why."""
        return (False, "draining") if self.draining else self.readiness()

    # -- in ----------------------------------------------------------------------------------------------------------

    def take(self, stimulus: Stimulus) -> None:
        """Have it handled when all that can be read now has been read."""
        self._pending.append(stimulus)
        if len(self._pending) == 1:
            self._loop.call_soon(self._turn)

    def take_all(self, some: Iterable[Stimulus]) -> None:
        if not self._pending:
            self._loop.call_soon(self._turn)
        self._pending += some

    def hurry(self) -> None:
        """Handle what waits now: until then it takes much memory, and more of it is about to be read."""
        self._turn()

    def _turn(self) -> None:
        pending, self._pending = self._pending, []
        if len(pending) == 1:
            self._handle(pending[0])
            return
        for some in _portions(pending):
            self._handle(some[0] if len(some) == 1 else Batch(tuple(some)))

    def _handle(self, stimulus: Stimulus) -> None:
        now = self.now()
        try:
            effects = self.core.handle(now, stimulus)
        except Exception:  # a defect of ours: what can go on goes on
            self._tell_defect(stimulus)
            self._write_down(now, stimulus, [])
            return
        try:
            self._carry_out(effects)
            if self.core.declared.changes != self._types_known:
                self.types_changed()
                self._types_known = self.core.declared.changes
        except Exception:  # likewise
            self._tell_defect(stimulus)
        self._set_timer()
        self._write_down(now, stimulus, effects)

    def _tell_defect(self, stimulus: Stimulus) -> None:
        self.counters.defects += 1
        log.exception("defect", stimulus=type(stimulus).__name__)

    def _write_down(self, now: float, stimulus: Stimulus, effects: list[Effect]) -> None:
        if self._record is not None:
            self._record.add(now, stimulus, effects)
        if self.last_stimuli is not None:
            self.last_stimuli.add(now, stimulus, len(effects))

    def _set_timer(self) -> None:
        deadline = self.core.next_deadline()
        if deadline >= self._rings:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings = deadline
        self._timer = self._loop.call_later(max(0.0, deadline - self.now()), self._tick)

    def _tick(self) -> None:
        self._timer, self._rings = None, float("inf")
        if self.now() >= self.core.next_deadline():
            self.take(Tick())
        else:
            self._set_timer()

    # -- out ---------------------------------------------------------------------------------------------------------

    def _carry_out(self, effects: list[Effect]) -> None:
        does = self._does
        try:
            for kind, run in groupby(effects, type):
                if kind is Deliver:
                    self._deliver(cast("Iterator[Deliver]", run))
                else:
                    for effect in run:
                        does[kind](effect)
        finally:  # nothing is left to the next turn
            written, self._written = self._written, set()
            rows, self._rows = self._rows, ()
            for session in written:
                session.flush()
        if isinstance(rows, Written) and self.taps is not None:  # they tell of what has been written by now
            self.taps.take(time.time_ns() // 1_000, rows.runs)

    def _to(self, client: str) -> Outgoing | None:
        """The session of a client that is still there, to be flushed at the end of the turn."""
        session = self.sessions.get(client)
        if session is not None:
            self._written.add(session)
        return session

    def _deliver(self, run: Iterator[Deliver]) -> None:
        """Events for clients: what costs most, so the fewest steps for each."""
        client, session, delivered = None, None, 0
        for to, event, subscriptions in run:
            if to != client:
                client, session = to, self._to(to)
            if session is not None:
                session.out.append(replies.event(event, subscriptions))
                delivered += 1
        self.counters.delivered += delivered

    def _send(self, send: Send) -> None:
        link = self.links.get(send.neighbour)
        if link is not None:
            link.send(send.messages)
            if link.presses:
                self._hold_back(send)

    def _receipts(self, receipts: Receipts) -> None:
        session = self._to(receipts.client)
        self.counters.published += len(receipts.counts)
        if session is not None:
            session.out.append(replies.receipts(receipts.first, receipts.counts))

    def _answer(self, answer: Answer) -> None:
        session = self._to(answer.client)
        self.counters.refused += bool(answer.refused)
        if session is not None:
            session.out.append(replies.answer(answer.request, answer.refused))
        elif answer.refused and answer.client == str(self.config.types):
            log.error("declaration refused", file=answer.client, reason=answer.refused)

    def _settled(self, settled: Settled) -> None:
        session = self._to(settled.client)
        if session is not None:
            session.out.append(replies.settled(settled.request, settled.missing))

    def _reported(self, reported: Reported) -> None:
        session = self._to(reported.client)
        if session is not None:
            session.out.append(replies.reported(reported.broker, reported.row))

    def _open_link(self, link: OpenLink) -> None:
        self._link(link.neighbour)

    def _close_link(self, close: CloseLink) -> None:
        self._unlink(close.neighbour, close.reason)

    def _tap(self, tap: Tap) -> None:
        self._rows = tap.rows

    # -- pressure ----------------------------------------------------------------------------------------------------

    def _hold_back(self, send: Send) -> None:
        """A link has much unsent: this broker's own clients that publish for it wait, before anything is dropped."""
        if send.neighbour not in self._held_back:  # not for longer than a neighbour may be silent
            timing = self.core.settings.timing
            later = self._loop.call_later(timing.heart_beat * timing.misses, self.let_go, send.neighbour)
            self._held_back[send.neighbour] = set(), later
        held, _ = self._held_back[send.neighbour]
        for message in send.messages:
            if type(message) is Forward and message.hops == _FIRST_HOP:
                for publisher in {packet.event.publisher for packet in message.packets}:
                    session = self.sessions.get(publisher)
                    if session is not None:
                        held.add(session)
                        session.hold(PRESSED, True)

    def let_go(self, neighbour: int) -> None:
        """Nobody waits for this link any more."""
        if neighbour in self._held_back:
            held, later = self._held_back.pop(neighbour)
            later.cancel()
            for session in held.difference(*(others for others, _ in self._held_back.values())):
                session.hold(PRESSED, False)

    def other_brokers(self) -> list[str]:
        """Client addresses of the other members at home that are there."""
        there = self.core.state.reachable
        return [member.clients for id, member in self.members[0].items() if id in there and member.clients]


def _portions(stimuli: list[Stimulus]) -> Iterator[list[Stimulus]]:
    """Of so many events that the next broker can begin with the first while this one works on the others."""
    begin = events = 0
    for at, stimulus in enumerate(stimuli, 1):
        events += max(1, stimulus.events) if type(stimulus) is Received else 1
        if events >= _PORTION:
            yield stimuli[begin:at]
            begin, events = at, 0
    if begin < len(stimuli):
        yield stimuli[begin:]
