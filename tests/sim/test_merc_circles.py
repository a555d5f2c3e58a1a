"""Clusters in circles, with rules at their borders: what each type's events reach, and what is sent in vain."""

import itertools
import random
from collections import Counter

import networkx as nx
import pytest

from mercast.content import Filter
from mercast.content.rules import Rules
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

TYPES = ("blue", "green", "red")


class Circles:
    """A broker in each of some clusters, and edges that join two or three; they may deny types, each way others."""

    def __init__(self, seed, denies=0.3, joined=3):
        """Each edge joins so many clusters at most."""
        self.rng, self.most_joined = random.Random(seed), joined
        rng = self.rng
        count = rng.randint(3, 7)
        borders = nx.gnm_random_graph(count, rng.randint(2, 2 * count), rng)
        borders.add_edges_from((place, rng.randrange(place)) for place in range(1, count))
        self.homes, self.rules, links = {10 + place: (1 + place,) for place in range(count)}, {}, []
        self.open = {type: nx.DiGraph() for type in TYPES}
        for type in TYPES:
            self.open[type].add_nodes_from(borders)
        for edge, border in enumerate([*borders.edges], 100):
            joined = self.joined(borders, border)
            self.homes[edge] = tuple(1 + place for place in joined)
            links += [(10 + place, edge) for place in joined]
            denied = [{type for type in TYPES if rng.random() < denies} for _ in range(2)]
            self.rules[edge] = [Rules(("*",), tuple(sorted(some))) for some in denied]
            for type, (one, other) in itertools.product(TYPES, itertools.permutations(joined, 2)):
                if not (one == joined[0] and type in denied[0]) and not (other == joined[0] and type in denied[1]):
                    self.open[type].add_edge(one, other)
        self.simulator = Simulator(self.make, seed)
        self.advertises = {place: rng.sample(TYPES, rng.randint(1, 3)) for place in range(count)}
        self.wants = {place: rng.choice([None, *TYPES]) for place in range(count)}
        converge(self.simulator, links, [one for place in range(count) for one in self.asks(place)])

    def joined(self, borders, border):
        """By an edge: sometimes a third cluster, too, if no other edge joins that to either. Its home is the first."""
        taken = {*border}.union(*(borders[place] for place in border))
        joined = [*border, *sorted({*borders} - taken)[: self.rng.randrange(self.most_joined - 1)]]
        borders.add_edges_from(itertools.combinations(joined, 2))
        self.rng.shuffle(joined)
        return joined

    def make(self, broker, incarnation):
        exports, imports = self.rules.get(broker, [Rules(("*",))] * 2)
        return MERC(broker, incarnation, Settings(clusters=self.homes[broker], exports=exports, imports=imports))

    def asks(self, place):
        for number, type in enumerate(self.advertises[place], 1):
            yield 10 + place, Advertise(f"p{place}", number, type, Filter())
        yield 10 + place, Subscribe(f"s{place}", 1, self.wants[place], Filter())

    def play(self):
        """Who is due what, and who gets what."""
        due = Counter()
        for place, types in self.advertises.items():
            for number, type in enumerate(types, 100):
                self.simulator.do(10 + place, Publish(f"p{place}", number, type, {"from": place}, 0))
                reached = {place, *nx.descendants(self.open[type], place)}
                due.update((f"s{one}", place, type) for one in reached if self.wants[one] in (None, type))
        self.simulator.run(self.simulator.now + 5)
        got = [(one.client, one.event.attributes["from"], one.event.type) for one in self.simulator.deliveries]
        return due, Counter(got)


BY_TWO_WAYS = (209, 218, 240)
"""Here an event comes to an edge by one way after another, and each leads to somebody whom the other does not."""


@pytest.mark.parametrize("seed", [*range(10), *BY_TWO_WAYS])
def test_a_type_goes_by_the_best_way_that_lets_it_through_whatever_else_is_advertised(seed):
    due, got = Circles(seed).play()
    assert due == got


