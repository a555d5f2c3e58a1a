"""What becomes of events when a link takes none, takes few, or brings them twice."""

import os
import signal

import pytest
from live import PATIENCE, Mesh, metrics, until
from proxy import Network

from mercast.blocking import connect

TWO_WAYS = [(1, 2), (2, 3), (1, 4), (4, 5), (5, 3)]
"""From broker 1 to broker 3, by 2 or, longer, by 4 and 5."""

SOON = ["--heart-beat", "0.3"]
LARGE = 10_000
"""Bytes of an event."""
BURST = 50


def publish(client, first, count):
    """What was acknowledged."""
    for begin in range(first, first + count, BURST):
        outcomes = client.publish_many([("tick", {"n": n}, bytes(LARGE)) for n in range(begin, begin + BURST)])
        assert [one.destinations for one in outcomes] == [1] * BURST


def dropped(broker):
    return {name[1]: count for name, count in metrics(broker).items() if name[0] == "mercast_events_dropped_total"}


@pytest.mark.slow
def test_what_waits_for_a_neighbour_that_stands_still_goes_another_way_and_the_rest_is_counted():
    count = 1_200
    with (
        Mesh(5, TWO_WAYS, options=SOON) as mesh,
        connect(mesh[1].client, timeout=PATIENCE) as publisher,
        connect(mesh[3].client) as subscriber,
    ):
        events = subscriber.subscribe("tick", buffer=2 * count * LARGE)
        publisher.advertise("tick")
        os.kill(mesh[2].pid, signal.SIGSTOP)
        try:
            publish(publisher, 0, count)
            until(lambda: "link lost" in mesh[1].log.read_text(), "the neighbour counts as down")
            lost = dropped(mesh[1])
            assert lost.keys() == {"link down"}
            first = int(lost["link down"])  # that did not leave for broker 2: it waited, or was published later
            got = [events.get(PATIENCE).attributes["n"] for _ in range(count - first)]
            assert sorted(got) == list(range(first, count))
            assert metrics(mesh[3])["mercast_events_delivered_total"] == count - first
        finally:
            os.kill(mesh[2].pid, signal.SIGCONT)


@pytest.mark.slow
def test_a_narrow_link_is_slow_and_stays():
    """It takes longer to take anything from the broker than a neighbour may be silent."""
    count, some = 1_000, 200
    options = ["--heart-beat", "0.5"]
    with Network(2) as network, Mesh(2, [(1, 2)], options=options, **network.how()) as mesh:
        network.narrow(1, 2, 300_000)
        with connect(mesh[1].client, timeout=PATIENCE) as publisher, connect(mesh[2].client) as subscriber:
            events = subscriber.subscribe("tick", buffer=2 * count * LARGE)
            publisher.advertise("tick")
            publish(publisher, 0, count)
            got = [events.get(PATIENCE).attributes["n"] for _ in range(some)]
            assert metrics(mesh[1])["mercast_link_queued_bytes"] > 0, "it takes less than was published"
            network.narrow(1, 2, 100_000_000)
            got += [events.get(PATIENCE).attributes["n"] for _ in range(count - some)]
            assert got == list(range(count))
        assert not dropped(mesh[1])
        for broker in mesh.brokers.values():
            assert "link lost" not in broker.log.read_text()


def test_what_the_network_brings_twice_is_delivered_once_and_counted():
    count = 100
    with (
        Network(3, repeats=[(1, 2)]) as network,
        Mesh(3, [(1, 2), (2, 3)], **network.how()) as mesh,
        connect(mesh[1].client) as publisher,
        connect(mesh[2].client) as near,
        connect(mesh[3].client) as far,
    ):
        streams = [one.subscribe("tick") for one in (near, far)]
        for n in range(count):
            assert publisher.publish("tick", {"n": n}).destinations == 2
        for events in streams:
            assert [events.get(PATIENCE).attributes["n"] for _ in range(count)] == list(range(count))
        until(lambda: metrics(mesh[2])["mercast_events_received_total"] == 2 * count, "both copies of each")
        until(lambda: sum(dropped(one).get("repeat", 0) for one in (mesh[2], mesh[3])) == 2 * count, "all repeats")
        assert [metrics(mesh[id])["mercast_events_delivered_total"] for id in (2, 3)] == [count, count]
