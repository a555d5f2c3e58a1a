"""Settled, across clusters: from then on, whatever is published anywhere reaches the subscriber.

Clients ask one after the other, while much is on its way; as soon as something is settled, everybody publishes whose
advertisement is. An advertisement is settled when matching subscriptions have come back, an edge's part in it when its
other clusters' are (design: Overlay and control state).
"""

import random

import pytest
from sim.clusters import SHAPES, start

from mercast.content import Filter
from mercast.protocol.stimuli import Advertise, Publish, Subscribe


class Asking:
    def __init__(self, shape, seed):
        homes, links = SHAPES[shape]
        self.simulator, self.rng = start(homes, links, seed), random.Random(seed)
        self.simulator.validate = False
        self.wants, self.publishers, self.due = {}, [], set()
        self.settled = []
        self.events = 0
        self.asked = [(self.advertise if number % 3 else self.subscribe) for number in range(16)]
        self.rng.shuffle(self.asked)
        self.brokers = sorted(homes)

    def advertise(self, number):
        broker = self.rng.choice(self.brokers)
        self.simulator.do(broker, Advertise(f"p{number}", 1, "quote", Filter()))

    def subscribe(self, number):
        broker, least = self.rng.choice(self.brokers), self.rng.randrange(5)
        self.wants[f"s{number}"] = least
        self.simulator.do(broker, Subscribe(f"s{number}", 1, "quote", Filter.parse(f"price >= {least}")))

    def play(self):
        for number, ask in enumerate(self.asked):
            ask(number)
            self.look_until(self.simulator.now + self.rng.uniform(0, 0.1))
        self.look_until(self.simulator.now + 3)

    def look_until(self, time):
        while self.simulator.now < time:
            self.simulator.run(self.simulator.now + 0.002)
            if len(self.simulator.settled) > len(self.settled):
                self.settled = [*self.simulator.settled]
                self.publish()

    def publish(self):
        for broker, client, _ in self.settled:
            if client.startswith("p"):
                self.events += 1
                price = self.rng.randrange(5)
                stimulus = Publish(client, 1 + self.events, "quote", {"price": price, "n": self.events}, 0)
                self.simulator.do(broker, stimulus)
                wanted = [one for _, one, _ in self.settled if one in self.wants and price >= self.wants[one]]
                self.due |= {(one, self.events) for one in wanted}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(1))
def test_what_is_published_after_settled_reaches_the_subscriber(shape, seed):
    story = Asking(shape, seed)
    story.play()
    simulator = story.simulator
    assert len(simulator.settled) == len(story.asked)
    assert not [one for one in simulator.settled.values() if one.missing]
    got = [(one.client, one.event.attributes["n"]) for one in simulator.deliveries]
    assert len(got) == len(set(got))
    assert story.due <= set(got)
    assert len(story.due) > 20


def test_what_a_dead_edge_has_told_does_not_stand_before_what_a_living_one_tells():
    """A broker that was started anew names its clients as before: the dead edge still tells of the first."""
    homes = {1: (1,), 10: (1, 2), 11: (1, 2), 2: (2,), 3: (2,)}
    links = [(1, 10), (1, 11), (2, 10), (2, 11), (2, 3), (3, 10), (3, 11), (10, 11)]
    simulator = start(homes, links, 0)
    simulator.do(1, Advertise("p", 1, "quote", Filter()))
    simulator.do(2, Subscribe("s.1", 1, "quote", Filter.parse("price < 5")))
    simulator.run(10)
    simulator.crash(10)
    simulator.run(13)
    simulator.crash(2)
    simulator.run(13.2)
    simulator.start(2)
    simulator.run(16)
    simulator.settled.clear()
    simulator.do(2, Subscribe("s.1", 1, "quote", Filter.parse("price >= 5")))
    simulator.run(19)
    assert all(not one.missing for one in simulator.settled.values())
    assert simulator.settled
    simulator.do(1, Publish("p", 2, "quote", {"price": 7}, 0))
    simulator.run(21)
    assert [one.event.attributes for one in simulator.deliveries] == [{"price": 7}]


def test_an_edge_that_publishes_is_told_of_destinations_in_its_other_clusters():
    simulator = start({10: (1, 2), 2: (2,)}, [(10, 2)], 0)
    simulator.do(2, Subscribe("s", 1, "quote", Filter()))
    simulator.do(10, Advertise("p", 1, "quote", Filter()))
    simulator.run(8)
    simulator.do(10, Publish("p", 2, "quote", {}, 0))
    simulator.run(11)
    assert simulator.receipts == {(10, "p", 2): 1}
    assert len(simulator.deliveries) == 1


@pytest.mark.parametrize("homes", [((1, 2, 3), (2, 1, 3)), ((1, 2, 3), (2, 3, 1), (3, 1, 2))])
def test_edges_that_share_three_clusters_do_not_wait_for_each_other(homes):
    """Each brings a subscription where another publishes, and hears of it by a longer way because the other does."""
    edges = dict(enumerate(homes, 1))
    links = [(edge, 10 * cluster) for cluster in (1, 2, 3) for edge in edges]
    simulator = start({10: (1,), 20: (2,), 30: (3,)} | edges, links)
    for edge in edges:
        simulator.do(edge, Advertise("p", 1, "quote", Filter()))
    simulator.run(10)
    for broker in (10, 20, 30):
        simulator.do(broker, Subscribe("s", 1, "quote", Filter()))
    simulator.run(12)
    assert {at: one.missing for at, one in simulator.settled.items()} == {
        **{(edge, "p", 1): () for edge in edges},
        **{(broker, "s", 1): () for broker in (10, 20, 30)},
    }
