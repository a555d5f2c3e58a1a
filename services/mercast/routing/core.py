"""What all strategies share: links, link state, the exchange of control state, clients, settling, time.

A strategy is a subclass that says what to do when a local client advertises, subscribes or publishes, when a peer says
something, and when an event comes in; everything below that is here, and the same for all.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice, repeat
from operator import attrgetter
from typing import Any, TypeAlias, cast

from mercast.content.errors import ContentError
from mercast.content.event import Event, EventId, check_event
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.types import Declaration, Types
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.matching import Content, Index, Scan, TypedMatcher, Work
from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.exchange import NOBODY, Cause, Exchange, Key, Request
from mercast.overlay.linkstate import LinkState
from mercast.overlay.neighbourhood import Outgoing
from mercast.overlay.organise import Rule as OrganiseRule
from mercast.overlay.organising import Manners, Organising
from mercast.overlay.routes import NO_HOP
from mercast.overlay.seen import Seen, SeenWindow
from mercast.overlay.split import ENTRY
from mercast.protocol import stimuli
from mercast.protocol.effects import Answer, CloseLink, Deliver, Effect, Receipts, Reported, Send, Settled, Tap
from mercast.protocol.messages import (
    Ask,
    Control,
    Forward,
    HeartBeat,
    Local,
    Look,
    Message,
    Organise,
    Packet,
    Record,
    Reply,
    Report,
    Same,
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


View: TypeAlias = tuple[dict[int, int], Iterable[Record]]
"""Of a cluster: the own links there, and what the others say of theirs."""

_traced = attrgetter("traced")
_NEW = Seen.NEW


class Core(ABC):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        self.me, self.incarnation = me, incarnation
        self.settings = settings or Settings()
        self.declared = Declared()
        self._knows_types: set[int] = set()
        """Neighbours that have been told all statements."""
        self.clusters = tuple(self._join(place, incarnation) for place in range(len(self.settings.clusters)))
        """Its places, the first of them at home: where its clients are."""
        self.state, self.neighbourhood = self.clusters[0].state, self.clusters[0].neighbourhood
        self.organising = tuple(self._organising()) if self.settings.organise != "off" else ()
        """By place; none if links stay where they are."""
        together = self.settings.all_peer_items, self.settings.all_peer_bytes
        limits = self.settings.peer_items, self.settings.peer_bytes, together
        self.exchange = Exchange(me, incarnation, _Listening(self), self.settings.patience, *limits)
        self.work = Work()
        self.clients = Clients(self.make_table())
        self.seen = SeenWindow(own=(me, incarnation))
        """Events that were taken in here."""
        self._received_before = SeenWindow()
        """Events of which a copy came in, for this broker or for others."""
        self._sequence = 0
        self._incarnations: dict[int, int] = {}
        """Peers that we have met, by their addresses, each with the incarnation that we met."""
        self._lost: dict[int, float] = {}
        """Peers out of reach, and since when."""
        self._whole: dict[int, int] = {}
        """Peers that have said everything, and in which incarnation."""
        self._partly: set[int] = set()
        """Peers that have not, since they were met."""
        self._settle_by: dict[Request, float] = {}
        self.parked = Parked(DEFAULTS)
        self._arrivals: list[tuple[Forward, int, list[Seen] | None]] = []
        """What came in, from whom, and whether it was here before (None: it only passes by). About to be matched, all
        at once, and to be written about."""
        self._waits_until: float | None = None
        """Of what was parked before and is tried again."""
        self.dropped: Counter[str] = Counter()
        """Events by the reason why they went no further."""
        self._sampling, self._samples = self.settings.sampling > 0, sampler(self.settings.sampling)
        self.carried = 0
        """Events that this broker, as an edge, has carried from one cluster to others."""
        self.most_hops = 0
        """That any message had when it came here."""
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
            stimuli.Refuse: self._refuse,
            stimuli.Leave: self._leave,
            stimuli.Received: self._received,
            stimuli.LinkUp: self._link_up,
            stimuli.LinkDown: self._link_down,
            stimuli.Unsent: self._unsent,
            stimuli.Retire: self._retire,
            stimuli.Tick: self._tick,
            stimuli.Batch: self._batch,
        }

    def _join(self, place: int, incarnation: int) -> Cluster:
        number = self.settings.clusters[place]
        state = LinkState(self.me, incarnation, self.settings.clusters)
        return Cluster(place, number, state, self.settings.timing, self.settings.rule)

    def _organising(self) -> Iterator[Organising]:
        settings, rule = self.settings, cast("OrganiseRule", self.settings.organise)
        manners = Manners(rule, settings.organise_every, settings.most_links, settings.timing.heart_beat)
        return (Organising(cluster, manners) for cluster in self.clusters)

    def begin_with(self, now: float, links: dict[int, int], records: Iterable[Record], *others: View) -> list[Effect]:
        """Start with a view of the overlay, in each place, instead of learning it by messages."""
        self._now, self._effects, self._rows, self._outbox = now, [], [], {}
        for cluster, view in zip(self.clusters, ((links, records), *others), strict=True):
            cluster.neighbourhood.begin_with(now, *view)
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
        for organising in self.organising:
            self._organise(organising)
        for control in self.exchange.messages(self._now):
            self._route(self.clusters[place_of(control.target)], control._replace(target=control.target & NUMBER))
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
            *(cluster.neighbourhood.next_deadline() for cluster in self.clusters),
            self.exchange.next_deadline(),
            min(self._settle_by.values(), default=float("inf")),
            self.parked.next_deadline(),
            *(organising.next_deadline() for organising in self.organising),
            min(self._out_of_reach(), default=float("inf")) + self.settings.purge_after,
        )

    def _out_of_reach(self) -> Iterator[float]:
        yield from self._lost.values()
        for cluster in self.clusters:
            yield from cluster.unreachable.values()

    # -- what a strategy decides -------------------------------------------------------------------------------------

    @abstractmethod
    def peers(self) -> Iterable[int]:
        """The addresses of the brokers to exchange control state with."""

    def meet(self, peer: int) -> None:
        """What it should know of is said before we have said everything."""
        self.exchange.meet(peer, self.met)

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

    def completed(self, peer: int) -> None:  # noqa: B027
        """A peer has said everything, since it was met."""

    @abstractmethod
    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        """Send events of local clients on their way; how many destinations each has."""

    @abstractmethod
    def forwarded(self, neighbour: int, forward: Forward) -> None:
        """Events came in from a neighbour."""

    def unsent(self, place: int, forward: Forward) -> None:  # noqa: ARG002
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

    def _because(self, request: Request, change: Callable[[Cause], None]) -> None:
        """Make a change for a client, and let it know when it is settled."""
        self.exchange.open(request)
        self._settle_by[request] = self._now + self.settings.settle_within
        change(request)
        for peer in self._partly:
            self.exchange.wait_for_all(peer, request)  # it may yet say what this request concerns
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
            implied = Advertisement(asked.type)
            self.clients.check_room(asked.client, implied)
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

    def _write_delivered(self, packet: Packet, clients: Interested, hops: int) -> None:
        event = packet.event
        for client, subscriptions in clients:
            self._write(packet, Delivered(event.id, event.time, client, subscriptions, hops))

    def take_in(self, forward: Forward, neighbour: int) -> list[Packet]:
        """Deliver events that came from a neighbour, but those that were here before; the new ones."""
        seen = self.take_in_soon(forward, neighbour)
        self._take_in_all()
        return list(_new_among(forward.packets, seen))

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
        new: list[Packet] = []
        for forward, _, seen in arrivals:
            if seen is not None:
                new += _new_among(forward.packets, seen)
        interested = iter(self.clients.interested(self.contents(new), new, False))
        for forward, neighbour, seen in arrivals:
            wanted = repeat(NO_CLIENTS) if seen is None else self._take_in(forward, seen, interested)
            self._copied(forward, neighbour, wanted)

    def _take_in(self, forward: Forward, seen: list[Seen], interested: Iterator[Interested]) -> list[Interested]:
        """For each event, who gets it."""
        packets = forward.packets
        all_new = seen.count(_NEW) == len(seen)
        if all_new:
            wanted = list(islice(interested, len(seen)))
        else:
            wanted = [next(interested) if how is _NEW else NO_CLIENTS for how in seen]
        self._deliver(packets, wanted)
        if self._sampling or forward.traced or not all_new:
            for packet, how, clients in zip(packets, seen, wanted, strict=True):
                if how is not _NEW:
                    self.drop(packet, how.value)
                elif self._taps(packet):
                    self._write_delivered(packet, clients, forward.hops)
        return wanted

    def _copied(self, forward: Forward, neighbour: int, interested: Iterable[Interested]) -> None:
        """Rows of the copies that came in."""
        if not (self._sampling or forward.traced):
            return
        tapped = [(packet, wanted) for packet, wanted in zip(forward.packets, interested) if self._taps(packet)]  # noqa: B905
        before = self._received_before.see_all([packet.event.id for packet, _ in tapped])
        hops, length = forward.hops, len(forward.destinations) // ENTRY
        for (packet, wanted), seen in zip(tapped, before, strict=True):
            event, copy = packet.event, FIRST if seen is _NEW else FURTHER
            self._write(packet, Copied(event.id, event.time, neighbour, hops, length, copy, bool(wanted)))

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _received(self, *arrivals: stimuli.Received) -> None:
        updates: list[tuple[int, Update]] = []
        for arrival in arrivals:
            cluster = self.clusters[place_of(arrival.neighbour)]
            neighbour = cluster.neighbourhood.neighbours.get(arrival.neighbour & NUMBER)
            if neighbour is None:
                continue  # read before the link went down
            neighbour.last_heard = self._now
            for message in arrival.messages:
                if type(message) is Update:
                    updates.append((arrival.neighbour, message))
                    continue
                if updates:
                    self._update(updates)
                    updates = []
                if type(message) is Forward:
                    self.forwarded(arrival.neighbour, message)
                else:
                    self._take_in_all()  # as things were before what follows
                    self._heard(cluster, arrival.neighbour & NUMBER, message)
        self._update(updates)
        self._take_in_all()

    def _update(self, updates: Sequence[tuple[int, Update]]) -> None:
        """Updates that follow each other: there are new routes once, whoever says how much."""
        for cluster in self.clusters if updates else ():
            mine = [
                (neighbour & NUMBER, update)
                for neighbour, update in updates
                if place_of(neighbour) == cluster.place and not self.went_too_far(update.hops, cluster)
            ]
            if mine:
                self._take_in_all()
                outgoing, news = cluster.neighbourhood.heard_updates(mine)
                self._send_all(cluster, outgoing)
                if news:
                    self._look_around()

    def _heard(self, cluster: Cluster, neighbour: int, message: Message) -> None:
        match message:
            case Control() | Ask() | Reply() | Look() | Same():
                self._routed(cluster, neighbour, message)
            case Report():
                self._report(message)
            case HeartBeat():
                self._send_all(cluster, cluster.neighbourhood.heard_beat(self._now, neighbour, message))

    def _routed(self, cluster: Cluster, neighbour: int, message: Control | Organise) -> None:
        if message.target != self.me:
            if not self.went_too_far(message.hops, cluster):
                self._route(cluster, message._replace(hops=message.hops + 1))
        elif isinstance(message, Control):
            self.exchange.receive(message._replace(source=cluster.address(message.source)), self._now)
        elif self.organising:
            self.organising[cluster.place].hear(neighbour, message)

    def _organise(self, organising: Organising) -> None:
        """Links move to where the traffic is."""
        outgoing, links = organising.act(self._now)
        self._send_all(organising.cluster, outgoing)
        for link in links:
            address = organising.cluster.address(link.neighbour)
            self._effects.append(link._replace(neighbour=address))
            if isinstance(link, CloseLink):
                self._link_down(stimuli.LinkDown(address))

    def _route(self, cluster: Cluster, message: Control | Organise) -> None:
        """Towards the target; what has no route is lost, and sent again by its source."""
        hop = cluster.state.routes.next_hop(message.target)
        if hop != NO_HOP:
            self.send(cluster.address(hop), message)

    def _link_up(self, link: stimuli.LinkUp) -> None:
        cluster = self.clusters[place_of(link.neighbour)]
        neighbour = link.neighbour & NUMBER
        self._send_all(cluster, cluster.neighbourhood.link_up(self._now, neighbour, link.incarnation, link.cost))
        self._look_around()

    def _link_down(self, link: stimuli.LinkDown) -> None:
        cluster = self.clusters[place_of(link.neighbour)]
        self._send_all(cluster, cluster.neighbourhood.link_down(link.neighbour & NUMBER))
        self._look_around()

    def _unsent(self, unsent: stimuli.Unsent) -> None:
        for forward in unsent.forwards:
            self.unsent(place_of(unsent.neighbour), forward._replace(hops=forward.hops - 1))
        self._take_in_all()

    def _retire(self, _: stimuli.Retire) -> None:
        for cluster in self.clusters:
            self._send_all(cluster, cluster.neighbourhood.retire())
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
            incarnation = self.clusters[place_of(peer)].state[peer & NUMBER].incarnation
            if self._incarnations.get(peer) != incarnation:
                self._incarnations[peer] = incarnation
                if not self.is_whole(peer):
                    self._partly.add(peer)
                self.meet(peer)
        neighbours: set[int] = set()
        for cluster in self.clusters:
            cluster.look_around(self._now)
            neighbours |= cluster.neighbours()
        self._tell_types(now & neighbours)
        self._unpark()
        self.overlay_changed()

    def heard_all(self, peer: int, incarnation: int) -> None:
        self._whole[peer] = incarnation
        if self.is_whole(peer):  # else its news has overtaken the news of its restart
            self._partly.discard(peer)
        self.completed(peer)

    def is_whole(self, peer: int) -> bool:
        """Whether it has said everything, as it is now."""
        return self._whole.get(peer, -1) == self._incarnations.get(peer)

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

    def went_too_far(self, hops: int, cluster: Cluster) -> bool:
        """Whether a message has been on the way for longer than any way is: it may be going in circles."""
        if hops > self.most_hops:
            self.most_hops = hops
        return hops > self.settings.least_hops and hops > 2 * len(cluster.state.reachable)

    @property
    def hop_limit(self) -> int:
        """Where it is greatest."""
        return max(self.settings.least_hops, *(2 * len(cluster.state.reachable) for cluster in self.clusters))

    def send(self, neighbour: int, message: Message) -> None:
        self._outbox.setdefault(neighbour, []).append(message)

    def _send_all(self, cluster: Cluster, outgoing: Outgoing) -> None:
        for neighbour, message in cluster.addressed(outgoing):
            self.send(neighbour, message)

    def park(self, place: int, forward: Forward) -> None:
        """No route now: wait for one, for a while."""
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
            return
        way = self.way_to(report.target)
        if way is not None and not self.went_too_far(report.hops, way[0]):
            hop = way[0].state.routes.next_hop(way[1])
            if hop != NO_HOP:
                self.send(way[0].address(hop), report._replace(hops=report.hops + 1))

    def way_to(self, broker: int) -> tuple[Cluster, int] | None:
        """In which cluster to go, and to whom there."""
        return next(((one, broker) for one in self.clusters if broker in one.state.reachable), None)

    # -- time --------------------------------------------------------------------------------------------------------

    def _tick(self, _: stimuli.Tick) -> None:
        for cluster in self.clusters:
            beats, silent = cluster.neighbourhood.beat(self._now)
            self._send_all(cluster, beats)
            for neighbour in map(cluster.address, silent):
                self._effects.append(CloseLink(neighbour, "silent for too long"))
                self._link_down(stimuli.LinkDown(neighbour))
        self._tell_settled()  # what waited for these no longer does
        for request in [request for request, by in self._settle_by.items() if by <= self._now]:
            self._effects.append(Settled(request.client, request.number, self._missing(request)))
            self.exchange.give_up(request)
            del self._settle_by[request]
        self.exchange.expire(self._now, self.settings.settle_within)
        for peer in self._due(self._lost):
            del self._lost[peer], self._incarnations[peer]
            self._partly.discard(peer)
            self._whole.pop(peer, None)
            self.exchange.part(peer)
        for cluster in self.clusters:
            for broker in self._due(cluster.unreachable):
                del cluster.unreachable[broker]
                cluster.state.forget(broker)
                if cluster is self.clusters[0]:  # else its events may still come here, by way of home
                    self.seen.forget(broker)
                    self._received_before.forget(broker)
        self.drop_all(self.parked.due(self._now), "no route")

    def _missing(self, request: Request) -> tuple[int, ...]:
        return tuple(sorted({peer & NUMBER for peer in self.exchange.missing(request)}))

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
        for cluster in self.clusters:
            assert self.me in cluster.state.reachable
            assert {who for who, _ in cluster.state.mine.links} == cluster.neighbourhood.neighbours.keys()
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

    def completed(self, peer: int, incarnation: int) -> None:
        self._core.heard_all(peer, incarnation)
