"""What all strategies share: links, link state, the exchange of control state, clients, settling, time.

A strategy is a subclass that says what to do when a local client advertises, subscribes or publishes, when a peer says
something, and when an event comes in; everything below that is here, and the same for all.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, cast

from mercast.content.errors import ContentError
from mercast.content.event import Event, EventId, check_event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.types import Declaration, Types
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.matching import Content, Index, Scan, TypedMatcher, Work
from mercast.overlay.exchange import NOBODY, Cause, Exchange, Key, Request
from mercast.overlay.linkstate import LinkState
from mercast.overlay.neighbourhood import Neighbourhood, Outgoing
from mercast.overlay.routes import NO_HOP
from mercast.overlay.seen import Seen, SeenWindow
from mercast.overlay.split import ENTRY
from mercast.protocol import stimuli
from mercast.protocol.effects import Answer, CloseLink, Deliver, Effect, Receipts, Reported, Send, Settled, Tap
from mercast.protocol.messages import (
    Control,
    Forward,
    HeartBeat,
    Local,
    Message,
    Packet,
    Record,
    Report,
    Statement,
    Update,
)
from mercast.protocol.rows import FIRST, FURTHER, Copied, Delivered, Dropped, Published, Row
from mercast.protocol.stimuli import REQUESTS, Stimulus
from mercast.routing.clients import NO_CLIENTS, Clients, Interested
from mercast.routing.declared import Declared
from mercast.routing.parked import Parked
from mercast.routing.sampling import sampler
from mercast.routing.settings import Settings

_new = tuple.__new__
"""Makes a named tuple in half of the time that its own constructor takes: for those that each event needs."""


_traced = attrgetter("traced")


class Core(ABC):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        self.me, self.incarnation = me, incarnation
        self.settings = settings or Settings()
        self.declared = Declared()
        self._knows_types: set[int] = set()
        """Neighbours that have been told all statements."""
        self.state = LinkState(me, incarnation)
        self.neighbourhood = Neighbourhood(self.state, self.settings.timing, self.settings.rule)
        self.exchange = Exchange(me, incarnation, _Listening(self), self.settings.patience)
        self.work = Work()
        self.clients = Clients(self.make_table())
        self.seen = SeenWindow(own=(me, incarnation))
        """Events that were taken in here."""
        self._received_before = SeenWindow()
        """Events of which a copy came in, for this broker or for others."""
        self._sequence = 0
        self._incarnations: dict[int, int] = {}
        """Peers that we have met, each with the incarnation that we met."""
        self._lost: dict[int, float] = {}
        """Peers out of reach, and since when."""
        self._unreachable: dict[int, float] = {}
        """The same of all brokers, peers or not."""
        self._settle_by: dict[Request, float] = {}
        self._parked = Parked(DEFAULTS)
        self._arrivals: list[tuple[Forward, int, list[Seen] | None]] = []
        """What came in, from whom, and whether it was here before (None: it only passes by). About to be matched, all
        at once, and to be written about."""
        self._waits_until: float | None = None
        """Of what was parked before and is tried again."""
        self.dropped: Counter[str] = Counter()
        """Events by the reason why they went no further."""
        self._sampling, self._samples = self.settings.sampling > 0, sampler(self.settings.sampling)
        self._now = 0.0
        self._effects: list[Effect] = []
        self._rows: list[Row] = []
        self._outbox: dict[int, list[Message]] = {}
        self._does: dict[type, Callable[[Any], None]] = {
            stimuli.Declare: self._declare,
            stimuli.Advertise: self._advertise,
            stimuli.Unadvertise: self._unadvertise,
            stimuli.Subscribe: self._subscribe,
            stimuli.Unsubscribe: self._unsubscribe,
            stimuli.Publish: self._publish,
            stimuli.Leave: self._leave,
            stimuli.Received: self._received,
            stimuli.LinkUp: self._link_up,
            stimuli.LinkDown: self._link_down,
            stimuli.Unsent: self._unsent,
            stimuli.Retire: self._retire,
            stimuli.Tick: self._tick,
            stimuli.Batch: self._batch,
        }

    def begin_with(self, now: float, links: dict[int, int], records: Iterable[Record]) -> list[Effect]:
        """Start with a view of the overlay instead of learning it by messages."""
        self._now, self._effects, self._rows, self._outbox = now, [], [], {}
        self.neighbourhood.begin_with(now, links, records)
        self._look_around()
        return self._done()

    @property
    def types(self) -> Types:
        return self.declared.types

    # -- the one mutator ---------------------------------------------------------------------------------------------

    def handle(self, now: float, stimulus: Stimulus) -> list[Effect]:
        self._now, self._effects, self._rows, self._outbox = now, [], [], {}
        self._does[type(stimulus)](stimulus)
        return self._done()

    def _done(self) -> list[Effect]:
        for control in self.exchange.messages(self._now):
            self._route(control)
        self._tell_settled()
        effects = self._effects
        if self._rows:
            effects.append(Tap(tuple(self._rows)))
        effects += [Send(neighbour, tuple(messages)) for neighbour, messages in self._outbox.items()]
        return effects

    def _tell_settled(self) -> None:
        for request in self.exchange.settled:
            self._settle_by.pop(request, None)
            self._effects.append(Settled(request.client, request.number))
        self.exchange.settled.clear()

    def next_deadline(self) -> float:
        return min(
            self.exchange.oldest + self.settings.settle_within,
            self.neighbourhood.next_deadline(),
            self.exchange.next_deadline(),
            min(self._settle_by.values(), default=float("inf")),
            self._parked.next_deadline(),
            min((*self._lost.values(), *self._unreachable.values()), default=float("inf")) + self.settings.purge_after,
        )

    # -- what a strategy decides -------------------------------------------------------------------------------------

    @abstractmethod
    def peers(self) -> Iterable[int]:
        """The brokers to exchange control state with."""

    def met(self, peer: int) -> None:  # noqa: B027
        """A new peer, or one that was restarted: say what it should know of from the start."""

    @abstractmethod
    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None: ...

    @abstractmethod
    def unadvertised(self, local: Local, cause: Cause) -> None: ...

    @abstractmethod
    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None: ...

    @abstractmethod
    def unsubscribed(self, local: Local, cause: Cause) -> None: ...

    @abstractmethod
    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    @abstractmethod
    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    @abstractmethod
    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        """Send events of local clients on their way; how many destinations each has."""

    @abstractmethod
    def forwarded(self, neighbour: int, forward: Forward) -> None:
        """Events came in from a neighbour."""

    def unsent(self, forward: Forward) -> None:
        """Events were not sent on, for the link went down. Lost, unless the strategy knows another way."""
        self.drop_all((forward,), "link down")

    def overlay_changed(self) -> None:  # noqa: B027
        """Routes or peers are no longer what they were."""

    def types_changed(self, cause: Cause) -> None:  # noqa: B027
        """A type was declared: subscriptions may concern advertisements that they did not concern before."""

    # -- clients -----------------------------------------------------------------------------------------------------

    def _declare(self, asked: stimuli.Declare) -> None:
        try:
            self._check_new(Local(asked.client, asked.request))
            statement = self.declared.declare(self.me, self.incarnation, asked.declaration)
        except ContentError as error:
            self._effects.append(Answer(asked.client, asked.request, refused=str(error)))
            return
        self._effects.append(Answer(asked.client, asked.request))
        self._because(Request(asked.client, asked.request), lambda cause: self._state(statement, cause))

    def _state(self, statement: Statement, cause: Cause) -> None:
        """Tell the neighbours of a declaration, and see what it changes here."""
        for neighbour in sorted(self._knows_types):
            self.exchange.tell(neighbour, statement, self.declared.statements[statement], cause)
        self.clients.types_changed()
        self.types_changed(cause)

    def _advertise(self, asked: stimuli.Advertise) -> None:
        local = Local(asked.client, asked.request)
        self._take(local, Advertisement, asked.type, asked.filter, self._add_advertisement)

    def _subscribe(self, asked: stimuli.Subscribe) -> None:
        def add(local: Local, subscription: Subscription, cause: Cause) -> None:
            self.clients.subscribe(local, subscription, asked.echo)
            self.subscribed(local, subscription, cause)

        self._take(Local(asked.client, asked.request), Subscription, asked.type, asked.filter, add)

    def _take(self, local: Local, kind: type[Any], name: str | None, filter: Filter, add: Callable[..., None]) -> None:
        try:
            if name is not None:
                check_name(name, "type")
            interest: Interest = kind(name, filter)
            interest.check(self.types)
            self._check_new(local)
            self.clients.check_room(local.client, kind)
        except ContentError as error:
            self._effects.append(Answer(local.client, local.request, refused=str(error)))
            return
        self._effects.append(Answer(local.client, local.request))
        self._because(Request(*local), lambda cause: add(local, interest, cause))

    def _check_new(self, local: Local) -> None:
        """A request is known by its number while anything of it is left."""
        _check_number(local.request)
        made = local in self.clients.advertisements or local in self.clients.subscriptions
        if made or Request(*local) in self._settle_by:
            raise ContentError(f"request {local.request} has been made before: number requests upwards from 1")

    def _add_advertisement(self, local: Local, advertisement: Advertisement, cause: Cause) -> None:
        self.clients.advertise(local, advertisement)
        self.advertised(local, advertisement, cause)

    def _unadvertise(self, asked: stimuli.Unadvertise) -> None:
        self._end(asked, Local(asked.client, asked.advertised), self.clients.advertisements, self._drop_advertisement)

    def _unsubscribe(self, asked: stimuli.Unsubscribe) -> None:
        self._end(asked, Local(asked.client, asked.subscribed), self.clients.subscriptions, self._drop_subscription)

    def _end(self, asked: Any, local: Local, table: dict[Local, Any], drop: Callable[[Local, Cause], None]) -> None:
        try:
            self._check_new(Local(asked.client, asked.request))
            if local not in table:
                raise ContentError(f"request {local.request} made nothing that could be taken back")
        except ContentError as error:
            self._effects.append(Answer(asked.client, asked.request, refused=str(error)))
            return
        self._effects.append(Answer(asked.client, asked.request))
        self._because(Request(asked.client, asked.request), lambda cause: drop(local, cause))

    def _drop_advertisement(self, local: Local, cause: Cause) -> None:
        self.clients.unadvertise(local)
        self.unadvertised(local, cause)

    def _drop_subscription(self, local: Local, cause: Cause) -> None:
        self.clients.unsubscribe(local)
        self.unsubscribed(local, cause)

    def _leave(self, asked: stimuli.Leave) -> None:
        self._tell_settled()  # what came before, under the numbers of then
        for request in [request for request in self._settle_by if request.client == asked.client]:
            self.exchange.give_up(request)
            del self._settle_by[request]
        nobody = Request(asked.client, -1)
        for local in self.clients.subscriptions_of(asked.client):
            self._drop_subscription(local, nobody)
        for local in self.clients.advertisements_of(asked.client):
            self._drop_advertisement(local, nobody)

    def _because(self, request: Request, change: Callable[[Cause], None]) -> None:
        """Make a change for a client, and let it know when it is settled."""
        self.exchange.open(request)
        self._settle_by[request] = self._now + self.settings.settle_within
        change(request)
        self.exchange.close_if_settled(request)
        self._tell_settled()  # at once, for the number may be used anew

    def _publish(self, *asked: stimuli.Publish) -> None:
        requests: list[int] = []
        packets: list[Packet] = []
        for one in asked:
            try:
                packets.append(self._accept(one))
                requests.append(one.request)
            except ContentError as error:
                self._send_off(requests, packets)
                requests, packets = [], []
                self._effects.append(Answer(one.client, one.request, refused=str(error)))
        self._send_off(requests, packets)

    def _accept(self, asked: stimuli.Publish) -> Packet:
        client, request, type_, attributes, time, payload, content_type, trace, traced, encoded = asked
        _check_number(request)
        id_ = _new(EventId, (self.me, self.incarnation, self._sequence + 1))
        said = (id_, type_, attributes, time, client, content_type, trace, payload, encoded, b"")
        event = check_event(_new(Event, said))
        self.types.check_attributes(type_, event.attributes)
        if (client, type_) not in self.clients.unrestricted:
            self._check_advertised(asked, event)
        self._sequence += 1
        return _new(Packet, (event, traced, ()))

    def _send_off(self, requests: list[int], packets: list[Packet]) -> None:
        """Events of local clients, with the numbers of their requests: to the clients here and on their way."""
        contents = self.contents(packets)
        counts, interested = self.published(packets, contents), self.clients.interested(contents, packets, True)
        if any(interested):
            counts = [count + bool(clients) for count, clients in zip(counts, interested, strict=True)]
            self._deliver(packets, interested)
        if self._sampling or any(map(_traced, packets)):
            for packet, count, clients in zip(packets, counts, interested, strict=True):
                if self._taps(packet):
                    self._write_delivered(packet, clients, 0)
                    self._write_published(packet, count - bool(clients), len(clients))
        self._acknowledge(requests, packets, counts)

    def _write_published(self, packet: Packet, destinations: int, clients: int) -> None:
        id_, type_, attributes, time = packet.event[:4]
        size = len(packet.event.payload)
        self._write(packet, Published(id_, time, type_, dict(attributes), destinations, size, clients))

    def _acknowledge(self, requests: list[int], packets: list[Packet], counts: list[int]) -> None:
        """Publishes that follow each other have one receipt."""
        at = 0
        while at < len(requests):
            client, first, begin = packets[at].event.publisher, requests[at], at
            at += 1
            while at < len(requests) and requests[at] == first + at - begin and packets[at].event.publisher == client:
                at += 1
            self._effects.append(Receipts(client, first, tuple(counts[begin:at])))

    def _check_advertised(self, asked: stimuli.Publish, event: Event) -> None:
        """Publishing without an advertisement for the type advertises all of it."""
        allowed = self.clients.may_publish(self.types, event)
        if allowed is None:
            local = Local(asked.client, -asked.request)  # as no client can number it
            if local in self.clients.advertisements:
                raise ContentError(f"request {asked.request}: number requests upwards from 1, each once")
            self.clients.check_room(asked.client, Advertisement)
            self._add_advertisement(local, Advertisement(asked.type), Request(asked.client, -1))
        elif not allowed:
            raise ContentError(f"the event lies outside what {asked.client!r} has advertised for type {asked.type!r}")

    def _deliver(self, packets: Sequence[Packet], interested: Sequence[Interested]) -> None:
        """One copy to each client, with the subscriptions that matched."""
        self._effects += [
            _new(Deliver, (client, packet.event, subscriptions))
            for packet, clients in zip(packets, interested, strict=True)
            for client, subscriptions in clients
        ]

    def _write_delivered(self, packet: Packet, clients: Interested, hops: int) -> None:
        event = packet.event
        for client, subscriptions in clients:
            self._write(packet, Delivered(event.id, event.time, client, subscriptions, hops))

    def take_in(self, forward: Forward, neighbour: int) -> list[Packet]:
        """Deliver events that came from a neighbour, but those that were here before; the new ones."""
        seen = self.take_in_soon(forward, neighbour)
        self._take_in_all()
        return [packet for packet, how in zip(forward.packets, seen, strict=True) if how is Seen.NEW]

    def take_in_soon(self, forward: Forward, neighbour: int) -> list[Seen]:
        """The same, together with what arrives after it: matching many at once is cheaper."""
        seen = self.seen.see_all(_ids(forward.packets))
        self._arrivals.append((forward, neighbour, seen))
        return seen

    def pass_by(self, forward: Forward, neighbour: int) -> None:
        """Events came from a neighbour, and are none of this broker's own."""
        if self._sampling or forward.traced:
            self._arrivals.append((forward, neighbour, None))

    def _take_in_all(self) -> None:
        if not self._arrivals:
            return
        arrivals, self._arrivals = self._arrivals, []
        new = [
            packet
            for forward, _, seen in arrivals
            if seen is not None
            for packet, how in zip(forward.packets, seen, strict=True)
            if how is Seen.NEW
        ]
        interested = iter(self.clients.interested(self.contents(new), new, False))
        for forward, neighbour, seen in arrivals:
            wanted = repeat(NO_CLIENTS) if seen is None else self._take_in(forward, seen, interested)
            self._copied(forward, neighbour, wanted)

    def _take_in(self, forward: Forward, seen: list[Seen], interested: Iterator[Interested]) -> list[Interested]:
        """For each event, who gets it."""
        packets = forward.packets
        wanted = [next(interested) if how is Seen.NEW else NO_CLIENTS for how in seen]
        self._deliver(packets, wanted)
        if self._sampling or forward.traced or seen.count(Seen.NEW) < len(seen):
            for packet, how, clients in zip(packets, seen, wanted, strict=True):
                if how is not Seen.NEW:
                    self.drop(packet, how.value)
                elif self._taps(packet):
                    self._write_delivered(packet, clients, forward.hops)
        return wanted

    def _copied(self, forward: Forward, neighbour: int, interested: Iterable[Interested]) -> None:
        """Rows of the copies that came in."""
        if not (self._sampling or forward.traced):
            return
        tapped = [(packet, wanted) for packet, wanted in zip(forward.packets, interested) if self._taps(packet)]  # noqa: B905
        before = self._received_before.see_all(packet.event.id for packet, _ in tapped)
        hops, length = forward.hops, len(forward.destinations) // ENTRY
        for (packet, wanted), seen in zip(tapped, before, strict=True):
            event, copy = packet.event, FIRST if seen is Seen.NEW else FURTHER
            self._write(packet, Copied(event.id, event.time, neighbour, hops, length, copy, bool(wanted)))

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _received(self, *arrivals: stimuli.Received) -> None:
        for arrival in arrivals:
            neighbour = self.neighbourhood.neighbours.get(arrival.neighbour)
            if neighbour is None:
                continue  # read before the link went down
            neighbour.last_heard = self._now
            for message in arrival.messages:
                if type(message) is Forward:
                    self.forwarded(arrival.neighbour, message)
                else:
                    self._take_in_all()  # as things were before what follows
                    self._heard(arrival.neighbour, message)
        self._take_in_all()

    def _heard(self, neighbour: int, message: Message) -> None:
        match message:
            case Control():
                self._control(message)
            case Report():
                self._report(message)
            case HeartBeat():
                self._send_all(self.neighbourhood.heard_beat(self._now, neighbour, message))
            case Update():
                if not self.went_too_far(message.hops):
                    before = self.state.routes
                    self._send_all(self.neighbourhood.heard_update(neighbour, message))
                    if self.state.routes is not before:  # there was news
                        self._look_around()

    def _control(self, message: Control) -> None:
        if message.target == self.me:
            self.exchange.receive(message, self._now)
        elif not self.went_too_far(message.hops):
            self._route(message._replace(hops=message.hops + 1))

    def _route(self, message: Control) -> None:
        """Towards the target; what has no route is lost, and sent again by its source."""
        hop = self.state.routes.next_hop(message.target)
        if hop != NO_HOP:
            self.send(hop, message)

    def _link_up(self, link: stimuli.LinkUp) -> None:
        self._send_all(self.neighbourhood.link_up(self._now, link.neighbour, link.cost))
        self._look_around()

    def _link_down(self, link: stimuli.LinkDown) -> None:
        self._send_all(self.neighbourhood.link_down(link.neighbour))
        self._look_around()

    def _unsent(self, unsent: stimuli.Unsent) -> None:
        for forward in unsent.forwards:
            self.unsent(forward._replace(hops=forward.hops - 1))
        self._take_in_all()

    def _retire(self, _: stimuli.Retire) -> None:
        self._send_all(self.neighbourhood.retire())
        self._look_around()

    def _look_around(self) -> None:
        """Who can be reached now? Meet the new, miss the lost."""
        now = set(self.peers())
        for peer in sorted(self._incarnations.keys() - now - self._lost.keys()):
            self._lost[peer] = self._now
            self.exchange.lose(peer)
        for peer in sorted(now):
            if self._lost.pop(peer, None) is not None:
                self.exchange.regain(peer)
            if self._incarnations.get(peer) != self.state[peer].incarnation:
                self._incarnations[peer] = self.state[peer].incarnation
                self.exchange.meet(peer)
                self.met(peer)
        self._unreachable = {who: self._unreachable.get(who, self._now) for who in self.state.unreachable()}
        self._tell_types(now & self.neighbourhood.neighbours.keys())
        self._unpark()
        self.overlay_changed()

    def _tell_types(self, neighbours: set[int]) -> None:
        """Neighbours that are new are told all declarations; news they are told as it comes."""
        for neighbour in sorted(neighbours - self._knows_types):
            for statement, declaration in sorted(self.declared.statements.items()):
                self.exchange.tell(neighbour, statement, declaration, NOBODY)
        self._knows_types = neighbours

    def learn_type(self, statement: Statement, declaration: Declaration, cause: Cause) -> None:
        news = self.declared.learn(statement, declaration)
        if news is None:
            return
        if news.instead_of is not None:
            for neighbour in sorted(self._knows_types):
                self.exchange.untell(neighbour, news.instead_of, cause)
        self._state(statement, cause)

    # -- events on their way -----------------------------------------------------------------------------------------

    def went_too_far(self, hops: int) -> bool:
        """Whether a message has been on the way for longer than any way is: it may be going in circles."""
        return hops > self.settings.least_hops and hops > 2 * len(self.state.reachable)

    def send(self, neighbour: int, message: Message) -> None:
        self._outbox.setdefault(neighbour, []).append(message)

    def _send_all(self, outgoing: Outgoing) -> None:
        for neighbour, message in outgoing:
            self.send(neighbour, message)

    def park(self, forward: Forward) -> None:
        """No route now: wait for one, for a while."""
        until = self._now + self.settings.wait_for_route if self._waits_until is None else self._waits_until
        self.drop_all(self._parked.add(until, forward), "no route")

    def _unpark(self) -> None:
        for until, forward in self._parked.take():
            self._waits_until = until
            self.forwarded(self.me, forward)
        self._waits_until = None

    def drop_all(self, forwards: Iterable[Forward], why: str) -> None:
        for forward in forwards:
            for packet in forward.packets:
                self.drop(packet, why)

    def drop(self, packet: Packet, why: str) -> None:
        self.dropped[why] += 1
        if self._taps(packet):
            self._write(packet, Dropped(packet.event.id, packet.event.time, why))

    # -- taps --------------------------------------------------------------------------------------------------------

    def _taps(self, packet: Packet) -> bool:
        """Whether rows are to be written about an event."""
        return packet.traced or (self._sampling and self._samples(packet.event.id))

    def _write(self, packet: Packet, row: Row) -> None:
        self._rows.append(row)
        if packet.traced:
            self._report(Report(packet.event.id.broker, 0, packet.event.publisher, self.me, row))

    def _report(self, report: Report) -> None:
        """Towards the broker of the publisher; what has no route is lost."""
        if report.target == self.me:
            self._effects.append(Reported(report.client, report.broker, report.row))
        elif not self.went_too_far(report.hops):
            hop = self.state.routes.next_hop(report.target)
            if hop != NO_HOP:
                self.send(hop, report._replace(hops=report.hops + 1))

    # -- time --------------------------------------------------------------------------------------------------------

    def _tick(self, _: stimuli.Tick) -> None:
        beats, silent = self.neighbourhood.beat(self._now)
        self._send_all(beats)
        for neighbour in silent:
            self._effects.append(CloseLink(neighbour, "silent for too long"))
            self._link_down(stimuli.LinkDown(neighbour))
        self._tell_settled()  # what waited for these no longer does
        for request in [request for request, by in self._settle_by.items() if by <= self._now]:
            self._effects.append(Settled(request.client, request.number, self.exchange.missing(request)))
            self.exchange.give_up(request)
            del self._settle_by[request]
        self.exchange.expire(self._now - self.settings.settle_within)
        for peer in self._due(self._lost):
            del self._lost[peer], self._incarnations[peer]
            self.exchange.part(peer)
        for broker in self._due(self._unreachable):
            del self._unreachable[broker]
            self.state.forget(broker)
            self.seen.forget(broker)
            self._received_before.forget(broker)
        self.drop_all(self._parked.due(self._now), "no route")

    def _due(self, since: dict[int, float]) -> list[int]:
        """Those that were lost so long ago that what is known of them is to be forgotten."""
        return [who for who, when in since.items() if when + self.settings.purge_after <= self._now]

    def _batch(self, batch: stimuli.Batch) -> None:
        for kind, run in groupby(batch.stimuli, type):
            if kind is stimuli.Received:
                self._received(*cast("Iterator[stimuli.Received]", run))
            elif kind is stimuli.Publish:
                self._publish(
                    *cast("Iterator[stimuli.Publish]", run)
                )  # events that follow each other are matched together
            else:
                for stimulus in run:
                    self._does[kind](stimulus)

    def validate(self) -> None:
        """Assert what must hold between any two stimuli. For tests: it takes time."""
        assert self.state.me in self.state.reachable
        assert {neighbour for neighbour, _ in self.state.mine.links} == self.neighbourhood.neighbours.keys()
        assert self._incarnations.keys() == self.exchange.told.keys()
        assert self.exchange.said.keys() <= self.exchange.told.keys()
        assert self._lost.keys() <= self._incarnations.keys()
        assert set(self.peers()) == self._incarnations.keys() - self._lost.keys()
        assert self._knows_types <= self.exchange.told.keys()
        self.exchange.validate()

    def heard_items(self) -> Iterator[tuple[int, Key, Any]]:
        """All that peers have told the strategy, as (peer, key, value)."""
        for peer, items in self.exchange.said.items():
            for key, value in items.items():
                if not isinstance(key, Statement):
                    yield peer, key, value

    # -- matching ----------------------------------------------------------------------------------------------------

    def contents(self, packets: Iterable[Packet]) -> list[Content]:
        lineage = self.types.lineage
        return [(lineage(packet.event.type), packet.event.attributes) for packet in packets]

    def make_table(self) -> TypedMatcher:
        return TypedMatcher(Index if self.settings.matcher == "index" else Scan, self.work)


def together(destinations: bytes, hops: int, packets: Sequence[Packet], note: Any = None) -> Forward:
    """Events that go the same way."""
    return Forward(destinations, hops, tuple(packets), note, any(map(_traced, packets)))


def _check_number(request: int) -> None:
    if request not in REQUESTS:
        raise ContentError(f"there is no request {request}: number requests upwards from 1 to {REQUESTS[-1]}")


def _ids(packets: Iterable[Packet]) -> list[EventId]:
    return [packet.event.id for packet in packets]


class _Listening:
    """Hears what peers say: declarations of types are for all strategies alike, all else is the strategy's own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(key, Statement):
            self._core.learn_type(key, value, cause)
        else:
            self._core.heard(peer, key, value, cause)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if not isinstance(key, Statement):  # which are never taken back
            self._core.unheard(peer, key, value, cause)
