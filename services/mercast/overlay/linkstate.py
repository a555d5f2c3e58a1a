"""Link state: what every broker says of itself, the newest record of each; and what follows, the topology.

Only brokers that can be reached count: they make up the digest, so that two neighbours with equal views have equal
digests. A record of one that cannot be reached is kept for a while, for it may come back, and then dropped.
"""

from collections.abc import Iterable, Set
from functools import cached_property
from hashlib import blake2b

from mercast.limits import DEFAULTS
from mercast.overlay.routes import Routes
from mercast.overlay.topology import MOST_BROKERS, MOST_COST, Topology
from mercast.protocol.messages import Record


class LinkState:
    def __init__(self, me: int, incarnation: int, clusters: tuple[int, ...] = (0,)) -> None:
        if not 0 <= me < MOST_BROKERS:
            raise ValueError(f"broker {me}: brokers are numbered from 0 to {MOST_BROKERS - 1}")
        self.me = me
        self._records = {me: Record(me, incarnation, 0, clusters, ())}
        self._links: dict[int, dict[int, int]] = {me: {}}
        """Of all records."""

    @property
    def mine(self) -> Record:
        return self._records[self.me]

    def __getitem__(self, broker: int) -> Record:
        return self._records[broker]

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, broker: int) -> bool:
        return broker in self._records

    def set_links(self, links: dict[int, int]) -> Record:
        """Say anew who the neighbours are."""
        self._put(self.mine._replace(sequence=self.mine.sequence + 1, links=tuple(sorted(links.items()))))
        return self.mine

    def learn(self, records: Iterable[Record]) -> list[Record]:
        """Take in the records that are news; answer those."""
        news = []
        for record in records:
            if record.broker != self.me and is_sound(record) and self._is_news(record):
                self._put(record)
                news.append(record)
        return news

    def begin_anew(self, broker: int, incarnation: int) -> None:
        """A broker was restarted, if that is news: all that it said before is void. Else the links that it had would
        count again as soon as one neighbour has it back, and it knows of nobody yet."""
        known = self._records.get(broker)
        if known:
            self.learn([Record(broker, incarnation, 0, known.clusters, ())])

    def forget(self, broker: int) -> None:
        if broker != self.me and self._records.pop(broker, None) is not None:
            del self._links[broker]
            self._changed()

    def _is_news(self, record: Record) -> bool:
        known = self._records.get(record.broker)
        if known is None:
            return len(self._records) < DEFAULTS.brokers
        return record[1:3] > known[1:3]

    def _put(self, record: Record) -> None:
        self._records[record.broker] = record
        self._links[record.broker] = dict(record.links)
        self._changed()

    def _changed(self) -> None:
        for derived in ("topology", "routes", "digest"):
            self.__dict__.pop(derived, None)

    @cached_property
    def topology(self) -> Topology:
        return Topology(self._links)

    @cached_property
    def routes(self) -> Routes:
        return Routes(self.topology, self.me)

    @property
    def reachable(self) -> frozenset[int]:
        """Brokers that can be reached, this one included."""
        return self.routes.reachable

    def known(self) -> list[Record]:
        """The records of the brokers that can be reached."""
        return [self._records[broker] for broker in sorted(self.reachable)]

    def named(self) -> list[Record]:
        """The same, and the records of those that they name: one that was restarted may not have named them yet."""
        linked = {other for broker in self.reachable for other in self._links[broker] if other in self._records}
        return [self._records[broker] for broker in sorted(linked | self.reachable)]

    @cached_property
    def digest(self) -> bytes:
        return blake2b(repr([record[:3] for record in self.known()]).encode(), digest_size=8).digest()

    def is_retiring(self, broker: int) -> bool:
        """Whether it is about to stop: then all its links are the dearest (`Neighbourhood.retire`)."""
        return min(self._links.get(broker, {}).values(), default=0) == MOST_COST

    @property
    def retiring(self) -> set[int]:
        """Others that are about to stop."""
        return {broker for broker in self.reachable if broker != self.me and self.is_retiring(broker)}

    def holds_together_without(self, leaving: Set[int]) -> bool:
        """Whether all the others that can be reached would still reach each other."""
        staying = set(self.reachable - leaving)
        begin = [staying.pop()] if staying else []
        while begin:
            broker = begin.pop()
            linked = {other for other in self._links[broker] if other in staying and broker in self._links[other]}
            staying -= linked
            begin += linked
        return not staying

    def unreachable(self) -> set[int]:
        return self._records.keys() - self.reachable


def is_sound(record: Record) -> bool:
    """A record that no table can hold is nobody's: it must not get in, nor be passed on."""
    brokers = (record.broker, *(neighbour for neighbour, _ in record.links))
    costs = (cost for _, cost in record.links)
    if max(len(record.links), len(record.clusters)) > DEFAULTS.links:
        return False
    return all(0 <= broker < MOST_BROKERS for broker in brokers) and all(1 <= cost <= MOST_COST for cost in costs)
