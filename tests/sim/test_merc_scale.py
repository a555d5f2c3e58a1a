"""However many clusters there are, a broker knows its own; what changes in one is no matter of the others."""

import pytest
from sim.clusters import BACKBONE
from sim.scale import World

from mercast.protocol.stimuli import LinkDown, LinkUp, Unsubscribe


def loaded(clusters, size):
    world = World(clusters, size)
    world.load()
    return world


@pytest.mark.parametrize(
    ("clusters", "size", "events"),
    [(4, 15, 300), pytest.param(10, 20, 200, marks=pytest.mark.slow)],
)
def test_tables_and_lists_are_bounded_by_the_size_of_a_cluster(clusters, size, events):
    world = loaded(clusters, size)
    due = world.publish(events)
    assert len(world.simulator.deliveries) == due
    assert world.tables() == {one: {len(members)} for one, members in world.members.items()}
    assert 1 < world.simulator.longest <= size


def sent_by(world, *stimuli):
    """The clusters in which anything is sent because of these."""
    world.simulator.run(world.simulator.now + 20)
    world.simulator.sent.clear()
    for broker, stimulus in stimuli:
        world.simulator.do(broker, stimulus)
    world.simulator.run(world.simulator.now + 20)
    return set(world.simulator.sent)


@pytest.fixture(scope="module")
def world():
    return loaded(clusters=4, size=15)


def test_links_come_and_go_within_a_cluster(world):
    one, other = next(link for link in world.links if 1 == world.homes[link[0]][0] == world.homes[link[1]][0])
    assert sent_by(world, (one, LinkDown(other)), (other, LinkDown(one))) == {1}
    assert sent_by(world, (one, LinkUp(other, 1)), (other, LinkUp(one, 1))) == {1}


def test_a_broker_goes_that_nobody_has_to_do_with(world):
    """What its clients wanted would be told of in other clusters."""
    internal = world.members[1][-1]
    assert sent_by(world, (internal, Unsubscribe("s", 99, 2))) > {1}
    world.simulator.sent.clear()
    world.simulator.crash(internal)
    world.simulator.run(world.simulator.now + 20)
    assert set(world.simulator.sent) == {1}


def test_an_edge_goes_and_the_other_takes_over(world):
    """Nothing is announced anew: its home and the backbone see it go, that is all."""
    edge = world.members[2][0]
    sent_by(world, (edge, Unsubscribe("s", 99, 2)))
    world.simulator.sent.clear()
    world.simulator.crash(edge)
    world.simulator.run(world.simulator.now + 20)
    assert set(world.simulator.sent) == {2, BACKBONE}
