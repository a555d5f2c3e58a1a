"""Numbers that are given twice, as an edge sees them: between brokers of two clusters, and between clusters."""

import asyncio
from unittest.mock import Mock

import pytest
from observed import Member, StandIn

from mercast.broker.broker import Broker
from mercast.broker.clashes import clashes, same_elsewhere
from mercast.broker.config import BrokerConfig
from mercast.broker.links import Link
from mercast.broker.overlay import Overlay
from mercast.broker.overview import overview
from mercast.broker.tables import tables
from mercast.cli.overlay import show
from mercast.content import Advertisement
from mercast.membership import members as membership
from mercast.protocol.messages import Local, Record
from mercast.routing.destination.merc import MERC
from mercast.routing.destination.tellings import Telling
from mercast.routing.settings import Settings
from mercast.wire.hello import VERSIONS, hello

HOME, BACKBONE = 1, 99
EDGE = {
    "id": 1,
    "strategy": "merc",
    "matcher": "scan",
    "cluster": "home",
    "cluster_number": HOME,
    "joins": [f"backbone={BACKBONE}"],
}
FOUND = "broker 7 is in cluster 'home' at h:7 and in cluster 'backbone' at g:7: give each broker an id of its own, over"


def edge(home, backbone, others=()):
    """Edge 1 with these members in its clusters; `others` are linked to it in the backbone, each with its clusters."""
    core = MERC(1, 100, Settings(clusters=(HOME, BACKBONE)))
    state = core.clusters[1].state
    state.set_links({broker: 1 for broker, _ in others})
    state.learn(Record(broker, 1, 1, clusters, ((1, 1),)) for broker, clusters in others)
    return StandIn(BrokerConfig(**EDGE), core, members=(home, backbone))


def test_all_is_well():
    """An edge in both clusters is one broker, also while one of them has not heard of its new address."""
    mine = {2: Member("h:2", ""), 3: Member("h:3", "", ("backbone",))}
    broker = edge(mine, {3: Member("h:4", "", ("home",)), 5: Member("g:5", "", ("far",))}, [(5, (5, BACKBONE))])
    assert clashes(broker) == overview(broker)["clashes"] == []


def test_a_broker_that_was_only_heard_of_may_be_the_same():
    assert clashes(edge({7: Member("name:7", "", (), 0)}, {7: Member("g:7", "")})) == []


def test_the_same_broker_number_in_a_cluster_far_away():
    """Only what is carried from there tells of it. An edge that is in that cluster too is no other broker."""
    broker = edge({7: Member("h:7", "")}, {}, [(5, (5, BACKBONE))])
    home, far = broker.core.clusters[0].state, Telling((5, BACKBONE), 1)
    home.set_links({7: 1})
    home.learn([Record(7, 1, 1, (HOME,), ((1, 1),))])
    broker.core.places[0].advertisements.put((8, Local("c.1", 1)), far, Advertisement("quote"))
    broker.core.places[1].advertisements.put((5, Local("c.1", 1)), Telling((5,), 5), Advertisement("quote"))
    assert clashes(broker) == []
    broker.core.places[0].advertisements.put((7, Local("c.1", 1)), far, Advertisement("quote"))
    (found,) = clashes(broker)
    assert found.startswith("broker 7 is in cluster 'home' and in the cluster with number 5: give each broker an id")


def test_the_same_broker_number_in_two_clusters(capsys):
    broker = edge({7: Member("h:7", "")}, {7: Member("g:7", "", ("far",))})
    assert [one[: len(FOUND)] for one in clashes(broker)] == [FOUND]
    assert overview(broker)["clashes"] == clashes(broker)
    show(overview(broker), tables(broker, False))
    assert f"WRONG: {FOUND}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "number", "told"),
    [
        (
            "far",
            HOME,
            "clusters have the same number: 'far' with number 1 (broker 5) and 'home' with number 1 (broker 1)",
        ),
        ("home", 5, "clusters have the same name: 'home' with number 1 (broker 1) and 'home' with number 5 (broker 5)"),
    ],
)
def test_clusters_that_are_not_told_apart(name, number, told):
    broker = edge({}, {5: Member("g:5", "", (name,))}, [(5, (number, BACKBONE))])
    [clash] = clashes(broker)
    assert clash.startswith(told)


def test_clusters_of_others_that_are_not_told_apart():
    members = {5: Member("g:5", "", ("one",)), 6: Member("g:6", "", ("other",)), 8: Member("g:8", "", ("one",))}
    [clash] = clashes(edge({}, members, [(5, (5, BACKBONE)), (6, (5, BACKBONE)), (8, (5, BACKBONE))]))
    assert "'one' with number 5 (broker 5) and 'other' with number 5 (broker 6)" in clash


def test_whoever_is_in_one_cluster_is_not_linked_in_another():
    async def story():
        broker = Broker(BrokerConfig(**EDGE))
        hosts = [Overlay(broker, place, "here:1", "") for place in (0, 1)]
        hosts[1].members.learn([membership.Member(7, "g:7", "", 1)])
        state = broker.core.clusters[1].state
        state.set_links({7: 1})
        state.learn([Record(7, 1, 1, (BACKBONE,), ((1, 1),))])
        assert same_elsewhere(broker, 0, 7, "g:7") == ""
        link = Link(hosts[0], others=hosts[1:])
        link.refuse = Mock()
        link.transport = Mock(is_closing=lambda: False)
        said = {"cluster": "home", "number": HOME, "strategy": "merc", "peer": "h:7", "clients": "", "members": []}
        link.data_received(hello(mercast=list(VERSIONS), role="broker", broker=7, incarnation=5, **said))
        [code, reason] = link.refuse.call_args.args
        assert code == "identity"
        assert "in cluster 'backbone' at g:7 and in cluster 'home' at h:7" in reason

    asyncio.run(story())
