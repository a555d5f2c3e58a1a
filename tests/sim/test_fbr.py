"""FBR: what is asked for along a tree, with and without covering, and when it is settled."""

import random
from dataclasses import replace

import networkx as nx
import pytest

from mercast.content import Advertisement, Declaration, Filter, Subscription, Types
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.effects import Receipts, Send
from mercast.protocol.messages import Control, Drop, Local, Put, Record
from mercast.protocol.stimuli import Advertise, Declare, LinkDown, Publish, Received, Subscribe, Unsubscribe
from mercast.routing.filtering.fbr import FBR
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

QUIET = Settings(timing=Timing(heart_beat=1_000.0), matcher="scan")
VARIANTS = {"plain": QUIET, "covering": replace(QUIET, covering=True)}
both = pytest.mark.parametrize("variant", VARIANTS)


def interest(text):
    return Subscription("quote", Filter.parse(text))


class Middle:
    """Broker 1, with neighbours 0, where a tree has its root, 2 and 3: what they say to it, and what it asks of 0."""

    TREE = (0, Local("p", 1))

    def __init__(self, variant):
        self.core = FBR(1, 1, VARIANTS[variant])
        links = {0: (1,), 1: (0, 2, 3), 2: (1,), 3: (1,)}
        records = [Record(who, 1, 1, (0,), tuple((other, 1) for other in others)) for who, others in links.items()]
        self.core.begin_with(0, dict.fromkeys(links[1], 1), [one for one in records if one.broker != 1])
        self.said = dict.fromkeys(links[1], 0)
        self.say(0, Put(("advertisement", self.TREE), Advertisement("quote")))

    def say(self, neighbour, item):
        self.said[neighbour] += 1
        control = Control(neighbour, 1, 0, (1, 1), self.said[neighbour], (item,), (-1, -1), 0, ())
        self.core.handle(0, Received(neighbour, (control,)))
        self.core.validate()

    def asks(self, neighbour, origin, text):
        self.say(neighbour, Put(("subscription", self.TREE, origin), interest(text)))

    def asks_no_more(self, neighbour, origin):
        self.say(neighbour, Drop(("subscription", self.TREE, origin)))

    def asked(self):
        return {key[2]: one for key, one in self.core.exchange.told[0].items() if key[0] == "subscription"}


@both
def test_a_subscription_that_came_back_to_its_broker_stays_when_the_echo_ends(variant):
    """While views differ, a tree may have a loop for a moment."""
    middle = Middle(variant)
    middle.core.handle(0, Subscribe("s", 1, "quote", Filter.parse("x > 1")))
    mine = {(1, Local("s", 1)): interest("x > 1")}
    assert middle.asked() == mine
    middle.asks(2, (1, Local("s", 1)), "x > 1")
    middle.asks_no_more(2, (1, Local("s", 1)))
    assert middle.asked() == mine


@both
def test_what_the_last_hop_itself_asks_for_is_no_reason_to_ask_it(variant):
    middle, origin = Middle(variant), (7, Local("s", 1))
    middle.asks(2, origin, "x > 1")
    middle.asks(0, origin, "x > 1")
    assert middle.asked() == {origin: interest("x > 1")}
    middle.asks_no_more(2, origin)
    assert middle.asked() == {}
    middle.asks(2, (8, Local("s", 1)), "x > 2")
    assert middle.asked() == {(8, Local("s", 1)): interest("x > 2")}


@both
def test_of_two_that_say_otherwise_about_a_subscription_the_one_that_stays_is_believed(variant):
    """A broker was restarted, and a client asks for something else under the same name; one path has the old yet."""
    for old, new in ((2, 3), (3, 2)):
        for said in ({old: "x > 1", new: "x < 1"}, {new: "x < 1", old: "x > 1"}):
            middle, origin = Middle(variant), (7, Local("s", 1))
            for neighbour, text in said.items():
                middle.asks(neighbour, origin, text)
            middle.asks_no_more(old, origin)
            assert middle.asked() == {origin: interest("x < 1")}


def test_covering_is_forgotten_with_the_subscription_that_covers():
    middle = Middle("covering")
    wide, narrow, twin = (8, Local("s", 1)), (7, Local("s", 1)), (9, Local("s", 1))
    middle.asks(2, narrow, "x > 2")
    middle.asks(3, wide, "x > 1")
    middle.asks(2, twin, "x > 1")
    assert middle.asked() == {wide: interest("x > 1")}
    middle.asks_no_more(3, wide)
    assert middle.asked() == {twin: interest("x > 1")}
    middle.asks_no_more(2, twin)
    assert middle.asked() == {narrow: interest("x > 2")}


