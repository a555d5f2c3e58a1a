"""Self-organising reconfiguration of the overlay (D-DBR, section III-C): links where the traffic is.

Each broker counts messages for a cycle, ranks the links it has and those it might have, and asks the candidate with the
largest gain. The candidate accepts or refuses; a full broker gives up its least useful link for the new one. A broker
uses only its TRT and its own counts, and never gains a link while it has the most that are allowed. Two rules:

- `paper`: gain > MinLose + MinLose, each of the traffic between the two ends of a link alone. What a link carries for
  others does not count, so a step may lengthen the paths of all messages together, and nothing proves that steps end.
- `carried`: besides, all that the two brokers counted must travel fewer hops afterwards. A message whose path gets
  longer used a link that was given up, so an end of that link counted it: the sum over all messages shrinks at least
  as much. It shrinks with every step and there are finitely many overlays, so steady traffic brings them to rest.

By either rule, a step that would cut any broker off from another is refused. What is decided holds for the topology and
the counts of that topology: one step at a time, then count anew. Two at once could disconnect what neither does alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from mercast.overlay.topology import NEW_LINK, UNREACHABLE, Array, Link, Topology

Rule: TypeAlias = Literal["paper", "carried"]


class Traffic:
    """Collection: the messages a broker has sent, received or passed on in a cycle, by source and destination."""

    def __init__(self, counts: Mapping[tuple[int, int], int] | None = None) -> None:
        self.counts = Counter(counts)

    def count(self, source: int, destinations: Iterable[int]) -> None:
        """A message of this source came by with this destination list, or began here."""
        self.counts.update((source, destination) for destination in destinations)

    def between(self, one: int, other: int) -> int:
        """The paper's rate, times the length of the cycle."""
        return self.counts[one, other] + self.counts[other, one]

    def __or__(self, other: "Traffic") -> "Traffic":
        """What either of two brokers counted; a message that both counted is one."""
        return Traffic(self.counts | other.counts)

    def matrix(self, topology: Topology) -> Array:
        """A row per source, a column per destination; brokers that are gone are left out."""
        matrix = np.zeros(topology.trt.shape)
        place = topology.place
        for (source, destination), count in self.counts.items():
            if source in place and destination in place:
                matrix[place[source], place[destination]] = count
        return matrix


class Quota(NamedTuple):
    """Room for one more link: MinLose, and the neighbour whose link is given up for it, if any."""

    lose: float
    neighbour: int | None


class Request(NamedTuple):
    """Asks the candidate for a link."""

    asker: int
    candidate: int
    gain: float
    quota: Quota
    traffic: Traffic
    """What the asker counted."""


class Step(NamedTuple):
    """Execution: the link to be opened, and the links to be closed once it is open."""

    opened: Link
    closed: tuple[Link, ...]


class Organiser:
    """The decisions of one broker at the end of a cycle."""

    def __init__(
        self,
        me: int,
        topology: Topology,
        traffic: Traffic,
        most_links: int,
        rule: Rule = "carried",
        doubt: float = 0.0,
    ) -> None:
        """By the rule `carried`, what is saved must be so many times what it may differ by if messages come by chance:
        the standard deviation of counts is their root."""
        self.me = me
        self._topology = topology
        self._neighbours = topology.neighbours(me)
        self._traffic = traffic
        self._most_links = most_links
        self._rule = rule
        self._doubt = doubt

    def gains(self) -> dict[int, float]:
        """Per candidate, the largest first: the hops that the messages between the two would save by a link."""
        distances = zip(self._topology.brokers, self._topology.distances([self.me])[0], strict=True)
        found = {
            broker: self._traffic.between(self.me, broker) * float(distance - NEW_LINK)
            for broker, distance in distances
            if broker != self.me and broker not in self._neighbours and distance != UNREACHABLE
        }
        return dict(sorted(found.items(), key=lambda gain: (-gain[1], gain[0])))

    def loses(self) -> dict[int, float]:
        """Per neighbour, the least first: the hops that the messages between the two would travel more without the
        link; without end if there is no other path, even if there are no messages."""
        direct = np.array(list(self._neighbours.values()))
        # Another path to a neighbour begins with another neighbour and does not come back here.
        away = self._topology.changed(closed=[(self.me, neighbour) for neighbour in self._neighbours])
        places = [self._topology.place[neighbour] for neighbour in self._neighbours]
        paths = direct[:, None] + away.distances(self._neighbours)[:, places]
        np.fill_diagonal(paths, UNREACHABLE)
        more = np.maximum(paths.min(axis=0, initial=UNREACHABLE) - direct, 0)
        found = {
            neighbour: float(hops) if hops == UNREACHABLE else float(hops) * self._traffic.between(self.me, neighbour)
            for neighbour, hops in zip(self._neighbours, more, strict=True)
        }
        return dict(sorted(found.items(), key=lambda lose: (lose[1], lose[0])))

    @cached_property
    def quota(self) -> Quota:
        if len(self._neighbours) < self._most_links:
            return Quota(0, None)
        return next((Quota(lose, neighbour) for neighbour, lose in self.loses().items()), Quota(UNREACHABLE, None))

    def excess(self) -> int | None:
        """Of a broker with more links than it may have, as after a restart nearby: the least useful that is not needed
        for any path."""
        if len(self._neighbours) <= self._most_links:
            return None
        return next((neighbour for neighbour, lose in self.loses().items() if lose != UNREACHABLE), None)

    def requests(self) -> Iterator[Request]:
        """Whom to ask, the best candidate first. The paper asks that one only."""
        for candidate, gain in self.gains().items():
            if gain <= self.quota.lose:
                return
            yield Request(self.me, candidate, gain, self.quota, self._traffic)

    def answer(self, request: Request) -> Step | None:
        """The step that both are to take, or None: refused."""
        if not self._is_of_this_topology(request) or request.gain <= request.quota.lose + self.quota.lose:
            return None
        quotas = ((request.asker, request.quota), (self.me, self.quota))
        closed = tuple((broker, quota.neighbour) for broker, quota in quotas if quota.neighbour is not None)
        step = Step((request.asker, self.me), closed)
        return step if self._is_good(step, self._traffic | request.traffic) else None

    def _is_of_this_topology(self, request: Request) -> bool:
        """Views differ while news travels: what was asked in another one is refused."""
        asker, neighbour = request.asker, request.quota.neighbour
        if asker not in self._topology.place or asker in self._neighbours:
            return False
        return neighbour is None or neighbour in self._topology.neighbours(asker)

    def _is_good(self, step: Step, known: Traffic) -> bool:
        """Nobody is cut off; and by the rule `carried`, what the two brokers know of travels fewer hops."""
        brokers = self._topology.brokers
        before = self._topology.distances(brokers)
        after = self._topology.changed([step.opened], step.closed).distances(brokers)
        reached = before != UNREACHABLE
        if (after[reached] == UNREACHABLE).any():
            return False
        if self._rule == "paper":
            return True
        counts, fewer = known.matrix(self._topology)[reached], before[reached] - after[reached]
        return bool((counts * fewer).sum() > self._doubt * (counts * fewer**2).sum() ** 0.5)
