"""One fault at a border while events flow, from a seed: what it costs, and whether all is as it should be afterwards.

Nothing is delivered twice or wrongly. What is lost was published between the fault and the change of routes: when the
fault ends nothing more is. Afterwards every table equals that of brokers to whom nothing ever happened.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sim.clusters import backbone
from sim.faults import SETTINGS
from sim.merc_story import differences

from mercast.content import Filter
from mercast.overlay.cluster import place_of
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.sim.converged import converge
from mercast.sim.links import Clock, Link
from mercast.sim.simulator import Simulator

EVERY = 0.01
"""Seconds between two events."""

LATENCY = 0.0005, 0.03
"""Seconds that links take, each its own: what is said along one path overtakes what is said along another."""

ON_THE_WAY = 0.5
"""Seconds that an event takes at most: what is on the way when a fault strikes may be lost too."""

AT_ONCE = 0.2
"""Seconds within which all know of a connection that broke: news travels, edges say what they reach."""

NOTICED = SETTINGS.timing.heart_beat * (SETTINGS.timing.misses + 1.5) + AT_ONCE
"""The same of a neighbour that is silent: heart-beats are missed before that, by clocks that are not exact."""

LINKED = 0.5 * 1.5 + AT_ONCE
"""The same of two brokers that can be linked again: the simulator tries within this time."""

QUIET = 1.8
"""Seconds after which events need not flow all the time while a fault lasts."""

TAKEN_OVER = SETTINGS.settle_within + SETTINGS.wait_for_route + QUIET
"""Seconds after which a shorter way between clusters has taken over, and the other was given up."""


class Border:
    """Clusters, of the shape that the fault is tried on; everybody publishes and subscribes."""

    def __init__(self, seed: int, fault: "str | None" = None) -> None:
        self.rng = random.Random(seed)
        self.name = fault or list(FAULTS)[seed % len(FAULTS)]
        self.fault = FAULTS[self.name]
        self.homes, self.links = self.fault.shape(self.rng)
        self.edges = [broker for broker, clusters in self.homes.items() if len(clusters) > 1]
        self.edge = self.rng.choice(self.edges)
        self.internal = self.rng.choice(sorted(self.homes.keys() - set(self.edges)))
        self.away: set[int] = set()
        """Brokers that have no clients, for they were not there all the time."""
        self.apart: tuple[set[int], set[int]] = set(), set()
        """The sides of a cluster that is cut in two; no way leads from one to the other, nor out and in again."""
        self.cut: list[tuple[int, int]] = []
        self.sent: dict[int, tuple[float, int, int]] = {}
        """When each event was published, where and at what price."""
        self.wants = {broker: self.rng.randrange(10) for broker in self.homes}
        self.since = dict.fromkeys(self.homes, 0.0)
        """When each subscription was settled."""
        self.build(seed)

    def build(self, seed: int) -> None:
        self.simulator = Simulator(self.make, seed, lay=lambda *_: Link(self.rng.uniform(*LATENCY)))
        self.fault.begin(self)
        there = [link for link in self.links if not self.away.intersection(link)]
        asked = [one for broker in self.homes if broker not in self.away for one in self.asks(broker)]
        converge(self.simulator, there, asked)
        for broker in self.homes:
            self.simulator.set_clock(broker, Clock(0, self.rng.uniform(0.97, 1.03)))

    def make(self, broker: int, incarnation: int) -> MERC:
        return MERC(broker, incarnation, replace(SETTINGS, clusters=self.homes[broker], sampling=0.0))

    def asks(self, broker: int) -> list[tuple[int, Advertise | Subscribe]]:
        wants = Filter.parse(f"price >= {self.wants[broker]}")
        return [
            (broker, Advertise(f"p{broker}", 1, "quote", Filter())),
            (broker, Subscribe(f"s{broker}", 1, "quote", wants)),
        ]

    # -- what happens ------------------------------------------------------------------------------------------------

    def play(self) -> None:
        simulator = self.simulator
        simulator.run(1)
        self.flow(1.2)
        self.struck = simulator.now
        self.fault.strike(self)
        ends = self.struck + (self.fault.lasts or self.rng.choice([3.0, 7.0]))  # what was heard is purged after four
        self.flow(min(self.struck + QUIET, ends))
        simulator.run(ends - 0.2)
        self.flow(ends)
        self.ended = simulator.now
        self.fault.end(self)
        self.flow(self.ended + self.fault.flows)
        simulator.run(simulator.now + 5)
        self.come_back()
        self.flow(simulator.now + 0.3)
        simulator.run(simulator.now + TAKEN_OVER)  # who came back has new advertisements, too

    def flow(self, until: float) -> None:
        """Events of all brokers that have clients."""
        while self.simulator.now < until:
            broker = self.rng.choice(sorted(self.homes.keys() - self.away))
            number, price = len(self.sent), self.rng.randrange(10)
            self.sent[number] = self.simulator.now, broker, price
            self.simulator.do(broker, Publish(f"p{broker}", 2 + number, "quote", {"price": price, "n": number}, 0))
            self.simulator.run(self.simulator.now + EVERY)

    def come_back(self) -> None:
        """Clients that are gone ask again; from when that is settled, all events are due to those who were away."""
        self.simulator.settled.clear()
        gone = [broker for broker in sorted(self.away) if not self.simulator.brokers[broker].clients.subscriptions]
        for asked in [one for broker in gone for one in self.asks(broker)]:
            self.simulator.do(*asked)
        while len(self.simulator.settled) < 2 * len(gone):
            self.simulator.run(self.simulator.now + EVERY)
        self.since |= dict.fromkeys(self.away, self.simulator.now)
        self.away = set()

    def set_cut(self, links: list[tuple[int, int]]) -> None:
        for link in links:
            self.simulator.set_cut(*link, True)
        self.cut += links

    def links_in(self, cluster: int, broker: int) -> list[tuple[int, int]]:
        """Of a broker, to others in one of its clusters; each way."""
        place = self.homes[broker].index(cluster)
        found = [link for link in self.simulator.links() if link[0] == broker]
        mine = [link for link in found if place_of(self.simulator.address(*link)) == place]
        return mine + [(other, one) for one, other in mine]

    # -- what came of it ---------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        late = [one for one in self.lost if not -ON_THE_WAY <= one[0] - self.struck <= self.fault.noticed]
        found = [f"lost {when - self.struck:.2f} s after the fault: from {a} to {b}" for when, a, b in late]
        missing = [settled for settled in self.simulator.settled.values() if settled.missing]
        return self.wrong + found + [f"not settled: {one}" for one in missing] + self.wrong_tables()

    @property
    def window(self) -> float:
        """Seconds after the fault within which everything that was lost was published."""
        return max((when - self.struck for when, *_ in self.lost), default=0.0)

    @property
    def got(self) -> Counter[tuple[int, int]]:
        return Counter((int(one.client[1:]), one.event.attributes["n"]) for one in self.simulator.deliveries)

    @property
    def wrong(self) -> list[str]:
        twice = [f"delivered {count} times: {what}" for what, count in self.got.items() if count > 1]
        undue = [f"undue: {who, n}" for who, n in self.got if self.sent[n][2] < self.wants[who]]
        return twice + undue

    @property
    def lost(self) -> list[tuple[float, int, int]]:
        """When it was published, where, and whose, of each that is missing."""
        due = {
            (who, number): (when, source, who)
            for number, (when, source, price) in self.sent.items()
            for who, least in self.wants.items()
            if price >= least and when >= self.since[who] and not self.is_excused(when, source, who)
        }
        return sorted(due[what] for what in due.keys() - self.got.keys())

    def is_excused(self, when: float, source: int, who: int) -> bool:
        one, other = self.apart
        return when < self.ended + LINKED and ((source in one and who in other) or (source in other and who in one))

    def wrong_tables(self) -> list[str]:
        fresh = Simulator(self.make)
        converge(fresh, self.links, [one for broker in self.homes for one in self.asks(broker)])
        return differences(self.simulator, fresh)


def few_clusters(rng: random.Random) -> tuple[dict[int, tuple[int, ...]], list[tuple[int, int]]]:
    """Three, two edges at each border."""
    return rng.choice([partial(backbone, internal=2), neighbours])()


def circle(rng: random.Random) -> tuple[dict[int, tuple[int, ...]], list[tuple[int, int]]]:
    """Four to eight clusters, each a broker and its edges, which it shares with its neighbours."""
    count = rng.randint(4, 8)
    numbers = rng.sample(range(1, 100), count)
    members: dict[int, list[int]] = {one: [one * 100] for one in numbers}
    homes: dict[int, tuple[int, ...]] = {one * 100: (one,) for one in numbers}
    for edge, border in enumerate(zip(numbers, numbers[1:] + numbers[:1], strict=True)):
        for twin in range(rng.randint(1, 2)):
            homes[2 * edge + twin] = border
            for cluster in border:
                members[cluster].append(2 * edge + twin)
    links = {(min(pair), max(pair)) for some in members.values() for pair in itertools.combinations(some, 2)}
    return homes, sorted(links)


def neighbours() -> tuple[dict[int, tuple[int, ...]], list[tuple[int, int]]]:
    """Three clusters in a row; neighbouring ones share two edges, and in each all are linked."""
    members: dict[int, list[int]] = {one: [one * 100, one * 100 + 1] for one in (1, 2, 3)}
    homes: dict[int, tuple[int, ...]] = {broker: (one,) for one, some in members.items() for broker in some}
    for edge, border in {12: (1, 2), 13: (1, 2), 23: (2, 3), 24: (2, 3)}.items():
        homes[edge] = border
        for cluster in border:
            members[cluster].append(edge)
    links = {tuple(sorted(pair)) for some in members.values() for pair in itertools.combinations(some, 2)}
    return homes, sorted(links)


# -- the faults ------------------------------------------------------------------------------------------------------


class Fault(NamedTuple):
    strike: Callable[[Border], None]
    end: Callable[[Border], None]
    noticed: float = NOTICED
    """Seconds until routes have changed."""
    lasts: float = 0.0
    """Seconds; if it matters."""
    begin: Callable[[Border], None] = lambda _: None
    """What is to be so beforehand."""
    shape: Callable[[random.Random], tuple[dict[int, tuple[int, ...]], list[tuple[int, int]]]] = few_clusters
    flows: float = QUIET
    """Seconds that events flow when it has ended."""


def leave(border: Border) -> None:
    border.away.add(border.edge)


def crash(border: Border) -> None:
    border.away.add(border.edge)
    border.simulator.crash(border.edge)


def start(border: Border) -> None:
    border.simulator.start(border.edge)


def crash_inside(border: Border) -> None:
    border.edge = border.internal
    crash(border)


def add(border: Border) -> None:
    border.simulator.build(link for link in border.links if border.edge in link)


def border_of(border: Border) -> list[int]:
    """All edges that join the clusters that one of them does."""
    return [edge for edge in border.edges if {*border.homes[edge]} == {*border.homes[border.edge]}]


def leave_border(border: Border) -> None:
    border.away.update(border_of(border))


def crash_border(border: Border) -> None:
    leave_border(border)
    for edge in sorted(border.away):
        border.simulator.crash(edge)


def start_border(border: Border) -> None:
    for edge in sorted(border.away):
        border.simulator.start(edge)


def add_border(border: Border) -> None:
    border.simulator.build(link for link in border.links if border.away.intersection(link))


def nothing(_: Border) -> None:
    pass


def pause(border: Border) -> None:
    border.away.add(border.edge)
    border.simulator.pause(border.edge)


def resume(border: Border) -> None:
    border.simulator.resume(border.edge)


def cut_abroad(border: Border) -> None:
    border.set_cut(border.links_in(border.homes[border.edge][1], border.edge))


def cut_at_home(border: Border) -> None:
    """Then its own clients reach those who can be reached without leaving home: beyond the edge."""
    home, abroad = border.homes[border.edge]
    border.set_cut(border.links_in(home, border.edge))
    homes = {one: clusters[0] for one, clusters in border.homes.items() if one != border.edge}
    in_a_row = border.edge < 100
    border.apart = (
        {border.edge},
        {
            one
            for one, cluster in homes.items()
            if cluster == home or (in_a_row and (cluster > home) != (abroad > home))
        },
    )


def cut_one_way(border: Border) -> None:
    """All that one edge says to the other cluster, or hears from there."""
    links = border.links_in(border.homes[border.edge][1], border.edge)
    says = border.rng.random() < 0.5
    border.set_cut([link for link in links if (link[0] == border.edge) == says])


def cut_in_two(border: Border) -> None:
    """A cluster with an edge of each border on each side."""
    home = border.homes[border.edge][0]
    members = sorted(broker for broker, clusters in border.homes.items() if home in clusters)
    one = set(members[::2] if border.edge < 100 else members[:1] + members[-1:])
    other = set(members) - one
    border.set_cut(
        [link for broker in one for link in border.links_in(home, broker) if other.intersection(link)],
    )
    border.apart = one, other


def mend(border: Border) -> None:
    for link in border.cut:
        border.simulator.set_cut(*link, False)


FAULTS = {
    "an edge crashes and comes back": Fault(crash, start, AT_ONCE),
    "an edge is restarted": Fault(crash, start, AT_ONCE, lasts=0.05),
    "an internal broker crashes and comes back": Fault(crash_inside, start, AT_ONCE),
    "an edge stands still and goes on": Fault(pause, resume),
    "an edge is added": Fault(nothing, add, 0.0, begin=leave),
    "an edge is cut off from its other cluster": Fault(cut_abroad, mend),
    "an edge is cut off from its home": Fault(cut_at_home, mend),
    "an edge is cut off one way": Fault(cut_one_way, mend),
    "a cluster is cut in two": Fault(cut_in_two, mend),
    "a border is added to a line": Fault(nothing, add_border, 0.0, begin=leave_border, shape=circle, flows=TAKEN_OVER),
    "a border of a ring is gone and returns": Fault(
        crash_border, start_border, 2 * AT_ONCE, shape=circle, flows=TAKEN_OVER
    ),
}
