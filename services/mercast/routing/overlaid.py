"""A broker among brokers: its places in clusters, links, who is there, and the exchange of control state.

What this means for clients and their events is in core.py, which stands on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from mercast.content.types import Declaration, Types
from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.exchange import NOBODY, Cause, Exchange, Key
from mercast.overlay.linkstate import LinkState
from mercast.overlay.neighbourhood import Outgoing
from mercast.overlay.organise import Rule as OrganiseRule
from mercast.overlay.organising import Manners, Organising
from mercast.overlay.routes import NO_HOP
from mercast.protocol import stimuli
from mercast.protocol.effects import CloseLink, Effect, Send, Tap
from mercast.protocol.messages import (
    Ask,
    Control,
    Forward,
    HeartBeat,
    Look,
    Message,
    Organise,
    Record,
    Reply,
    Report,
    Same,
    Statement,
    Update,
)
from mercast.protocol.rows import ControlRow, Linked, Run, Unlinked, Written
from mercast.protocol.stimuli import Stimulus
from mercast.routing.declared import Declared
from mercast.routing.settings import Settings

View: TypeAlias = tuple[dict[int, int], Iterable[Record]]
"""Of a cluster: the own links there, and what the others say of theirs."""


_UNKNOWN = float("-inf")
_OF_EVENTS = (stimuli.Received, stimuli.Publish, stimuli.Batch)
"""Stimuli that, by themselves, change no deadline."""


class Overlaid(ABC):
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
        self._incarnations: dict[int, int] = {}
        """Peers that we have met, by their addresses, each with the incarnation that we met."""
        self._lost: dict[int, float] = {}
        """Peers out of reach, and since when."""
        self._whole: dict[int, int] = {}
        """Peers that have said everything, and in which incarnation."""
        self._partly: set[int] = set()
        """Peers that have not, since they were met."""
        self.most_hops = 0
        """That any message had when it came here."""
        self._now = 0.0
        self._deadline = _UNKNOWN
        """The next one, unless it is over or something was done that may have changed it. Events do not."""
        self._effects: list[Effect] = []
        self._rows: list[Run] = []
        self._outbox: dict[int, list[Message]] = {}
        self._does: dict[type, Callable[[Any], None]] = {
            stimuli.Received: self._received,
            stimuli.LinkUp: self._link_up,
            stimuli.LinkDown: self._link_down,
            stimuli.Retire: self._retire,
            stimuli.Tick: self._tick,
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

    # -- the one mutator -----------------------------------------------------------------------------------------------

    def handle(self, now: float, stimulus: Stimulus) -> list[Effect]:
        self._now, self._effects, self._rows, self._outbox = now, [], [], {}
        self._do(type(stimulus), stimulus)
        return self._done()

    def _do(self, kind: type, stimulus: Stimulus) -> None:
        if kind not in _OF_EVENTS:
            self.deadlines_change()
        self._does[kind](stimulus)

    def _done(self) -> list[Effect]:
        for organising in self.organising:
            self._organise(organising)
        for control in self.exchange.messages(self._now):
            self._route(self.clusters[place_of(control.target)], control._replace(target=control.target & NUMBER))
        self._tell_settled()
        effects = self._effects
        if self._rows:
            effects.append(Tap(Written(self._rows)))
        effects += [Send(neighbour, tuple(messages)) for neighbour, messages in self._outbox.items()]
        return effects

    def next_deadline(self) -> float:
        if self._deadline <= self._now or self.organising:
            self._deadline = self._find_deadline()
        return self._deadline

    def deadlines_change(self) -> None:
        """To be said before anything is done that makes or ends one."""
        self._deadline = _UNKNOWN

    def _find_deadline(self) -> float:
        return min(
            self.exchange.oldest + self.settings.settle_within,
            *(cluster.neighbourhood.next_deadline() for cluster in self.clusters),
            self.exchange.next_deadline(),
            *(organising.next_deadline() for organising in self.organising),
            min(self._out_of_reach(), default=float("inf")) + self.settings.purge_after,
        )

    def _out_of_reach(self) -> Iterator[float]:
        yield from self._lost.values()
        for cluster in self.clusters:
            yield from cluster.unreachable.values()

    # -- what a strategy decides ---------------------------------------------------------------------------------------

    @abstractmethod
    def peers(self) -> Iterable[int]:
        """The addresses of the brokers to exchange control state with."""

    def meet(self, peer: int) -> None:
        """What it should know of is said before we have said everything."""
        self.exchange.meet(peer, self.met)

    def met(self, peer: int) -> None:  # noqa: B027
        """A new peer, or one that was restarted: say what it should know of from the start."""

    @abstractmethod
    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    @abstractmethod
    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    def repeated(self, peer: int, value: Any, cause: Cause) -> None:  # noqa: B027
        """A peer says again what it has said before."""

    def completed(self, peer: int, cause: Cause) -> None:  # noqa: B027
        """A peer has said everything, since it was met."""

    @abstractmethod
    def forwarded(self, neighbour: int, forward: Forward) -> None:
        """Events came in from a neighbour."""

    def overlay_changed(self) -> None:  # noqa: B027
        """Routes or peers are no longer what they were."""

    def types_changed(self, cause: Cause) -> None:  # noqa: B027
        """A type was declared: subscriptions may concern advertisements that they did not concern before."""

    # -- what is done about clients and events (routing/core.py) -------------------------------------------------------

    @abstractmethod
    def _tell_settled(self) -> None:
        """Clients are told which of their requests are."""

    @abstractmethod
    def _take_in_all(self) -> None:
        """Events that came in so far meet things as they are now."""

    @abstractmethod
    def _unpark(self) -> None:
        """Events that had no route are tried again."""

    @abstractmethod
    def _report(self, report: Report) -> None: ...

    @abstractmethod
    def _state(self, statement: Statement, cause: Cause) -> None: ...

    @abstractmethod
    def _end_waiting(self) -> None:
        """Of requests that were not settled in time."""

    # -- what brokers say ----------------------------------------------------------------------------------------------

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
                    self.deadlines_change()
                    self._take_in_all()  # as things were before what follows
                    self._heard(cluster, arrival.neighbour & NUMBER, message)
        self._update(updates)
        self._take_in_all()

    def _update(self, updates: Sequence[tuple[int, Update]]) -> None:
        """Updates that follow each other: there are new routes once, whoever says how much."""
        if not updates:
            return
        self.deadlines_change()
        for cluster in self.clusters:
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

    # -- who is there --------------------------------------------------------------------------------------------------

    def _link_up(self, link: stimuli.LinkUp) -> None:
        cluster = self.clusters[place_of(link.neighbour)]
        neighbour = link.neighbour & NUMBER
        self._send_all(cluster, cluster.neighbourhood.link_up(self._now, neighbour, link.incarnation, link.cost))
        self.note(Linked(link.neighbour, link.cost))
        self._look_around()

    def _link_down(self, link: stimuli.LinkDown) -> None:
        cluster = self.clusters[place_of(link.neighbour)]
        self._send_all(cluster, cluster.neighbourhood.link_down(link.neighbour & NUMBER))
        self.note(Unlinked(link.neighbour))
        self._look_around()

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

    def heard_all(self, peer: int, incarnation: int, cause: Cause) -> None:
        self._whole[peer] = incarnation
        if self.is_whole(peer):  # else its news has overtaken the news of its restart
            self._partly.discard(peer)
        self.completed(peer, cause)

    def is_whole(self, peer: int) -> bool:
        """Whether it has said everything, as it is now."""
        return self._whole.get(peer, -1) == self._incarnations.get(peer)

    def way_to(self, broker: int) -> tuple[Cluster, int] | None:
        """In which cluster to go, and to whom there."""
        return next(((one, broker) for one in self.clusters if broker in one.state.reachable), None)

    # -- types ---------------------------------------------------------------------------------------------------------

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

    # -- on the way ----------------------------------------------------------------------------------------------------

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

    def note(self, row: ControlRow) -> None:
        """For the taps, if they are to know about control state."""
        if self.settings.control_rows:
            self._rows.append(Run.of(row))

    def _send_all(self, cluster: Cluster, outgoing: Outgoing) -> None:
        for neighbour, message in cluster.addressed(outgoing):
            self.send(neighbour, message)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _tick(self, _: stimuli.Tick) -> None:
        for cluster in self.clusters:
            beats, silent = cluster.neighbourhood.beat(self._now)
            self._send_all(cluster, beats)
            for neighbour in map(cluster.address, silent):
                self._effects.append(CloseLink(neighbour, "silent for too long"))
                self._link_down(stimuli.LinkDown(neighbour))
        self._end_waiting()
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

    def _due(self, since: dict[int, float]) -> list[int]:
        """Those that were lost so long ago that what is known of them is to be forgotten."""
        return [who for who, when in since.items() if when + self.settings.purge_after <= self._now]

    def validate(self) -> None:
        """Assert what must hold between any two stimuli. For tests: it takes time."""
        for cluster in self.clusters:
            assert self.me in cluster.state.reachable
            assert {who for who, _ in cluster.state.mine.links} == cluster.neighbourhood.neighbours.keys()
        assert self.next_deadline() == self._find_deadline()
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


class _Listening:
    """Hears what peers say: declarations of types are for all strategies alike, all else is the strategy's own."""

    def __init__(self, core: Overlaid) -> None:
        self._core = core

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if isinstance(key, Statement):
            self._core.learn_type(key, value, cause)
        else:
            self._core.heard(peer, key, value, cause)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if not isinstance(key, Statement):  # which are never taken back
            self._core.unheard(peer, key, value, cause)

    def repeated(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        if not isinstance(key, Statement):
            self._core.repeated(peer, value, cause)

    def completed(self, peer: int, incarnation: int, cause: Cause) -> None:
        self._core.heard_all(peer, incarnation, cause)
