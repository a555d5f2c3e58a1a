"""MERC with a thousand brokers: `.venv/bin/python tests/sim/scale.py` says how long it takes, and shows how far it is.

Clusters are random regular overlays; two brokers of each are its edges, and all edges are the backbone. One broker in
ten has a publisher, each has a subscriber of a hundredth of what is published.
"""

import gc
import random
import resource
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[1]))
from sim.clusters import BACKBONE

from mercast.content import Filter
from mercast.overlay.channel import Patience
from mercast.overlay.cluster import place_of
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import ENTRY
from mercast.protocol.messages import Forward
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

PRICES, WANTED = 1000, 10
NEVER = 100_000.0


class Counting(Simulator):
    """Knows what is sent in each cluster, and how long the longest destination list was."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sent = Counter()
        self.longest = 0
        self._cluster = cache(lambda one, other: self.brokers[one].clusters[place_of(self.address(one, other))].number)

    def _send(self, one, other, messages):
        self.sent[self._cluster(one, other)] += len(messages)
        for message in messages:
            if type(message) is Forward and len(message.destinations) > ENTRY * self.longest:
                self.longest = len(message.destinations) // ENTRY
        super()._send(one, other, messages)


class World:
    def __init__(self, clusters, size, edges=2, seed=1):
        self.rng = random.Random(seed)
        self.members = {one: [one * size + at for at in range(size)] for one in range(1, clusters + 1)}
        self.homes = {broker: (one,) for one, members in self.members.items() for broker in members}
        links = [link for members in self.members.values() for link in regular(members, self.rng)]
        border = [members[at] for at in range(edges) for members in self.members.values()]  # no two of one side by side
        self.homes |= {edge: (self.homes[edge][0], BACKBONE) for edge in border}
        self.members[BACKBONE] = border
        links += zip(border, border[1:] + border[:1], strict=True)
        links += zip(border, border[3:] + border[:3], strict=True)
        self.links = sorted({tuple(sorted(link)) for link in links})
        self.simulator = Counting(self.make, seed)
        self.publishers = [members[at] for one, members in self.members.items() if one != BACKBONE
                           for at in range(5, size, 10)]  # fmt: skip
        self.wants = {broker: self.rng.randrange(PRICES - WANTED) for broker in self.homes}

    def make(self, broker, incarnation):
        """Nothing is sent from time to time, lest that be all there is to count."""
        timing, patience = Timing(heart_beat=NEVER), Patience(compare_every=NEVER)
        settings = Settings(timing=timing, patience=patience, clusters=self.homes[broker], sampling=0.0)
        return MERC(broker, incarnation, settings)

    def load(self, shown=lambda some: some):
        advertised = [(broker, Advertise("p", 1, "quote", Filter())) for broker in self.publishers]
        subscribed = [(broker, self.subscribe(broker)) for broker in self.homes]
        converge(self.simulator, self.links, shown(advertised + subscribed))

    def subscribe(self, broker):
        least = self.wants[broker]
        return Subscribe("s", 2, "quote", Filter.parse(f"price BETWEEN {least} AND {least + WANTED - 1}"))

    def publish(self, events, shown=lambda some: some):
        """How many deliveries were due."""
        due, simulator = 0, self.simulator
        wanted = Counter(price for least in self.wants.values() for price in range(least, least + WANTED))
        for number in shown(range(events)):
            price = self.rng.randrange(PRICES)
            due += wanted[price]
            simulator.do(self.rng.choice(self.publishers), Publish("p", 3 + number, "quote", {"price": price}, 0))
            simulator.run(simulator.now + 0.001)
        simulator.run(simulator.now + 5)
        return due

    def tables(self):
        """Of each cluster, the sizes of its members' TRTs and SPRTs."""
        sizes = {}
        for core in self.simulator.brokers.values():
            for cluster in core.clusters:
                state = cluster.state
                found = {len(state), *state.topology.trt.shape, len(state.routes.sprt)}
                sizes.setdefault(cluster.number, set()).update(found)
        return sizes


def regular(members, rng):
    graph = nx.random_regular_graph(4, len(members), seed=rng.randrange(1 << 30))
    while not nx.is_connected(graph):
        graph = nx.random_regular_graph(4, len(members), seed=rng.randrange(1 << 30))
    return [(members[one], members[other]) for one, other in graph.edges]


def main(clusters, size, events):
    began, worked = time.perf_counter(), time.process_time()
    world = World(clusters, size)
    world.load(lambda some: track(some, f"{clusters * size:,} brokers ask"))
    gc.freeze()  # all of it is there until the end: nobody needs to look for garbage among millions of objects
    loaded = time.perf_counter()
    due = world.publish(events, lambda some: track(some, f"{events:,} events"))
    ended = time.perf_counter()
    print(f"{time.process_time() - worked:.1f} s of processor time in all;", end=" ")
    print(f"set up in {loaded - began:.1f} s, {events:,} events in {ended - loaded:.1f} s;", end=" ")
    print(
        f"{len(world.simulator.deliveries):,} of {due:,} deliveries, {world.simulator.messages_sent:,} messages;",
        end=" ",
    )
    print(
        f"lists of {world.simulator.longest} at most; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,} MiB"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or (10, 100, 10_000)))