def test_what_is_covered_once_a_type_is_declared_is_taken_back():
    middle = Middle("covering")
    wide, narrow = (7, Local("s", 1)), (8, Local("s", 1))
    middle.asks(2, wide, "x > 1")
    middle.say(3, Put(("subscription", middle.TREE, narrow), Subscription("stock", Filter.parse("x > 2"))))
    assert middle.asked().keys() == {wide, narrow}
    middle.core.handle(0, Declare("c", 1, Declaration("stock", "quote")))
    assert middle.asked() == {wide: interest("x > 1")}
    middle.core.validate()


@both
def test_an_event_goes_to_no_neighbour_whose_link_is_down(variant):
    """What it asked for is kept for when it comes back; until then it is no destination."""
    middle = Middle(variant)
    middle.core.handle(0, Advertise("p", 1, "quote", Filter()))
    for neighbour in (2, 3):
        middle.say(neighbour, Put(("subscription", (1, Local("p", 1)), (neighbour, Local("s", 1))), interest("x > 1")))
    middle.core.handle(0, LinkDown(2))
    effects = middle.core.handle(0, Publish("p", 2, "quote", {"x": 2}, 0))
    assert [effect.neighbour for effect in effects if isinstance(effect, Send)] == [3]
    assert [effect for effect in effects if isinstance(effect, Receipts)] == [Receipts("p", 2, (1,))]


# -- settled ---------------------------------------------------------------------------------------------------------


def overlay(variant, edges):
    simulator = Simulator(lambda *who: FBR(*who, VARIANTS[variant]))
    converge(simulator, edges, latency=0.01)
    return simulator


def test_what_is_hidden_is_settled_with_what_stands_for_it():
    """Ten brokers in a line; the second subscription finds the first on its way, half a line ahead."""
    simulator = overlay("covering", nx.path_graph(10).edges)
    simulator.do(0, Advertise("p", 1, "quote", Filter()))
    simulator.run(1)
    simulator.do(9, Subscribe("s", 1, "quote", Filter.parse("x > 1")))
    simulator.run(1.045)
    simulator.do(8, Subscribe("t", 1, "quote", Filter.parse("x > 2")))
    simulator.run(1.135)
    assert not simulator.settled.keys() & {(9, "s", 1), (8, "t", 1)}
    simulator.do(0, Publish("p", 2, "quote", {"x": 3}, 0))
    simulator.run(2)
    assert simulator.settled.keys() >= {(9, "s", 1), (8, "t", 1)}
    simulator.do(0, Publish("p", 3, "quote", {"x": 3}, 0))
    simulator.run(3)
    assert [(d.client, d.event.id.sequence) for d in simulator.deliveries] == [("t", 1), ("s", 1), ("t", 2), ("s", 2)]
    assert [len(core.prt) for core in simulator.brokers.values()] == [1] * 9 + [0]


WANTED = ["x > 1", "x > 3", "x BETWEEN 2 AND 7", "x = 5", "x > 1 AND x < 9", "x IN (4, 5)", ""]
ON_ITS_WAY = 0.1
"""Seconds that an event travels at most: the overlays are less than ten hops wide."""


@both
@pytest.mark.parametrize("seed", range(8))
def test_from_settled_to_unsubscribing_no_event_is_missed(variant, seed):
    """Whatever other subscriptions come and go, cover and are covered: no fault, so nothing is lost."""
    rng = random.Random(seed)
    brokers = range(rng.randint(5, 10))
    simulator = overlay(variant, {(2, 0), *((one, rng.randrange(max(0, one - 3), one)) for one in brokers[1:])})
    for publisher in (brokers[0], brokers[-1]):
        simulator.do(publisher, Advertise("p", 1, "quote", Filter()))
    simulator.run(1)
    made, ended, due = {}, {}, []
    for number in range(2, 600):
        broker, standing = rng.choice(brokers), sorted(made.keys() - ended.keys())
        if rng.random() < 0.5:
            event = {"x": rng.randint(0, 9), "number": number}
            settled = [one for one in standing if (one[0], "s", one[1]) in simulator.settled]
            due += [(simulator.now, number, one) for one in settled if made[one].matches(Types(), "quote", event)]
            simulator.do(rng.choice((brokers[0], brokers[-1])), Publish("p", number, "quote", event, 0))
        elif len(standing) < rng.randint(1, 6):
            made[broker, number] = interest(rng.choice(WANTED))
            simulator.do(broker, Subscribe("s", number, "quote", made[broker, number].filter))
        else:
            at, request = rng.choice(standing)
            ended[at, request] = simulator.now
            simulator.do(at, Unsubscribe("s", number, request))
        simulator.run(simulator.now + rng.expovariate(100))
    simulator.run(simulator.now + 1)
    got = {
        (d.event.attributes["number"], (d.broker, request)) for d in simulator.deliveries for request in d.subscriptions
    }
    owed = {(number, one) for at, number, one in due if ended.get(one, simulator.now) > at + ON_ITS_WAY}
    assert len(owed) > 20
    assert owed - got == set()
