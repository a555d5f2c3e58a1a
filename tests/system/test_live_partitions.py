"""Faults of brokers and of the network between them, under load."""

import os
import signal

import pytest
from live import Mesh, ask, metrics, until
from proxy import Network
from under_load import AROUND, OPTIONS, RING, SEVERED, Load

from mercast.wire.frames import FRAME_BYTES

STALE = 3
"""Calls that come late, when a network heals: their callers have given up."""

LARGE, LINK_QUEUE = 100_000, FRAME_BYTES
"""Bytes: what is published until a broker is given up fits neither into the queue nor into the network."""

BOTH_WAYS = [(1, 2), (2, 1)]
HALVES = [(2, 3), (3, 2), (1, 4), (4, 1)]


@pytest.fixture
def network():
    with Network(4) as one:
        yield one


@pytest.mark.slow
def test_a_broker_is_killed_under_load():
    with Mesh(4, RING, options=OPTIONS, audit=AROUND) as mesh, Load(mesh, RING) as load:
        load.fault(brokers=[2])
        mesh.kill(2)
        load.noticed()
        mesh.start(2)
        mesh.wait_ready(2)
        load.judge()


@pytest.mark.slow
def test_a_broker_stands_still_and_goes_on():
    """First so shortly that it only makes others wait; then until they have given it up."""
    with Mesh(4, RING, options=OPTIONS, audit=AROUND) as mesh, Load(mesh, RING) as load:
        os.kill(mesh[2].pid, signal.SIGSTOP)
        load.flows(but=[2])
        os.kill(mesh[2].pid, signal.SIGCONT)
        load.flows()
        load.all_arrives()

        load.fault(brokers=[2])
        os.kill(mesh[2].pid, signal.SIGSTOP)
        load.noticed()
        os.kill(mesh[2].pid, signal.SIGCONT)
        load.judge()


@pytest.mark.slow
def test_queues_fill_before_a_broker_that_stands_still():
    """Publishers wait, what is not sent goes another way; memory does not grow with what comes in."""
    short = [*OPTIONS, "--link-queue-bytes", str(LINK_QUEUE)]
    with Mesh(4, RING, options=short) as mesh, Load(mesh, RING, payload=LARGE) as load:
        load.fault(brokers=[2])
        os.kill(mesh[2].pid, signal.SIGSTOP)
        until(
            lambda: any(metrics(mesh[id])["mercast_link_queued_bytes"] > LINK_QUEUE / 4 for id in (1, 3)), "full queues"
        )
        load.noticed()
        os.kill(mesh[2].pid, signal.SIGCONT)
        load.judge()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ways", "links"),
    [
        pytest.param(BOTH_WAYS, [(1, 2)], id="link"),
        pytest.param([(1, 2)], [(1, 2)], id="one way, from who calls"),
        pytest.param([(2, 1)], [(1, 2)], id="one way, to who calls"),
    ],
)
def test_a_link_is_cut_and_healed(network, ways, links):
    with Mesh(4, RING, options=OPTIONS, audit=AROUND, **network.how()) as mesh, Load(mesh, RING) as load:
        load.fault(links=links)
        network.cut(*ways)
        load.noticed()
        until(lambda: network.waiting >= STALE, "calls that will come late")
        network.heal()
        load.judge()


@pytest.mark.slow
def test_halves_that_have_forgotten_each_other_find_together(network):
    short = [*OPTIONS, "--purge-after", "1.5", "--wait-for-route", "0.5"]
    with Mesh(4, RING, options=short, audit=SEVERED, **network.how()) as mesh, Load(mesh, RING) as load:
        load.fault(links=[(2, 3), (1, 4)])
        network.cut(*HALVES)
        load.noticed()
        until(lambda: heard_of(mesh[1]) == {2} and heard_of(mesh[4]) == {3}, "the other half is forgotten")
        network.heal()
        load.judge()


def heard_of(broker):
    """Brokers whose clients it knows of."""
    return {row["broker"] for row in ask(broker, "tables?full=1")["full"]["heard"]["rows"]}


@pytest.mark.slow
def test_connections_break_and_are_made_anew(network):
    with Mesh(4, RING, options=OPTIONS, audit=AROUND, **network.how()) as mesh, Load(mesh, RING) as load:
        load.fault(links=[(1, 2)])
        network.close(1, 2)
        for broker in (mesh[1], mesh[2]):
            until(lambda one=broker: "link lost" in one.log.read_text(), broker.tail)
        load.churn()
        load.judge()


@pytest.mark.slow
def test_a_slow_network_loses_nothing(network):
    with Mesh(4, RING, options=OPTIONS, audit=AROUND, **network.how()) as mesh, Load(mesh, RING) as load:
        load.fault()
        network.slow_down(0.3)
        load.churn()
        network.heal()
        load.judge()
