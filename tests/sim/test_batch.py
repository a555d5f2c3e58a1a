"""A batch is the same as its events one by one."""

import copy
import random

import networkx as nx
import pytest

from mercast.content import Event, EventId, Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Receipts, Send, Tap
from mercast.protocol.messages import Forward, Packet
from mercast.protocol.stimuli import Advertise, Batch, Publish, Received, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.settings import Settings
from mercast.sim.simulator import Simulator

BROKERS = 8


SCAN, COVERING = Settings(matcher="scan"), Settings(matcher="scan", covering=True)
STRATEGIES = [(DDBR, SCAN), (Unicast, SCAN), (StaticHash, SCAN), (FBR, SCAN), (FBR, COVERING), (Flooding, SCAN)]


@pytest.fixture(params=STRATEGIES)
def core(request):
    """A broker of a quiet overlay, with publishers and subscribers all around."""
    strategy, settings = request.param
    simulator = Simulator(lambda *who: strategy(*who, settings), seed=1)
    simulator.build(nx.random_regular_graph(3, BROKERS, seed=1).edges)
    simulator.run(5)
    for broker in range(BROKERS):
        simulator.do(broker, Advertise("p", 1, "quote", Filter()))
        simulator.do(broker, Subscribe("s", 1, "quote", Filter.parse(f"x > {broker}")))
    simulator.run(9)
    return simulator.brokers[0], simulator.now


def apart(message):
    """Events that follow each other on the same way travel together: here each is on its own."""
    if not isinstance(message, Forward):
        return [message]
    return [message._replace(packets=(packet,)) for packet in message.packets]


def carried_out(effects):
    """All that is said to each neighbour in order, all rows in order, all receipts, and all else in order."""
    said, rows, receipts, else_ = {}, [], [], []
    for effect in effects:
        if isinstance(effect, Send):
            said.setdefault(effect.neighbour, []).extend(one for message in effect.messages for one in apart(message))
        elif isinstance(effect, Tap):
            rows += effect.rows
        elif isinstance(effect, Receipts):  # publishes that follow each other have one
            receipts += [(effect.client, number, count) for number, count in enumerate(effect.counts, effect.first)]
        else:
            else_.append(effect)
    return said, rows, receipts, else_


@pytest.mark.parametrize("seed", range(10))
def test_a_batch_is_its_events_one_by_one(core, seed):
    broker, now = core
    rng = random.Random(seed)
    neighbours = sorted(broker.neighbourhood.neighbours)
    stimuli = []
    for number in range(20):
        attributes = {"x": rng.randrange(10)}
        if rng.random() < 0.5:
            stimuli.append(Publish("p", 100 + number, "quote", attributes, number))
            continue
        source = rng.randrange(1, BROKERS)
        ids = [EventId(source, 1, 100 + rng.randrange(15)) for _ in range(rng.randint(1, 3))]
        packets = tuple(Packet(Event(id, "quote", attributes, number, "p")) for id in ids)
        note = (source, next(iter(broker.clients.advertisements))) if isinstance(broker, FBR) else None
        entries = pack(rng.sample(range(BROKERS), 4))
        forwards = (Forward(entries, 1, packets, note),) * rng.randint(1, 2)
        stimuli.append(Received(rng.choice(neighbours), forwards))
    together, alone = copy.deepcopy(broker), copy.deepcopy(broker)
    one_by_one = [effect for stimulus in stimuli for effect in alone.handle(now, stimulus)]
    assert carried_out(together.handle(now, Batch(tuple(stimuli)))) == carried_out(one_by_one)
    together.validate()
