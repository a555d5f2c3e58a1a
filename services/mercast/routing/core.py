"""What all strategies share about clients and their events; overlaid.py beneath it has what they share among brokers.

A strategy is a subclass that says what to do when a local client advertises, subscribes or publishes, when a peer says
something, and when an event comes in; everything below that is here, and the same for all.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, cast

from mercast.content.errors import ContentError
from mercast.content.event import Event, EventId, check_event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.matching import Content, Index, Scan, TypedMatcher, Work
from mercast.overlay.cluster import NUMBER, place_of
from mercast.overlay.exchange import Cause, Request
from mercast.overlay.routes import NO_HOP
from mercast.overlay.seen import Seen, SeenWindow
from mercast.overlay.split import BROKER, ENTRY, unpack
from mercast.protocol import stimuli
from mercast.protocol.effects import Answer, Deliver, Receipts, Reported, Settled
from mercast.protocol.messages import (
    Forward,
    Local,
    Packet,
    Report,
    Statement,
)
from mercast.protocol.repeated import in_one
from mercast.protocol.rows import (
    FIRST,
    FURTHER,
    WAITED,
    Advertised,
    Agreed,
    Column,
    Copied,
    Delivered,
    Dropped,
    Published,
    Run,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from mercast.protocol.stimuli import REQUESTS
from mercast.routing.clients import NO_CLIENTS, Clients, Interested
from mercast.routing.control_rows import declared_row
from mercast.routing.overlaid import Overlaid
from mercast.routing.parked import Parked
from mercast.routing.sampling import Sampler
from mercast.routing.settings import Settings
from mercast.routing.tapped import Tapped, ids_of, pick, picked, tapped

_new = tuple.__new__
"""Makes a named tuple in half of the time that its own constructor takes: for those that each event needs."""

_traced = attrgetter("traced")
_plain, _request, _client_and_type = attrgetter("plain"), attrgetter("request"), attrgetter("client", "type")
_NEW = Seen.NEW


class Core(Overlaid):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        self.work = Work()
        self.clients = Clients(self.make_table())
        self.seen = SeenWindow(own=(me, incarnation))
        """Events that were taken in here."""
        self._received_before = SeenWindow()
        """Events of which a copy came in, for this broker or for others."""
        self._sequence = 0
        self._settle_by: dict[Request, float] = {}
        self.settled_at: dict[Local, int] = {}
        """When subscriptions settled, in microseconds; kept for the taps only."""
        self.parked = Parked(DEFAULTS)
        self._arrivals: list[tuple[Forward, int, list[Seen] | None]] = []
        """What came in, from whom, and whether it was here before (None: it only passes by). About to be matched, all
        at once, and to be written about."""
        self._waits_until: float | None = None
        """Of what was parked before and is tried again."""
        self.dropped: Counter[str] = Counter()
        """Events by the reason why they went no further."""
        self._sampling, self._samples = self.settings.sampling > 0, Sampler(self.settings.sampling)
        self._made: dict[EventId, int] = {}
        """Of events that this broker has carried on in this turn, as an edge: the brokers in the lists that it made."""
        self.carried = 0
        """Events that this broker, as an edge, has carried from one cluster to others."""
        self._does |= {
            stimuli.Declare: self._declare,
            stimuli.Advertise: self._advertise,
            stimuli.Unadvertise: self._unadvertise,
            stimuli.Subscribe: self._subscribe,
            stimuli.Unsubscribe: self._unsubscribe,
            stimuli.Publish: self._publish,
            stimuli.Refuse: self._refuse,
            stimuli.Leave: self._leave,
            stimuli.Unsent: self._unsent,
            stimuli.Batch: self._batch,
        }

    def _find_deadline(self) -> float:
        settling = min(self._settle_by.values(), default=float("inf"))
        return min(super()._find_deadline(), settling, self.parked.next_deadline())

    # -- what a strategy decides, besides what is in overlaid.py -------------------------------------------------------

    @abstractmethod
    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None: ...

    @abstractmethod
    def unadvertised(self, local: Local, cause: Cause) -> None: ...

    @abstractmethod
    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None: ...

    @abstractmethod
    def unsubscribed(self, local: Local, cause: Cause) -> None: ...

    @abstractmethod
    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        """Send events of local clients on their way; how many destinations each has."""

    def unsent(self, place: int, forward: Forward) -> None:  # noqa: ARG002
        """Events were not sent on, for the link went down. Lost, unless the strategy knows another way."""
        self.drop_all((forward,), "link down")

    # -- what clients ask for ------------------------------------------------------------------------------------------

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
        self.note(declared_row(self.declared.statements[statement]))
        self.types_changed(cause)

    def _advertise(self, asked: stimuli.Advertise) -> None:
        local = Local(asked.client, asked.request)
        self._take(local, Advertisement, asked.type, asked.filter, self._add_advertisement)

    def _subscribe(self, asked: stimuli.Subscribe) -> None:
        def add(local: Local, subscription: Subscription, cause: Cause) -> None:
            self.clients.subscribe(local, subscription, asked.echo)
            self.note(Subscribed(*local, subscription.type, str(subscription.filter), asked.echo))
            self.subscribed(local, subscription, cause)

        self._take(Local(asked.client, asked.request), Subscription, asked.type, asked.filter, add)

    def _take(self, local: Local, kind: type[Any], name: str | None, filter: Filter, add: Callable[..., None]) -> None:
        try:
            if name is not None:
                check_name(name, "type")
            interest: Interest = kind(name, filter)
            interest.check(self.types)
            self._check_new(local)
            self.clients.check_room(local.client, interest)
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
        self.note(Advertised(*local, advertisement.type, str(advertisement.filter)))
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
        self.note(Unadvertised(*local))
        self.unadvertised(local, cause)

    def _drop_subscription(self, local: Local, cause: Cause) -> None:
        self.clients.unsubscribe(local)
        self.settled_at.pop(local, None)
        self.note(Unsubscribed(*local))
        self.unsubscribed(local, cause)

    def _refuse(self, asked: stimuli.Refuse) -> None:
        self._effects.append(Answer(asked.client, asked.request, refused=asked.reason))

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

    # -- settling ------------------------------------------------------------------------------------------------------

    def _because(self, request: Request, change: Callable[[Cause], None]) -> None:
        """Make a change for a client, and let it know when it is settled."""
        self.exchange.open(request)
        self._settle_by[request] = self._now + self.settings.settle_within
        change(request)
        for peer in self._partly:
            self.exchange.wait_for_all(peer, request)  # it may yet say what this request concerns
        self.exchange.close_if_settled(request)
        self._tell_settled()  # at once, for the number may be used anew

    def _tell_settled(self) -> None:
        for request in self.exchange.settled:
            self._settle_by.pop(request, None)
            self._agreed(request, ())
        self.exchange.settled.clear()

    def _end_waiting(self) -> None:
        self._tell_settled()  # what waited for neighbours that were silent no longer does
        for request in [request for request, by in self._settle_by.items() if by <= self._now]:
            self._agreed(request, self._missing(request))
            self.exchange.give_up(request)
            del self._settle_by[request]

    def _agreed(self, request: Request, missing: tuple[int, ...]) -> None:
        self._effects.append(Settled(request.client, request.number, missing))
        self.note(Agreed(request.client, request.number, missing))
        if self.settings.control_rows and not missing and Local(*request) in self.clients.subscriptions:
            self.settled_at[Local(*request)] = int(self._now * 1e6)

    def _missing(self, request: Request) -> tuple[int, ...]:
        return tuple(sorted({peer & NUMBER for peer in self.exchange.missing(request)}))

    # -- events of clients ---------------------------------------------------------------------------------------------

    def _publish(self, *asked: stimuli.Publish) -> None:
        if self._need_no_look(asked):
            self._send_off([one.request for one in asked], self._packets(asked))
            return
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

    def _need_no_look(self, asked: Sequence[stimuli.Publish]) -> bool:
        """Whether all there is to look at was seen by now, the names before. So it is with nearly all."""
        return (
            all(map(_plain, asked))
            and self.clients.unrestricted.issuperset(map(_client_and_type, asked))
            and REQUESTS[0] <= min(map(_request, asked))
            and max(map(_request, asked)) <= REQUESTS[-1]
            and not self.types.declares_any({one.type for one in asked})
        )

    def _packets(self, asked: Sequence[stimuli.Publish]) -> list[Packet]:
        """Events as they are on their way, numbered."""
        me, incarnation, before = self.me, self.incarnation, self._sequence
        self._sequence += len(asked)
        ids = [_new(EventId, (me, incarnation, number)) for number in range(before + 1, self._sequence + 1)]
        return [
            _new(
                Packet,
                (_new(Event, (id_, type_, attributes, time, client, kind, trace, payload, encoded, b"")), traced, ()),
            )
            for id_, (client, _, type_, attributes, time, payload, kind, trace, traced, encoded, _) in zip(
                ids, asked, strict=True
            )
        ]

    def _accept(self, asked: stimuli.Publish) -> Packet:
        client, request, type_, attributes, time, payload, content_type, trace, traced, encoded, plain = asked
        if request not in REQUESTS:
            _check_number(request)
        id_ = _new(EventId, (self.me, self.incarnation, self._sequence + 1))
        event = _new(Event, (id_, type_, attributes, time, client, content_type, trace, payload, encoded, b""))
        if not (plain and (client, type_) in self.clients.unrestricted):
            event = check_event(event)  # else all there is to look at was seen by now, the names before
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
        traced = any(map(_traced, packets))
        for some in self._tapped(packets, traced):
            told, found, clients = (pick(one, some.places) for one in (packets, counts, interested))
            self._write_published(some, told, found, clients, traced)
        self._made.clear()
        self._acknowledge(requests, packets, counts)

    def _write_published(
        self,
        some: Tapped,
        packets: Sequence[Packet],
        counts: Sequence[int],
        interested: Sequence[Interested],
        traced: bool,
    ) -> None:
        """All of these are of those that are tapped."""
        events, matches, made = [packet[0] for packet in packets], 0, self._made
        _, types, attributes, _, publishers, _, _, payloads, _, _ = zip(*events, strict=True)  # all in one step
        if any(interested):
            matches = in_one(list(map(len, interested)))
            counts = [count - bool(clients) for count, clients in zip(counts, interested, strict=True)]
            self._write_delivered(some, packets, interested, 0, traced)
        if made:
            counts = [count + made.get(id_, 0) for count, id_ in zip(counts, some.ids, strict=True)]
        others, sizes = in_one(counts), in_one(list(map(len, payloads)))
        told = in_one(types), list(attributes), others, sizes, matches, in_one(publishers)
        self._write(packets if traced else (), Run(Published, len(events), *some.columns, *told))

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
            implied = Advertisement(asked.type)
            self.clients.check_room(asked.client, implied)
            self.deadlines_change()
            self._add_advertisement(local, implied, Request(asked.client, -1))
        elif not allowed:
            raise ContentError(f"the event lies outside what {asked.client!r} has advertised for type {asked.type!r}")

    def _deliver(self, packets: Sequence[Packet], interested: Sequence[Interested]) -> None:
        """One copy to each client, with the subscriptions that matched."""
        self._effects += [
            _new(Deliver, (client, packet.event, subscriptions))
            for packet, clients in zip(packets, interested, strict=True)
            for client, subscriptions in clients
        ]

    def _write_delivered(
        self,
        some: Tapped,
        packets: Sequence[Packet],
        interested: Sequence[Interested],
        hops: int,
        traced: bool,
    ) -> None:
        """All of these are of those that are tapped, and somebody is interested."""
        clients, subscriptions = zip(*chain.from_iterable(interested), strict=True)
        columns = some.columns
        if set(map(len, interested)) != {1}:  # as it mostly is
            places = [at for at, some in enumerate(interested) for _ in some]
            packets, columns = pick(packets, places), picked(packets, places).columns
        told = in_one(clients), in_one(subscriptions), hops, FIRST
        self._write(packets if traced else (), Run(Delivered, len(clients), *columns, *told))

    # -- events that come in -------------------------------------------------------------------------------------------

    def take_in(self, forward: Forward, neighbour: int) -> list[Packet]:
        """Deliver events that came from a neighbour, but those that were here before; the new ones."""
        seen = self.take_in_soon(forward, neighbour)
        self._take_in_all()
        return list(_new_among(forward.packets, seen))

    def take_in_soon(self, forward: Forward, neighbour: int) -> list[Seen]:
        """The same, together with what arrives after it: matching many at once is cheaper."""
        seen = self.seen.see_all(ids_of(forward.packets))
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
        new: list[Packet] = []
        for forward, _, seen in arrivals:
            if seen is not None:
                new += _new_among(forward.packets, seen)
        interested = iter(self.clients.interested(self.contents(new), new, False) if new else ())
        for forward, neighbour, seen in arrivals:
            wanted = None if seen is None else self._take_in(forward, seen, interested)
            for some in self._tapped(forward.packets, forward.traced):
                self._write_arrival(some, forward, neighbour, wanted)
        self._made.clear()

    def _tapped(self, packets: Sequence[Packet], traced: bool) -> Iterable[Tapped]:
        """The events that the taps get rows of."""
        return tapped(packets, self._samples if self._sampling else None, traced) if self._sampling or traced else ()

    def _take_in(self, forward: Forward, seen: list[Seen], interested: Iterator[Interested]) -> list[Interested]:
        """For each event, who gets it."""
        packets = forward.packets
        all_new = seen.count(_NEW) == len(seen)
        if all_new:
            wanted = list(islice(interested, len(seen)))
        else:
            wanted = [next(interested) if how is _NEW else NO_CLIENTS for how in seen]
        self._deliver(packets, wanted)
        if not all_new:
            for packet, how in zip(packets, seen, strict=True):
                if how is not _NEW:
                    self.drop(packet, how.value)
        return wanted

    def _write_arrival(
        self, some: Tapped, forward: Forward, neighbour: int, interested: Sequence[Interested] | None
    ) -> None:
        """Rows of the copies that came in, and of what was delivered of them."""
        wanted = False
        if interested is not None:
            interested = pick(interested, some.places)
            clients = set(map(len, interested))
            wanted = (0 not in clients) if len(clients) == 1 else in_one(list(map(bool, interested)))
            if wanted is not False:
                packets = pick(forward.packets, some.places)
                self._write_delivered(some, packets, interested, forward.hops, forward.traced)
        self._write_copied(some, forward, neighbour, wanted, self._copies(some))

    def _copies(self, some: Tapped) -> Column:
        """Which copy of each event it is."""
        (broker, incarnation, sequences, _), before = some.columns, self._received_before
        if some.in_row and before.follow((broker, incarnation, ()), cast("range", sequences)):
            return FIRST
        seen = before.see_all(some.ids)
        return in_one([FIRST if one is _NEW else FURTHER for one in seen])

    def note_waited(self, forward: Forward, neighbour: int) -> None:
        """Events that came before are carried on only now: the lists that were made for them are news."""
        for some in self._tapped(forward.packets, forward.traced):
            chosen = [at for at, id_ in zip(some.places, some.ids, strict=True) if id_ in self._made]
            if chosen:
                self._write_copied(picked(forward.packets, chosen), forward, neighbour, False, WAITED)
        self._made.clear()

    def _write_copied(self, some: Tapped, forward: Forward, neighbour: int, wanted: Column, copies: Column) -> None:
        made: Column = [self._made.get(id_, 0) for id_ in some.ids] if self._made else 0
        length, taken = len(forward.destinations) // ENTRY, _names(forward.destinations, self.me)
        told = neighbour, forward.hops, length, copies, wanted, taken, made
        packets = pick(forward.packets, some.places) if forward.traced else ()
        self._write(packets, Run(Copied, len(some.places), *some.columns, *told))

    # -- events that wait, and those that go no further ----------------------------------------------------------------

    def _unsent(self, unsent: stimuli.Unsent) -> None:
        for forward in unsent.forwards:
            self.unsent(place_of(unsent.neighbour), forward._replace(hops=forward.hops - 1))
        self._take_in_all()

    def park(self, place: int, forward: Forward) -> None:
        """No route now: wait for one, for a while."""
        self.deadlines_change()
        until = self._now + self.settings.wait_for_route if self._waits_until is None else self._waits_until
        self.drop_all(self.parked.add(until, place, forward), "no route")

    def _unpark(self) -> None:
        for until, place, forward in self.parked.take():
            self._waits_until = until
            self.forwarded(self.clusters[place].me, forward)
        self._waits_until = None

    def drop_all(self, forwards: Iterable[Forward], why: str) -> None:
        for forward in forwards:
            for packet in forward.packets:
                self.drop(packet, why)

    def drop(self, packet: Packet, why: str) -> None:
        self.dropped[why] += 1
        event = packet.event
        if packet.traced or (self._sampling and self._samples(event.id.broker, event.id.incarnation, event.time)):
            self._write((packet,), Run.of(Dropped(event.id, event.time, why)))

    def _tick(self, tick: stimuli.Tick) -> None:
        super()._tick(tick)
        self.drop_all(self.parked.due(self._now), "no route")

    # -- taps ----------------------------------------------------------------------------------------------------------

    def note_made(self, packets: Sequence[Packet], wanted: Iterable[Iterable[int]]) -> None:
        """New lists were made for events on their way, with these entries."""
        if self._sampling or any(map(_traced, packets)):
            for packet, entries in zip(packets, wanted, strict=True):
                self._made[packet.event.id] = self._made.get(packet.event.id, 0) + count_others(tuple(entries), self.me)

    def _write(self, packets: Sequence[Packet], run: Run) -> None:
        """Rows about these events, one about each; packets are needed only if some are traced."""
        self._rows.append(run)
        if packets:
            for packet, row in zip(packets, run, strict=True):
                if packet.traced:
                    self._report(Report(packet.event.id.broker, 0, packet.event.publisher, self.me, row))

    def _report(self, report: Report) -> None:
        """Towards the broker of the publisher; what has no route is lost."""
        if report.target == self.me:
            self._effects.append(Reported(report.client, report.broker, report.row))
            return
        way = self.way_to(report.target)
        if way is not None and not self.went_too_far(report.hops, way[0]):
            hop = way[0].state.routes.next_hop(way[1])
            if hop != NO_HOP:
                self.send(way[0].address(hop), report._replace(hops=report.hops + 1))

    # -- all at once ---------------------------------------------------------------------------------------------------

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
                    self._do(kind, stimulus)

    # -- matching ------------------------------------------------------------------------------------------------------

    def contents(self, packets: Iterable[Packet]) -> list[Content]:
        lineage = {type_: self.types.lineage(type_) for type_ in {packet.event.type for packet in packets}}
        return [(lineage[packet.event.type], packet.event.attributes) for packet in packets]

    def make_table(self) -> TypedMatcher:
        return TypedMatcher(Index if self.settings.matcher == "index" else Scan, self.work)


def together(destinations: bytes, hops: int, packets: Sequence[Packet], note: Any = None) -> Forward:
    """Events that go the same way."""
    return Forward(destinations, hops, tuple(packets), note, any(map(_traced, packets)))


def _check_number(request: int) -> None:
    if request not in REQUESTS:
        raise ContentError(f"there is no request {request}: number requests upwards from 1 to {REQUESTS[-1]}")


def _new_among(packets: Sequence[Packet], seen: list[Seen]) -> Sequence[Packet]:
    if seen.count(_NEW) == len(seen):
        return packets
    return [packet for packet, how in zip(packets, seen, strict=True) if how is _NEW]


@lru_cache(maxsize=1024)
def count_others(entries: tuple[int, ...], me: int) -> int:
    """The brokers that entries name, each counted once whatever its roles."""
    return len({entry & BROKER for entry in entries} - {me})


@lru_cache(maxsize=4096)
def _names(destinations: bytes, broker: int) -> bool:
    """Whether a list has an entry of a broker, in whatever role."""
    return any(entry & BROKER == broker for entry in unpack(destinations))
