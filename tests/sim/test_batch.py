"""A batch is the same as its events one by one."""

import copy
import random
from collections import defaultdict

import networkx as nx
import pytest

from mercast.content import Event, EventId, Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Receipts, Reported, Send, Settled, Tap
from mercast.protocol.messages import Control, Forward, Packet, Record, Update
from mercast.protocol.stimuli import Advertise, Batch, Publish, Received, Subscribe, Tick, Unsubscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.settings import Settings
from mercast.sim.simulator import Simulator

BROKERS = 8
FAR = 2 * BROKERS
"""Hops, after which an event goes no further."""
STRANGER = 9
"""A broker that nobody knows of at first: what is for it waits for a route."""

SCAN, COVERING = Settings(matcher="scan"), Settings(matcher="scan", covering=True)
SAMPLED = Settings(matcher="scan", sampling=0.3)
STRATEGIES = [
    *((DDBR, SCAN), (Unicast, SCAN), (StaticHash, SCAN), (FBR, SCAN), (FBR, COVERING), (Flooding, SCAN)),
    *((DDBR, SAMPLED), (FBR, SAMPLED)),
]


@pytest.fixture(params=STRATEGIES)
def core(request):
    """A broker of a quiet overlay, with publishers and subscribers all around."""
    strategy, settings = request.param
    simulator = Simulator(lambda *who: strategy(*who, settings), seed=1)
    simulator.build(nx.random_regular_graph(3, BROKERS, seed=1).edges)
    simulator.run(5)
    for broker in range(BROKERS):
        simulator.do(broker, Advertise("p", 1, "quote", Filter()))
        simulator.do(broker, Advertise("high", 1, "quote", Filter.parse("x > 4")))
        simulator.do(broker, Subscribe("s", 1, "quote", Filter.parse(f"x > {broker}")))
    simulator.run(9)
    return simulator.brokers[0], simulator.now


def apart(message):
    """Events and control state that follow each other travel together: here each is on its own."""
    match message:
        case Forward():
            assert message.traced >= any(packet.traced for packet in message.packets)
            return [message._replace(packets=(packet,), traced=packet.traced) for packet in message.packets]
        case Control():
            return list(enumerate(message.items, message.first))
    return [message]


def carried_out(effects):
    """Each sort of message to each neighbour in order (by target, if it has one), all rows of a kind in order, receipts
    one by one, what is reported, what is settled, which is told at the end, and all else in order."""
    said, rows, receipts, apart_ = defaultdict(list), [], [], defaultdict(list)
    for effect in effects:
        if isinstance(effect, Send):
            for message in effect.messages:
                said[effect.neighbour, type(message), getattr(message, "target", None)] += apart(message)
        elif isinstance(effect, Tap):
            rows += effect.rows
        elif isinstance(effect, Receipts):  # publishes that follow each other have one
            receipts += [(effect.client, number, count) for number, count in enumerate(effect.counts, effect.first)]
        else:
            apart_[type(effect) if isinstance(effect, Reported | Settled) else None].append(effect)
    if Reported in apart_:
        apart_[Reported].sort(key=lambda reported: type(reported.row).__name__)
    return said, sorted(rows, key=lambda row: type(row).__name__), receipts, apart_


def publish(rng, number):
    """Some are refused: outside what is advertised, no number, numbered as another was, no value."""
    client, request = rng.choice(["p", "p", "high", "new"]), rng.choice([*[100 + number] * 6, 0, 100])
    attributes = {"x": rng.choice([*range(10), float("nan")])}
    return Publish(client, request, "quote", attributes, number, traced=rng.random() < 0.3)


def arrival(rng, number, broker):
    """Events from a neighbour: new ones, repeats, traced ones, some that have come too far, some without a route."""
    source, attributes = rng.randrange(BROKERS), {"x": rng.randrange(10)}
    ids = [EventId(source, 1, 100 + rng.randrange(15)) for _ in range(rng.randint(1, 3))]
    packets = tuple(Packet(Event(id, "quote", attributes, number, "p"), rng.random() < 0.3) for id in ids)
    note = (source, next(iter(broker.clients.advertisements))) if isinstance(broker, FBR) else None
    entries = pack(rng.sample([*range(BROKERS), STRANGER], 4))
    traced = any(packet.traced for packet in packets)
    return Forward(entries, rng.choice([1, FAR, FAR + 1]), packets, note, traced)


def news(broker, neighbour):
    """The stranger has a link to a neighbour."""
    known = broker.state[neighbour]
    linked = known._replace(sequence=known.sequence + 1, links=(*known.links, (STRANGER, 1)))
    return Update(b"", 0, (linked, Record(STRANGER, 1, 1, (0,), ((neighbour, 1),))))


def happenings(rng, broker):
    neighbours = sorted(broker.neighbourhood.neighbours)
    stimuli = []
    for number in range(30):
        chance = rng.random()
        if chance < 0.5:
            stimuli.append(publish(rng, number))
        elif chance < 0.9:
            messages = [arrival(rng, number, broker)] * rng.randint(1, 2)
            if number == 20:
                messages.insert(1, news(broker, rng.choice(neighbours)))
            stimuli.append(Received(rng.choice(neighbours), tuple(messages)))
        elif chance < 0.95:
            stimuli.append(Subscribe("t", 100 + number, "quote", Filter.parse(f"x > {rng.randrange(10)}")))
        else:
            stimuli.append(Unsubscribe("s", 100 + number, 1))
    return stimuli


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_is_its_events_one_by_one(core, seed):
    broker, now = core
    stimuli = happenings(random.Random(seed), broker)
    together, alone = copy.deepcopy(broker), copy.deepcopy(broker)
    one_by_one = [effect for stimulus in stimuli for effect in alone.handle(now, stimulus)]
    assert carried_out(together.handle(now, Batch(tuple(stimuli)))) == carried_out(one_by_one)
    assert together.dropped == alone.dropped
    assert together.next_deadline() == alone.next_deadline()
    together.validate()
    later = now + broker.settings.wait_for_route
    assert carried_out(together.handle(later, Tick())) == carried_out(alone.handle(later, Tick()))
