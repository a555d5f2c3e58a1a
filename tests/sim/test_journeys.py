"""Journeys run at a rate are what the simulator does, and latency runs away when a broker gets more than it can do."""

import random

import pytest

from mercast.content import Filter
from mercast.lab.load import PAPER, as_counted, knee, quote
from mercast.lab.overlays import random_overlay
from mercast.lab.worlds import edges, world
from mercast.protocol.stimuli import Advertise, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.sim.journeys import Step, run, travel
from mercast.workloads import Stock

BROKERS, EVENTS, LINK = 8, 80, 0.001


def overlay(strategy):
    """No two brokers have as many subscriptions: seldom do two events arrive at a broker at the very same moment, when
    either may be taken first."""
    rng, workload = random.Random(3), Stock(20)
    asked = [(broker, Advertise("p", 1, "quote", Filter())) for broker in range(BROKERS)]
    for broker in range(BROKERS):
        asked += [
            (broker, Subscribe("s", number, "quote", workload.filter(rng))) for number in range(1, 11 + 3 * broker)
        ]
    return world(strategy, edges(random_overlay(BROKERS, 3, seed=3)), asked, PAPER, LINK)


@pytest.mark.parametrize("interval", [1.0, 0.00213717, 0.000113717])
@pytest.mark.parametrize("strategy", [FBR, DDBR])
def test_journeys_take_as_long_as_in_the_simulator(strategy, interval):
    rng, workload = random.Random(4), Stock(20)
    events = [(rng.randrange(BROKERS), quote(number, workload.event(rng))) for number in range(EVENTS)]
    simulator, recording = overlay(strategy), overlay(strategy)
    for number, (broker, publish) in enumerate(events):
        publish = publish._replace(time=number)
        simulator.at(number * interval, lambda broker=broker, publish=publish: simulator.do(broker, publish))
    simulator.run(1_000.0)
    slowest, counts = [0.0] * EVENTS, [0] * EVENTS
    for delivery in simulator.deliveries:
        number = delivery.event.time
        slowest[number] = max(slowest[number], delivery.time - number * interval)
        counts[number] += 1
    load = run([travel(recording.brokers, *event) for event in events], interval, as_counted, LINK)
    assert sum(counts) > EVENTS
    assert load.deliveries.tolist() == counts
    assert load.slowest == pytest.approx(slowest)
    assert load.busy == pytest.approx({broker: simulator.busy[broker] for broker in load.busy})


def test_latency_runs_away_when_a_broker_gets_more_work_than_it_can_do():
    """Every other event passes the second broker, which needs 10 ms: it can do 100 of them a second."""
    far = (Step(0, 0, 0, 0, (1,)), Step(1, 1, 0, 1, ()))
    near = (Step(0, 0, 0, 1, ()),)
    most = knee((far, near), 4_000, lambda _, step: 0.01 * step.compared)
    assert most == pytest.approx(60 * 200, rel=0.06)


def test_one_after_the_other():
    """Two events at once at a broker that needs 2 s, then a link of 1 s, then a broker that needs 3 s."""
    journey = (Step(0, 2, 1, 0, (1,)), Step(1, 3, 0, 2, ()))
    load = run([journey, journey], 0.5, lambda _, step: step.compared, 1.0)
    assert load.slowest.tolist() == [6.0, 8.5]
    assert (load.deliveries.tolist(), load.taken.tolist()) == ([2, 2], [12.0, 17.0])
    assert (load.latency, load.busy, load.busiest) == (7.25, {0: 4.0, 1: 6.0}, 6.0)
