"""Destinations that stand for groups of edges (routing/destination/carriers.py)."""

from mercast.routing.destination.carriers import FIRST_GROUP, Carriers
from mercast.routing.destination.tellings import Telling

FEW, MANY = [Telling((2,), 21)], [Telling((2,), 21), Telling((2,), 22)]


def test_however_often_edges_come_and_go_there_are_few_destinations():
    """A matcher has room for all that there ever were."""
    carriers = Carriers(lambda _: True, lambda _: True)
    before = carriers.take(FEW)
    used = {before}
    for turn in range(100):
        now = carriers.take([FEW, MANY][turn % 2 == 0])
        carriers.give_back(before)
        used.add(before := now)
    assert used == {FIRST_GROUP, FIRST_GROUP + 1}


def test_a_destination_that_stands_for_others_now_is_picked_from_anew():
    carriers = Carriers(lambda _: True, lambda _: True)
    number = carriers.take([Telling((2,), 21)])
    assert carriers.pick(1, (), (number,)) == (21,)
    carriers.give_back(number)
    assert carriers.take([Telling((3,), 31)]) == number
    assert carriers.pick(1, (), (number,)) == (31,)
