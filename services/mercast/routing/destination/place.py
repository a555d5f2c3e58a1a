"""A broker's place in one of its clusters, as MERC has it: who tells of what there, and where events go.

Besides TRT and SPRT (overlay/cluster.py) these are the tables of section IV-A: R-SRT and R-PRT, for each cluster.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mercast.content.interest import Interest
from mercast.matching import Content, TypedMatcher
from mercast.overlay.cluster import Cluster
from mercast.overlay.split import CARRY
from mercast.protocol.messages import Carried, Local, Origin, Packet
from mercast.routing.destination.carriers import FIRST_GROUP, Carriers
from mercast.routing.destination.sources import Source, Sources
from mercast.routing.destination.tellings import Crossed, Telling, Tellings, Way
from mercast.routing.destination.ways import Ways


class Place:
    def __init__(
        self, cluster: Cluster, is_there: Callable[[int], bool], matcher: TypedMatcher, ways_last: float
    ) -> None:
        """`is_there` says of an address whether that broker can be reached, and has said everything; `ways_last` how
        long a way counts that was the best."""
        self.cluster, self.number = cluster, cluster.number
        self._me, self._is_at = cluster.state.me, is_there
        self.advertisements = Tellings(self._me)
        """R-SRT."""
        self.ways = Ways(self.advertisements, self._counts, ways_last)
        """Those that subscriptions follow."""
        self._sources: defaultdict[int, Sources] = defaultdict(Sources)
        """The same, of events that go on from here into a cluster, by its number; here, by this one's."""
        self.subscriptions = Tellings(self._me)
        """R-PRT."""
        self.matcher = matcher
        """The same subscriptions, to match events with: destinations are brokers, and groups of edges."""
        self._laid: dict[Origin, tuple[Interest, int]] = {}
        """What is in the matcher, and its destination there."""
        self.carriers = Carriers(self._is_there, cluster.stays)

    def _is_there(self, broker: int) -> bool:
        return self._is_at(self.cluster.address(broker))

    def _counts(self, one: Telling) -> bool:
        """Who made an advertisement in this cluster counts even while out of reach, as in D-DBR."""
        return not one.crossed or self._is_there(one.broker)

    def within_reach(self, table: Tellings, origin: Origin, into: int | None = None) -> list[Way]:
        """By which ways it can be carried from here, the best first, into a cluster that they have not crossed: who
        tells of it can be reached, and is not this broker as an edge."""

        def counts(one: Telling) -> bool:
            return into not in one.crossed and self._is_there(one.broker) and not self._brings(one)

        return table.ways(origin, counts)

    def _brings(self, one: Telling) -> bool:
        return bool(one.crossed) and one.broker == self._me

    def look_for_sources(self, places: Iterable["Place"], advertisement: Origin) -> None:
        """Its ways have changed, here or in another place."""
        for place in places:
            self._sources[place.number].put(advertisement, frozenset(self._sources_of(advertisement, place)))

    def _sources_of(self, advertisement: Origin, place: "Place") -> Iterator[Source]:
        """By whom its events come, if they go on to that place: a way counts there that is this one, gone on."""
        told, onward = self.advertisements.of(advertisement), place.ways.of(advertisement)
        for crossed, brokers, _ in self.ways.of(advertisement):
            if place is self or any(way.crossed == (*crossed, self.number) for way in onward):
                for broker in brokers:
                    yield broker, told[Telling(crossed, broker)]

    def sources_for(self, subscription: Local | Carried) -> Sources:
        """By whom events may come here that go on to where a subscription was made, or brought from."""
        return self._sources[subscription.crossed[-1] if isinstance(subscription, Carried) else self.number]

    def lay(self, subscription: Origin) -> None:
        """Have the matcher know who wants what it asks for: the broker itself if it is in this cluster, else edges."""
        told = self.subscriptions.of(subscription) if subscription[0] != self._me else {}
        value, (laid, before) = self._value_of(told), self._laid.pop(subscription, (None, 0))
        if laid is not None and laid != value:
            self.matcher.remove(subscription)
        if value is not None:
            made_here = any(not telling.crossed for telling in told)
            destination = subscription[0] if made_here else self.carriers.take(told)
            if laid == value:
                self.matcher.move(subscription, destination)
            else:
                self.matcher.add(subscription, value.type, value.filter, destination)
            self._laid[subscription] = value, destination
        if before >= FIRST_GROUP:
            self.carriers.give_back(before)

    def _value_of(self, told: Mapping[Telling, Interest]) -> Interest | None:
        """Who is out of reach may tell of what went by this name before its broker was started anew."""
        there = (value for telling, value in told.items() if self._is_there(telling.broker))
        return next(there, next(iter(told.values()), None))

    def validate(self) -> None:
        self.ways.validate()
        made_here = {origin for origin in self.subscriptions if origin[0] == self._me}
        assert set(self.matcher) == self._laid.keys() == set(self.subscriptions) - made_here
        for table in (self.advertisements, self.subscriptions):
            brought = {key for keys in table.brought.values() for key in keys}
            assert brought == {key for key in table.own if isinstance(key, Carried)}

    def entries(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[tuple[int, ...]]:
        """The destination list of each event."""
        return [
            self._list(tuple(found), packet.event.id.broker, lineage, packet.crossed)
            for packet, (lineage, _), found in zip(
                packets, contents, self.matcher.destinations_many(contents), strict=True
            )
        ]

    def _list(self, found: tuple[int, ...], source: int, lineage: tuple[str, ...], crossed: Crossed) -> tuple[int, ...]:
        if not found or found[-1] < FIRST_GROUP:
            return found
        brokers = tuple(one for one in found if one < FIRST_GROUP)
        elsewhere = self.ways.better(source, lineage, (*crossed, self.number))
        edges = self.carriers.pick(source, crossed, found[len(brokers) :], elsewhere)
        return (*brokers, *(CARRY | edge for edge in edges))
