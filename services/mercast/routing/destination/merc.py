"""MERC: match at edges, route inside clusters (section IV; Algorithm 3).

Inside a cluster an event is routed as by D-DBR, which is what is left where there is one cluster only. An edge broker
is in several clusters, with tables for each; it carries advertisements, subscriptions and events from one to another.

- What it says for brokers of other clusters it says under its own name, and keeps where the thing was made (`Carried`).
- All edges carry all advertisements and subscriptions, so nothing is announced anew when one takes over. Events are
  carried by the edge that their destination list names, and by no other (`carriers.py`).
- Clusters may form cycles. Of each advertisement a cluster takes one best way, and subscriptions follow only that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias

from mercast.content.event import EventId
from mercast.content.interest import Advertisement, Interest, Subscription
from mercast.content.rules import EVERYTHING
from mercast.matching import Content
from mercast.overlay.cluster import NUMBER, Cluster, place_of
from mercast.overlay.exchange import NOBODY, Cause, Key
from mercast.overlay.seen import Seen, SeenWindow
from mercast.overlay.split import BROKER, CARRY, pack, unpack
from mercast.protocol.effects import Effect
from mercast.protocol.messages import Carried, Forward, Local, Origin, Packet
from mercast.protocol.stimuli import Tick
from mercast.routing.core import count_others
from mercast.routing.destination.learning import Learning
from mercast.routing.destination.place import Place
from mercast.routing.destination.tellings import Crossed, Telling, Tellings, Way, order
from mercast.routing.lists import ListRouting
from mercast.routing.settings import Settings
from mercast.wire.door import MOST_CROSSED

HOME = 0
"""The place where clients are."""

_crossed = attrgetter("crossed")
_kind = attrgetter("event.id.broker", "event.type", "crossed")
"""Of packets that go on alike."""

Ways: TypeAlias = tuple[tuple[Way, ...], ...]
"""Of an advertisement, place by place."""

Brought: TypeAlias = tuple[Carried, ...]
"""The names under which something is brought into a cluster."""


class MERC(ListRouting):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        # All have heard of a new way, or never will; and what waits for a route goes by the old one, if it ever does.
        ways_last = self.settings.settle_within + self.settings.wait_for_route
        self.places = tuple(Place(one, self.is_there, self.make_table(), ways_last) for one in self.clusters)
        self._there: set[int] = set()
        """Peers that counted when that was looked at last: they can be reached, and have said everything."""
        self._carried = SeenWindow()
        """What has come here, by each way. Of what is forgotten a copy may be carried again, and is dropped later."""
        self._learning = Learning(self.clusters, self.exchange, self.settings.wait_for_route)

    def _find_deadline(self) -> float:
        ways = (place.ways.next_deadline() for place in self.places)
        return min(super()._find_deadline(), self._learning.next_deadline(), *ways)

    def _done(self) -> list[Effect]:
        if not self._learning.is_over and self._learning.ends(self._now, self._partly - self._lost.keys()):
            self._unpark()
        return super()._done()

    def peers(self) -> Iterable[int]:
        return frozenset[int]().union(*(cluster.members() for cluster in self.clusters))

    def is_there(self, peer: int) -> bool:
        if peer & NUMBER == self.me:
            return True
        return peer not in self._lost and self.is_whole(peer)

    def _peers_in(self, place: Place) -> list[int]:
        return [peer for peer in self.exchange.told if place_of(peer) == place.cluster.place]

    def _others(self, place: Place) -> list[Place]:
        return [one for one in self.places if one is not place]

    def met(self, peer: int) -> None:
        place = self.places[place_of(peer)]
        if not self.is_whole(peer):
            self._take_back_subscriptions(peer)
        for key, advertisement in place.advertisements.own.items():
            self.exchange.tell(peer, key, advertisement, NOBODY)

    def _take_back_subscriptions(self, peer: int) -> None:
        """It was restarted, and is told of them when it advertises anew. Were it told now it would pass that on, and be
        told otherwise as soon as its old advertisements are void: events would come to it that it cannot carry."""
        for key, told in list(self.exchange.told[peer].items()):
            if isinstance(told, Subscription):
                self.exchange.untell(peer, key, NOBODY)

    # -- from local clients ------------------------------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None:
        home = self.places[HOME]
        for peer in self._peers_in(home):
            self.exchange.tell(peer, local, advertisement, cause)
        home.advertisements.put((self.me, local), Telling((), self.me), advertisement)
        self._carry_advertisements(home, (), {(self.me, local): advertisement}, cause)

    def unadvertised(self, local: Local, cause: Cause) -> None:
        home = self.places[HOME]
        for peer in self._peers_in(home):
            self.exchange.untell(peer, local, cause)
        was = home.advertisements.drop((self.me, local), Telling((), self.me))
        self._carry_advertisements(home, (), {(self.me, local): was}, cause)

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None:
        self.places[HOME].subscriptions.put((self.me, local), Telling((), self.me), subscription)
        self._tell_wanted(HOME, local, subscription, cause)
        self._carry_subscription(self.places[HOME], (), (self.me, local), cause)

    def unsubscribed(self, local: Local, cause: Cause) -> None:
        for peer in self._peers_in(self.places[HOME]):
            self.exchange.untell(peer, local, cause)
        self.places[HOME].subscriptions.drop((self.me, local), Telling((), self.me))
        self._carry_subscription(self.places[HOME], (), (self.me, local), cause)

    # -- from other brokers ------------------------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        place = self.places[place_of(peer)]
        origin, telling = _read(key, peer & NUMBER)
        if isinstance(value, Advertisement):
            place.advertisements.put(origin, telling, value)
            self._carry_advertisements(place, telling.crossed, {origin: value}, cause)
        else:
            place.subscriptions.put(origin, telling, value)
            place.lay(origin)
            self._carry_subscription(place, telling.crossed, origin, cause)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        place = self.places[place_of(peer)]
        origin, telling = _read(key, peer & NUMBER)
        table = place.advertisements if isinstance(value, Advertisement) else place.subscriptions
        table.drop(origin, telling)
        if isinstance(value, Advertisement):
            self._carry_advertisements(place, telling.crossed, {origin: value}, cause)
        else:
            place.lay(origin)
            self._carry_subscription(place, telling.crossed, origin, cause)

    def repeated(self, peer: int, value: Any, cause: Cause) -> None:
        """Started anew it advertises as before, and is told of subscriptions that were taken back when it was met."""
        if isinstance(value, Advertisement):
            self._review(peer, [value], cause)

    def completed(self, peer: int, cause: Cause) -> None:
        self._look_who_is_there((peer,), cause)

    def overlay_changed(self) -> None:
        self._look_who_is_there(self._whole.keys() | self._there, NOBODY)

    def _look_who_is_there(self, peers: Iterable[int], cause: Cause) -> None:
        """An edge announces only what it can reach."""
        for place in self.places:
            place.carriers.forget_picks()
        changed = {peer for peer in peers if self.is_there(peer) != (peer in self._there)}
        self._there ^= changed
        for peer in sorted(peer for peer in changed if self.exchange.said.get(peer)):  # and it has said anything
            place, said = self.places[place_of(peer)], self.exchange.said[peer]
            advertised, subscribed = (
                sorted({_read(key, peer & NUMBER)[0] for key, value in said.items() if isinstance(value, kind)})
                for kind in (Advertisement, Subscription)
            )
            says = {origin: place.advertisements.agreed(origin) for origin in advertised}
            self._carry_advertisements(place, (), says, cause)
            for origin in subscribed:
                if place.subscriptions.agreed(origin) is None:
                    place.lay(origin)
                self._carry_subscription(place, (), origin, cause)

    def types_changed(self, cause: Cause) -> None:
        for place in self.places:
            for origin in sorted(place.advertisements):
                self._bring_advertisement(place, (), origin, cause)
                self._look_at_ways(origin)
        for peer in sorted(self.exchange.said):
            self._review(peer, None, cause)

    # -- across (Algorithm 3) ----------------------------------------------------------------------------------------

    def _carry_advertisements(
        self, place: Place, crossed: Crossed, says: Mapping[Origin, Interest | None], cause: Cause
    ) -> None:
        """To all brokers of other clusters (lines 3 to 5). Subscriptions follow, those that it concerns (None: all)."""
        concerned: dict[int, list[Interest | None]] = {}
        for origin, value in says.items():
            self._bring_advertisement(place, crossed, origin, cause)
            for peer in set(_concerned(self.places, *self._look_at_ways(origin))) & self.exchange.told.keys():
                concerned.setdefault(peer, []).append(value)
        for peer in sorted(concerned):
            known = [value for value in concerned[peer] if value is not None]
            self._review(peer, known if len(known) == len(concerned[peer]) else None, cause)

    def _look_at_ways(self, origin: Origin) -> tuple[Ways, Ways]:
        """The ways of an advertisement before, and now."""
        before = self._ways_of(origin)
        for place in self.places:
            place.ways.look(self._now, origin)
        for place in self.places:
            place.look_for_sources(self.places, origin)
        return before, self._ways_of(origin)

    def _ways_of(self, advertisement: Origin) -> Ways:
        return tuple(place.ways.of(advertisement) for place in self.places)

    def _tick(self, tick: Tick) -> None:
        super()._tick(tick)
        concerned: set[int] = set()
        for origin in [origin for place in self.places for origin in place.ways.give_up(self._now)]:
            concerned.update(_concerned(self.places, *self._look_at_ways(origin)))
        for peer in sorted(concerned & self.exchange.told.keys()):
            self._review(peer, None, NOBODY)

    def _bring_advertisement(self, place: Place, crossed: Crossed, origin: Origin, cause: Cause) -> None:
        for into in self._others(place):
            before, now = self._bring(into, into.advertisements, origin)
            if before == now and not _came_by(now, crossed, place):
                continue
            for peer in self._peers_in(into):
                for key in now:
                    self.exchange.tell(peer, key, into.advertisements.own[key], cause)
                self._untell(peer, before, now, cause)

    def _carry_subscription(self, place: Place, crossed: Crossed, origin: Origin, cause: Cause) -> None:
        """To brokers of other clusters with advertisements that concern it (lines 6 to 8)."""
        for into in self._others(place):
            before, now = self._bring(into, into.subscriptions, origin)
            if before == now and not _came_by(now, crossed, place):
                continue
            if before != now:
                into.lay(origin)
            for key in now:
                # Nobody waits for what it was brought as before: that may be told again because this is.
                because = cause if key not in before or _came_by((key,), crossed, place) else NOBODY
                self._tell_wanted(into.cluster.place, key, into.subscriptions.own[key], because)
            for peer in self._peers_in(into):
                self._untell(peer, before, now, cause)

    def _untell(self, peer: int, before: Brought, now: Brought, cause: Cause) -> None:
        """After what is said instead: so it is never without a way."""
        for key in before:
            if key not in now:
                self.exchange.untell(peer, key, cause)

    def _bring(self, into: Place, table: Tellings, origin: Origin) -> tuple[Brought, Brought]:
        """Under which names this broker brought it into a cluster before, and does now; the table is as now."""
        before, ways = table.brought.pop(origin, ()), self._ways_into(into, table, origin)
        for key in before:
            table.drop(origin, Telling(key.crossed, self.me))
        now = tuple(Carried(origin, way.crossed) for way in ways)
        for way in ways:
            table.put(origin, Telling(way.crossed, self.me), way.value)
        if now:
            table.brought[origin] = now
        return before, now

    def _ways_into(self, into: Place, table: Tellings, origin: Origin) -> list[Way]:
        """From other clusters: with these crossed, and not this one. Of an advertisement, the best; of a subscription,
        all: each may be wanted for other advertisements, and clusters that the best has crossed may want another."""
        ways, advertisement = list[Way](), table is into.advertisements
        for place in self._others(into):
            told = place.advertisements if advertisement else place.subscriptions
            for way in place.within_reach(told, origin, into.number):
                if len(way.crossed) == MOST_CROSSED:  # made up: nobody could be told of one more
                    continue
                if not advertisement or self._some_may_cross(place, into, way.value.type):
                    ways.append(way._replace(crossed=(*way.crossed, place.number)))
        ways.sort(key=lambda way: order(way.crossed))
        return ways[:1] if advertisement else ways

    def _may_cross(self, place: Place, into: Place, type: str) -> bool:
        """Whether the rules for what leaves home and what comes home let events of a type through. Subscriptions need
        none: they follow advertisements."""
        rules = [self.settings.exports] if place is self.places[HOME] else []
        rules += [self.settings.imports] if into is self.places[HOME] else []
        return not any(rule != EVERYTHING and rule.against_publishing(self.types.lineage(type)) for rule in rules)

    def _some_may_cross(self, place: Place, into: Place, type: str | None) -> bool:
        """Whether events of an advertisement may: of its type or of a subtype. Each is looked at when it comes."""
        if type is None or self._may_cross(place, into, type):
            return True
        return any(self._may_cross(place, into, name) for name in self.types.below(type))

    # -- who wants which subscriptions ---------------------------------------------------------------------------------

    def _tell_wanted(self, place: int, key: Local | Carried, subscription: Interest, cause: Cause) -> None:
        """Tell those who may have events for it, and take it back from others."""
        into = self.places[place]
        wanted = into.sources_for(key).brokers(self.types, subscription)
        for peer in self._peers_in(into):
            if peer & NUMBER in wanted:
                self.exchange.tell(peer, key, subscription, cause)
            elif key in self.exchange.told[peer]:
                self.exchange.untell(peer, key, cause)

    def _review(self, peer: int, advertisements: Iterable[Interest] | None, cause: Cause) -> None:
        """The same for one peer, of all subscriptions that these advertisements concern (None: all)."""
        place, broker = self.places[place_of(peer)], peer & NUMBER
        own = place.subscriptions.own
        concerned = dict(own)
        if advertisements is not None:
            concerned = dict(pair for one in advertisements for pair in own.concerning(self.types, one))
        for key, subscription in concerned.items():
            if place.sources_for(key).has(broker, self.types, subscription):
                self.exchange.tell(peer, key, subscription, cause)
            else:
                self.exchange.untell(peer, key, cause)

    # -- events --------------------------------------------------------------------------------------------------------

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:
        wanted = self.places[HOME].entries(packets, contents)
        self.multicast(wanted, packets)
        carries = [CARRY | self.me in entries for entries in wanted]
        for packet, carried in zip(packets, carries, strict=True):
            if carried and (self._sampling or packet.traced):  # an entry that has nowhere to go: it is here already
                self._made[packet.event.id] = self._made.get(packet.event.id, 0) - 1
        others = (count_others(tuple(entries), self.me) for entries in wanted)
        return [count + carried for count, carried in zip(others, carries, strict=True)]

    def arrived(self, forward: Forward, neighbour: int) -> None:
        place = self.places[place_of(neighbour)]
        roles = _roles(forward.destinations, self.me)
        if neighbour != place.cluster.me:  # else it was published here
            if place is not self.places[HOME]:
                self._take_home(place, forward, neighbour)
            elif self.me in roles:
                self.take_in_soon(forward, neighbour)
            else:
                self.pass_by(forward, neighbour)
        if CARRY | self.me in roles:
            if self._learning.is_over:
                self._carry(place, forward.packets)
                if self._waits_until is not None:
                    self.note_waited(forward, neighbour)
            else:
                self.park(place.cluster.place, forward._replace(destinations=pack((CARRY | self.me,))))

    def _take_home(self, place: Place, forward: Forward, neighbour: int) -> None:
        """From another cluster, for this broker's own clients, whose home is bound by the rules as all of it is."""
        home, types = self.places[HOME], {packet.event.type for packet in forward.packets}
        denied = {type for type in types if not self._may_cross(place, home, type)}
        if not denied:
            self.take_in_soon(forward, neighbour)
            return
        kept = tuple(packet for packet in forward.packets if packet.event.type not in denied)
        others = tuple(packet for packet in forward.packets if packet.event.type in denied)
        if kept:
            self.take_in_soon(forward._replace(packets=kept), neighbour)
        self.pass_by(forward._replace(packets=others), neighbour)

    def _carry(self, place: Place, packets: Sequence[Packet]) -> None:
        """Into the other clusters, to all who want it there (lines 9 to 11, with R-PRTs)."""
        new, taken = self._not_carried(place, packets), set[EventId]()
        for into in self._others(place):
            allowed = {kind for kind in {*map(_kind, new)} if self._is_way(place, into, *kind)}
            going = [
                packet._replace(crossed=(*packet.crossed, place.number)) for packet in new if _kind(packet) in allowed
            ]
            if going:
                taken.update(packet.event.id for packet in going)
                wanted = into.entries(going, self.contents(going))
                self.note_made(going, wanted)
                self.multicast(wanted, going, place=into.cluster.place)
        self.carried += len(taken)
        for packet in new:
            if packet.event.id not in taken:  # by the rules, or its publisher's events come there by another way
                self.drop(packet, "not carried")

    def _not_carried(self, place: Place, packets: Sequence[Packet]) -> list[Packet]:
        """Those that have not come here before by the same way: one that has come by another reaches others."""
        new: list[Packet] = []
        for crossed, run in groupby(packets, _crossed):
            some = list(run)
            seen = self._carried.see_all([packet.event.id for packet in some], (*crossed, place.number))
            for packet, how in zip(some, seen, strict=True):
                if how is Seen.NEW:
                    new.append(packet)
                else:
                    self.drop(packet, how.value)
        return new

    def _is_way(self, place: Place, into: Place, broker: int, type: str, crossed: Crossed) -> bool:
        """Whether events of a type, published at a broker, may go into a cluster, and come there this way."""
        if into.number in crossed or len(crossed) == MOST_CROSSED or not self._may_cross(place, into, type):
            return False
        ways = into.ways.come_by(broker, self.types.lineage(type))
        return not ways or (*crossed, place.number) in ways

    def way_to(self, broker: int) -> tuple[Cluster, int] | None:
        """Towards a broker of another cluster: the first of the edges that bring its advertisements here."""
        direct = super().way_to(broker)
        if direct is not None:
            return direct
        for place in self.places:
            for origin in sorted(place.advertisements.made_at(broker)):
                if ways := place.within_reach(place.advertisements, origin):
                    return place.cluster, ways[0].brokers[0]
        return None

    def validate(self) -> None:
        super().validate()
        for place in self.places:
            place.validate()


def _read(key: Key, broker: int) -> tuple[Origin, Telling]:
    """Where something was made, and how a broker tells of it."""
    if isinstance(key, Carried):
        return key.origin, Telling(key.crossed, broker)
    return (broker, key), Telling((), broker)  # type: ignore[return-value]


def _came_by(brought: Brought, crossed: Crossed, place: Place) -> bool:
    """Whether it is brought by the very way that something changed on: else nobody has to wait for that."""
    return any(key.crossed == (*crossed, place.number) for key in brought)


def _concerned(places: Iterable[Place], before: Ways, now: Ways) -> Iterator[int]:
    """Whom to tell other subscriptions than before, as an advertisement comes by other ways."""
    changes = list(zip(places, before, now, strict=True))
    # Across other clusters, or it says another:
    turned = any([one[::2] for one in a] != [one[::2] for one in b] for _, a, b in changes)
    for place, a, b in changes:
        left, right = ({broker for way in some for broker in way.brokers} for some in (a, b))
        yield from map(place.cluster.address, left | right if turned else left ^ right)


@lru_cache(maxsize=65_536)
def _roles(destinations: bytes, me: int) -> frozenset[int]:
    return frozenset(entry for entry in unpack(destinations) if entry & BROKER == me)