def test_a_denied_type_takes_the_longer_way_with_and_without_another_that_is_not():
    """Of a ring of four, one border lets no deal through."""
    homes = {10: (1,), 20: (2,), 30: (3,), 40: (4,), 12: (1, 2), 23: (2, 3), 34: (3, 4), 41: (4, 1)}
    links = [(cluster * 10, edge) for edge, border in homes.items() if len(border) == 2 for cluster in border]

    def make(broker, incarnation):
        imports = Rules(("*",), ("deal",) if broker == 41 else ())
        return MERC(broker, incarnation, Settings(clusters=homes[broker], imports=imports))

    for types in (["deal"], ["deal", "quote"]):
        simulator = Simulator(make)
        asked = [(10, Advertise("p", number, type, Filter())) for number, type in enumerate(types, 1)]
        converge(simulator, links, [*asked, (40, Subscribe("s", 1, None, Filter()))])
        for number, type in enumerate(types, 10):
            simulator.do(10, Publish("p", number, type, {}, 0))
        simulator.run(2)
        assert sorted(one.event.type for one in simulator.deliveries) == types
        assert simulator.brokers[34].carried == 1


def test_a_subscription_is_told_where_one_type_is_advertised_though_its_way_for_another_is_shorter():
    """Events of T go 1-3-2-5-6-4, those of Q 3-2-1-4: in 2 the shorter way of the subscription has crossed 1."""
    borders = [(1, 4), (1, 2), (1, 3), (3, 2), (2, 5), (5, 6), (6, 4)]
    homes = {10 * cluster: (cluster,) for cluster in range(1, 7)}
    homes |= {100 + 10 * one + other: (one, other) for one, other in borders}
    links = [(10 * cluster, edge) for edge, border in homes.items() if len(border) == 2 for cluster in border]

    def make(broker, incarnation):
        exports = Rules(("*",), ("T",) if broker in (112, 114) else ())
        imports = Rules(("*",), ("Q",) if broker == 113 else ())
        return MERC(broker, incarnation, Settings(clusters=homes[broker], exports=exports, imports=imports))

    simulator = Simulator(make)
    asked = [(10, Advertise("p", 1, "T", Filter())), (30, Advertise("p", 1, "Q", Filter()))]
    converge(simulator, links, [*asked, (40, Subscribe("s", 1, None, Filter()))])
    for broker, type in ((10, "T"), (30, "Q")):
        simulator.do(broker, Publish("p", 2, type, {}, 0))
    simulator.run(2)
    assert sorted(one.event.type for one in simulator.deliveries) == ["Q", "T"]


def test_edges_that_share_two_clusters_of_three_send_copies_of_which_one_is_taken():
    """Events of 1 go to 3 by one edge, to 4 by the other, and both bring them to 2: an entry does not say where to."""
    homes = {10: (1,), 20: (2,), 30: (3,), 40: (4,), 100: (1, 2, 3), 101: (1, 2, 4)}
    links = [(10 * cluster, edge) for edge in (100, 101) for cluster in homes[edge]]
    simulator = Simulator(lambda broker, incarnation: MERC(broker, incarnation, Settings(clusters=homes[broker])))
    subscribed = [(10 * cluster, Subscribe("s", 1, None, Filter())) for cluster in (2, 3, 4)]
    converge(simulator, links, [(10, Advertise("p", 1, "quote", Filter())), *subscribed])
    simulator.do(10, Publish("p", 2, "quote", {}, 0))
    simulator.run(2)
    assert sorted(one.broker for one in simulator.deliveries) == [20, 30, 40]
    assert {broker: dict(core.dropped) for broker, core in simulator.brokers.items() if core.dropped} == {
        20: {"repeat": 1}
    }


@pytest.mark.parametrize("seed", range(10))
def test_without_rules_nothing_is_sent_in_vain(seed):
    """Whoever makes a list knows which clusters get an event by a better way."""
    story = Circles(seed, denies=0.0, joined=2)
    due, got = story.play()
    assert due == got
    assert not any(core.dropped for core in story.simulator.brokers.values())
