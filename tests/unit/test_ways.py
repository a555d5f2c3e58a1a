"""The ways of an advertisement (routing/destination/ways.py): the best, and for a while those that were it before."""

import pytest

from mercast.content import Advertisement
from mercast.protocol.messages import Local
from mercast.routing.destination.tellings import Telling, Tellings
from mercast.routing.destination.ways import ANY, Ways

LASTS = 10.0
AD = 1, Local("p", 1)
QUOTE = Advertisement("quote")
LONG, SHORT = Telling((1, 2, 3), 34), Telling((1,), 14)


class Told:
    def __init__(self):
        self.tellings, self.gone, self.now = Tellings(me=9), set(), 0.0
        self.ways = Ways(self.tellings, lambda one: one.broker not in self.gone, LASTS)

    def put(self, *tellings, origin=AD, value=QUOTE):
        for telling in tellings:
            self.tellings.put(origin, telling, value)
            self.look(origin)

    def drop(self, telling):
        self.tellings.drop(AD, telling)
        self.look()

    def look(self, origin=AD):
        self.ways.look(self.now, origin)
        self.ways.validate()

    def at(self, now):
        """The advertisements of which ways are given up by then."""
        self.now = now
        over = self.ways.give_up(now)
        for origin in over:
            self.look(origin)
        return over

    @property
    def crossed(self):
        return [way.crossed for way in self.ways.of(AD)]

    def better(self, crossed, type="quote"):
        return self.ways.better(1, (type,), crossed)


@pytest.fixture
def told():
    return Told()


def test_one_that_a_better_takes_over_from_counts_for_a_while(told):
    told.put(LONG)
    assert told.ways.next_deadline() == float("inf")
    told.at(5.0)
    told.put(SHORT)
    assert told.crossed == [(1,), (1, 2, 3)]
    assert told.ways.of(AD)[1].brokers == (34,)
    assert told.ways.next_deadline() == 5.0 + LASTS
    assert told.at(5.0 + LASTS - 1) == []
    assert told.at(5.0 + LASTS) == [AD]
    assert told.crossed == [(1,)]
    assert told.ways.next_deadline() == float("inf")


def test_nothing_has_gone_by_one_that_was_the_best_for_no_time(told):
    told.put(LONG, SHORT)
    assert told.crossed == [(1,)]
    assert told.ways.next_deadline() == float("inf")


def test_it_counts_though_nobody_tells_of_it_any_more(told):
    """Who told of it tells of a shorter one now, and carries what comes by the old."""
    told.put(LONG)
    told.at(1.0)
    told.put(SHORT)
    told.drop(LONG)
    assert told.crossed == [(1,), (1, 2, 3)]
    assert told.ways.of(AD)[1].brokers == ()


def test_whoever_comes_in_between_the_one_before_counts_on(told):
    told.put(LONG)
    told.at(1.0)
    told.put(Telling((1, 5, 6, 7), 74), SHORT)
    assert told.crossed == [(1,), (1, 2, 3)]


def test_none_counts_of_one_that_is_no_longer_advertised(told):
    told.put(LONG)
    told.at(1.0)
    told.put(SHORT)
    told.drop(SHORT)
    told.drop(LONG)
    assert told.crossed == []
    assert told.at(1.0 + LASTS) == []


def test_however_often_it_changes_few_count(told):
    told.put(Telling(tuple(range(20)), 34))
    for second in range(1, 15):
        told.at(second / 10)
        told.put(Telling(tuple(range(20 - second)), 34))
    assert len(told.crossed) == 5
    assert told.crossed[:2] == [tuple(range(6)), tuple(range(7))]


def test_an_edge_that_tells_of_a_better_way_has_no_use_for_an_event(told):
    told.put(Telling((1, 2), 23), Telling((1, 4), 34))
    assert told.better((1, 2, 3)) == {(34, 4), (23, 2), (34, ANY), (23, ANY)}
    assert told.better((1, 2)) == {(34, 4), (23, 2)} | {(telling.broker, ANY) for telling in lower(told, (1, 2))}
    assert told.better(()) == frozenset()


def lower(told, crossed):
    """Ways of one length are told apart by a sum, which is not for a test to know."""
    best = told.tellings.best(AD, lambda _: True)
    return [] if best.crossed == crossed else [Telling(best.crossed, best.brokers[0])]


def test_until_all_have_heard_of_that_way_it_may_have(told):
    told.put(Telling((1, 2), 23))
    told.at(1.0)
    told.put(Telling((1, 4), 34))
    assert told.better((1, 2, 3)) == frozenset()
    told.at(1.0 + LASTS)
    assert (34, 4) in told.better((1, 2, 3))


def test_it_has_if_any_advertisement_of_that_type_does_not_come_to_it_by_that_way(told):
    told.put(Telling((1, 4), 34))
    told.put(Telling((1, 2), 23), origin=(1, Local("p", 2)), value=Advertisement("deal"))
    assert told.better((1, 2, 3)) == {(34, 4), (34, ANY)}
    assert told.better((1, 2, 3), "deal") == {(23, 2), (23, ANY)}
    assert told.ways.better(1, ("deal", "quote"), (1, 2, 3)) == frozenset()
