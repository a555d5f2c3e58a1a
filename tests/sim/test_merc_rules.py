"""Edges carry only events of types that may leave their home and may come into the other."""

import pytest

from mercast.content import Advertisement, Declaration, Filter
from mercast.content.errors import ContentError
from mercast.content.rules import EVERYTHING, Rules
from mercast.overlay.exchange import NOBODY
from mercast.protocol.messages import Local
from mercast.protocol.stimuli import Advertise, Declare, Publish, Subscribe, Tick
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

HOMES = {1: (1,), 10: (1, 9), 11: (1, 9), 20: (2, 9), 21: (2, 9), 2: (2,)}
LINKS = [(1, 10), (1, 11), (2, 20), (2, 21), (10, 20), (11, 21), (10, 21), (10, 11), (20, 21), (11, 20)]
"""Two clusters and the backbone, 9; a client publishes at broker 1, another subscribes at broker 2."""

TREE = [Declaration("deal"), Declaration("quote"), Declaration("quote.secret", "quote"), Declaration("tick", "quote")]


def published(types, *, advertised=None, wanted=(None,), exports=EVERYTHING, imports=EVERYTHING, declared=(), at=2):
    """The types of the events that come across to a client there, one of each being published."""

    def make(broker, incarnation):
        rules = {1: {"exports": exports}, 2: {"imports": imports}}[HOMES[broker][0]]
        return MERC(broker, incarnation, Settings(clusters=HOMES[broker], **rules))

    simulator = Simulator(make)
    converge(simulator, LINKS)
    for number, one in enumerate(declared, 1):
        simulator.do(1, Declare("types", number, one))
    simulator.run(2)
    for number, type in enumerate(types if advertised is None else advertised, 1):
        simulator.do(1, Advertise("p", number, type, Filter()))
    for number, type in enumerate(wanted, 1):
        simulator.do(at, Subscribe("s", number, type, Filter()))
    simulator.run(5)
    assert all(not one.missing for one in simulator.settled.values())
    for number, type in enumerate(types, 100):
        simulator.do(1, Publish("p", number, type, {}, 0))
    simulator.run(8)
    return [one.event.type for one in simulator.deliveries]


@pytest.mark.parametrize("rules", ["exports", "imports"])
class TestRules:
    """The same, whether it may not leave or may not come in."""

    def come(self, rules, rule, types, **others):
        return published(types, **{rules: rule}, **others)

    def test_all_may_cross_unless_something_is_said(self, rules):
        assert self.come(rules, EVERYTHING, ["deal", "quote"]) == ["deal", "quote"]

    def test_what_is_denied_stays(self, rules):
        assert self.come(rules, Rules(("*",), ("deal",)), ["deal", "quote"]) == ["quote"]

    def test_what_is_not_allowed_stays(self, rules):
        assert self.come(rules, Rules(("quote",)), ["deal", "quote"]) == ["quote"]

    def test_nothing_is_allowed(self, rules):
        assert self.come(rules, Rules(), ["deal", "quote"]) == []

    def test_rules_name_types_that_nobody_declared(self, rules):
        rule = Rules(("stock.*",), ("stock.secret",))
        assert self.come(rules, rule, ["stock.a", "stock.secret", "other"]) == ["stock.a"]

    def test_subtypes_of_what_is_denied_stay(self, rules):
        come = self.come(rules, Rules(("*",), ("quote",)), ["deal", "quote", "tick"], declared=TREE)
        assert come == ["deal"]

    def test_subtypes_of_what_is_allowed_cross(self, rules):
        assert self.come(rules, Rules(("quote",)), ["deal", "quote", "tick"], declared=TREE) == ["quote", "tick"]

    def test_a_subtype_stays_that_was_advertised_with_its_parent(self, rules):
        """The advertisement crosses, for some of its events may; each event is looked at."""
        rule, types = Rules(("*",), ("quote.secret",)), ["quote", "quote.secret", "tick"]
        assert self.come(rules, rule, types, advertised=["quote"], declared=TREE) == ["quote", "tick"]

    def test_a_subtype_crosses_though_its_parent_may_not(self, rules):
        types = ["quote", "quote.secret", "tick"]
        come = self.come(rules, Rules(("tick",)), types, advertised=["quote"], wanted=("quote",), declared=TREE)
        assert come == ["tick"]

    def test_types_declared_later_change_what_may_cross(self, rules):
        """Before that, `tick` is no quote."""
        assert self.come(rules, Rules(("quote",)), ["tick"]) == []
        assert self.come(rules, Rules(("quote",)), ["tick"], declared=TREE) == ["tick"]


def test_a_type_may_leave_one_cluster_and_not_come_into_the_other():
    both = {"exports": Rules(("*",), ("deal",)), "imports": Rules(("deal", "quote"))}
    assert published(["deal", "quote", "other"], **both) == ["quote"]


@pytest.mark.parametrize("edge", [20, 21])
def test_clients_of_an_edge_are_bound_by_the_rules_of_their_home(edge):
    imports = Rules(("*",), ("quote.secret",))
    assert published(["quote.secret", "deal"], imports=imports, at=edge) == ["deal"]
    assert published(["quote", "quote.secret"], imports=imports, declared=TREE, at=edge) == ["quote"]


def test_publishers_name_a_type():
    with pytest.raises(ContentError, match="an advertisement names a type"):
        Advertisement(None)


def test_whatever_was_advertised_each_event_is_looked_at():
    """Were a peer to advertise events of any type, that would cross, and what is denied would not."""
    anything = object.__new__(Advertisement)
    for name, value in {"type": None, "filter": Filter()}.items():
        object.__setattr__(anything, name, value)
    settings = {"exports": Rules(("*",), ("deal",))}
    simulator = Simulator(lambda who, nth: MERC(who, nth, Settings(clusters=HOMES[who], **settings)))
    converge(simulator, LINKS, [(2, Subscribe("s", 1, None, Filter()))])
    for edge in (10, 11):
        simulator.brokers[edge].heard(1, Local("p", 1), anything, NOBODY)
        simulator.do(edge, Tick())
    simulator.run(2)
    assert len(simulator.brokers[1].places[0].matcher) == 1  # the subscription has come all the way
    for number, type in enumerate(["deal", "quote"], 1):
        simulator.do(1, Publish("p", number, type, {}, 0))
    simulator.run(4)
    assert [one.event.type for one in simulator.deliveries] == ["quote"]
