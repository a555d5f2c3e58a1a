"""Mistakes that only an edge can see, for it knows the members of several clusters, and which clusters they are in.

Brokers have numbers of their own over all clusters that are joined, since events are known by them; clusters have names
and numbers of their own, since events carry the numbers of those that they have crossed.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

from mercast.broker.observed import Observed, ObservedMember
from mercast.routing.destination.merc import MERC
from mercast.routing.destination.place import Place
from mercast.routing.destination.tellings import Tellings


def clashes(broker: Observed) -> list[str]:
    """What is wrong, for people; nothing, if all is well."""
    return [*_same_brokers(broker), *_same_afar(broker), *_same_clusters(broker)]


def same_elsewhere(broker: Observed, place: int, who: int, peer: str) -> str:
    """Where a broker of one cluster cannot be at this address, for another of its number is part of another cluster;
    empty if all is well."""
    names = [one.name for one in broker.config.clusters()]
    for cluster in broker.core.clusters:
        known = broker.members[cluster.place].get(who)
        if cluster.place == place or known is None or who not in cluster.state.reachable:
            continue
        if known.incarnation and known.peer != peer:
            return _told(who, (names[cluster.place], known.peer), (names[place], peer))
    return ""


def _same_brokers(broker: Observed) -> Iterator[str]:
    names = [one.name for one in broker.config.clusters()]
    for one, other in combinations(range(len(names)), 2):
        here, there = broker.members[one], broker.members[other]
        for who in sorted(here.keys() & there.keys()):
            if _are_two(here[who], names[one], there[who], names[other]):
                yield _told(who, (names[one], here[who].peer), (names[other], there[who].peer))


def _are_two(one: ObservedMember, here: str, other: ObservedMember, there: str) -> bool:
    """An edge that is in both says so, in both; of one that was only heard of by its address nobody knows."""
    said = one.incarnation and other.incarnation
    return bool(said) and one.peer != other.peer and not (there in one.also_in and here in other.also_in)


def _same_afar(broker: Observed) -> Iterator[str]:
    """In clusters that this edge is not in: what is carried from there says who made it, and where."""
    places = broker.core.places if isinstance(broker.core, MERC) else ()
    names = [one.name for one in broker.config.clusters()]
    for place in places:
        for record in place.cluster.state.known():
            made = [table.of(origin) for table in _tables(places) for origin in table.made_at(record.broker)]
            far = {telling.crossed[0] for told in made for telling in told if telling.crossed}
            for number in sorted(far - {place.number, *record.clusters}):
                where = f"in cluster {names[place.cluster.place]!r} and in the cluster with number {number}"
                yield f"broker {record.broker} is {where}: give each broker an id of its own, over all clusters"


def _tables(places: Iterable[Place]) -> Iterator[Tellings]:
    for place in places:
        yield from (place.advertisements, place.subscriptions)


def _told(who: int, *where: tuple[str, str]) -> str:
    both = " and ".join(f"in cluster {name!r} at {peer}" for name, peer in where)
    return f"broker {who} is {both}: give each broker an id of its own, over all clusters"


def _same_clusters(broker: Observed) -> Iterator[str]:
    said = sorted(set(_named(broker)))
    for at, what, own in ((1, "number", "a number"), (0, "name", "a name")):
        for key in sorted({one[at] for one in said}, key=str):
            others = {one[1 - at]: one for one in reversed(said) if one[at] == key}
            if len(others) > 1:
                both = " and ".join(
                    f"{name!r} with number {number} (broker {who})" for name, number, who in sorted(others.values())
                )
                yield f"clusters have the same {what}: {both}: give each cluster {own} of its own"


def _named(broker: Observed) -> Iterator[tuple[str, int, int]]:
    """Names and numbers of clusters, by those who are in them."""
    for mine in broker.config.clusters():
        yield mine.name, mine.number, broker.core.me
    for cluster in broker.core.clusters:
        for record in cluster.state.known():
            member = broker.members[cluster.place].get(record.broker)
            numbers = [number for number in record.clusters if number != cluster.number]
            if member is not None and len(member.also_in) == len(numbers):
                yield from ((name, number, record.broker) for name, number in zip(member.also_in, numbers, strict=True))
