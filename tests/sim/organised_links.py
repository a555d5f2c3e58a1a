"""Brokers that do nothing but keep links and move them, for many seeds in little time.

Clients, events and control state are left out: how many messages there are between every two brokers is given, and each
broker on the way is told what it would have counted.
"""

import random
from collections import Counter

import networkx as nx

from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import pack
from mercast.protocol.effects import CloseLink
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.settings import Settings
from mercast.sim.simulator import Noise, Simulator

BEAT, CYCLE = 0.5, 2.0
DIAL = 0.2


class Bare(DDBR):
    """Says nothing but who its neighbours are, and what moves links."""

    def peers(self):
        return ()


class Links:
    """An overlay and its traffic, from a seed."""

    def __init__(self, seed, rule="carried", misses=3, record=None):
        self.rng = random.Random(seed)
        count = self.rng.randint(3, 7)
        graph = nx.gnm_random_graph(count, self.rng.randint(count // 2, count), seed)
        graph.add_edges_from((place, self.rng.randrange(place)) for place in range(1, count))
        self.most_links = self.rng.randint(2, 4)
        settings = Settings(
            timing=Timing(BEAT, misses), organise=rule, organise_every=CYCLE, most_links=self.most_links
        )
        self.simulator = Simulator(lambda who, life: Bare(who, life, settings), seed, DIAL, record=record)
        self.built = nx.Graph(graph.edges)
        self.all = sorted(graph.nodes)
        self.rates = {
            (one, other): self.rng.choice([20, 50, 100]) * self.rng.choice([1, 10])
            for one in self.all
            for other in self.all
            if one != other and self.rng.random() < 0.5
        }
        self.rates = self.rates or {(0, 1): 50}
        self.hops: list[float] = []
        """Per message, from time to time while nothing is on its way; each once."""
        self.wrong: list[str] = []
        self._records = []
        self.begun = False
        carry_out = self.simulator._carry_out

        def carry(broker, effects):
            carry_out(broker, effects)
            self.look(effects)

        self.simulator._carry_out = carry
        self.faultless = True
        """No link was lost by a fault so far."""
        self.simulator.build(graph.edges)
        self.simulator.run(3)
        self.begun = True

    all_at_once = False
    """Whether nobody waits for its turn."""

    # -- traffic -----------------------------------------------------------------------------------------------------

    def run(self, until):
        while self.simulator.now < until:
            self.count()
            self.simulator.run(self.simulator.now + CYCLE / 4)
            cores = self.simulator.brokers.values()
            if len({core.state.digest for core in cores}) == 1 and not any(core.neighbourhood.dear for core in cores):
                hops = self.mean_hops()
                self.hops += [hops] if self.hops[-1:] != [hops] else []

    def run_to_rest(self, most=300.0):
        """Until nothing has moved for as long as everybody's candidates take to be asked in turn."""
        most += self.simulator.now
        moved, last = self.simulator.now, self.simulator.connected()
        while self.simulator.now < moved + CYCLE * (2 + len(self.all)):
            self.run(self.simulator.now + CYCLE)
            if self.simulator.connected() != last:
                moved, last = self.simulator.now, self.simulator.connected()
            if self.simulator.now > most:
                self.wrong.append(f"no rest after {most} s")
                return

    def count(self):
        brokers = self.simulator.brokers
        for core in brokers.values() if self.all_at_once else ():
            core.organising[0]._turn = min(core.organising[0]._turn, self.simulator.now)
        for (source, destination), rate in self.rates.items():
            at, path = source, []
            while at in brokers and len(path) < 20:
                path.append(at)
                if at == destination:
                    break
                at = brokers[at].state.routes.next_hop(destination)
            for broker in path:
                brokers[broker].organising[0].count(source, pack([destination]), rate)

    # -- faults ------------------------------------------------------------------------------------------------------

    def busy(self):
        """Brokers that take part in a step."""
        return [broker for broker, core in self.simulator.brokers.items() if core.organising[0]._step is not None]

    def trouble(self, until):
        """Faults, most of which hit a broker in the midst of a step; and relief from them."""
        self.faultless = False
        while self.simulator.now < until:
            self.count()
            busy = self.busy()
            if busy and self.rng.random() < 0.2:
                self.hits += 1
                self.hit(self.rng.choice(busy) if self.rng.random() < 0.7 else self.rng.choice(self.all))
            elif self.rng.random() < 0.03:
                self.relieve()
            self.simulator.run(self.simulator.now + self.rng.uniform(0, 0.2))
        self.relieve()

    hits = 0

    def hit(self, broker):
        match self.rng.choice(["crash", "crash", "restart", "pause", "cut", "one way", "noise"]):
            case "crash":
                self.simulator.crash(broker)
            case "restart":
                self.simulator.crash(broker)
                self.simulator.start(broker)
            case "pause":
                self.simulator.pause(broker)
            case "cut":
                for one, other in self.ways_of(broker):
                    self.simulator.set_cut(one, other, True)
                    self.simulator.set_cut(other, one, True)
            case "one way":
                for way in self.ways_of(broker):
                    self.simulator.set_cut(*way, True)
            case "noise":
                self.noise()

    def crash_for_good(self, broker):
        self.simulator.crash(broker)
        self.built.remove_node(broker)
        self.all.remove(broker)

    def ways_of(self, broker):
        ways = [way for way in self.simulator.links() if broker in way]
        return self.rng.sample(ways, min(len(ways), self.rng.randint(1, 2)))

    def noise(self):
        self.simulator.set_noise(Noise(*(self.rng.uniform(0, 0.3) for _ in range(3))))

    def relieve(self):
        for broker in self.all:
            self.simulator.resume(broker)
            if broker not in self.simulator.brokers:
                self.simulator.start(broker)
        for way in self.simulator.links():
            self.simulator.set_cut(*way, False)
        self.simulator.set_noise(Noise())

    # -- what must hold ----------------------------------------------------------------------------------------------

    def look(self, effects):
        records = [core.state.mine for core in self.simulator.brokers.values()]
        if not self.begun or (records == self._records and not any(isinstance(one, CloseLink) for one in effects)):
            return
        self._records = records
        graph = self.overlay()
        if self.faultless:
            if not nx.is_connected(graph):
                self.wrong.append(f"{self.simulator.now}: not connected after {effects}: {sorted(graph.edges)}")
            self.look_at_degrees()

    def look_at_degrees(self):
        for broker, core in self.simulator.brokers.items():
            links = len(core.neighbourhood.neighbours.keys() - core.neighbourhood.dear)
            if links > max(self.most_links, self.built.degree[broker]):
                self.wrong.append(f"{self.simulator.now}: broker {broker} has {links} links")

    def overlay(self):
        graph = nx.Graph(self.simulator.connected())
        graph.add_nodes_from(self.simulator.brokers)
        return graph

    def mean_hops(self):
        distances = dict(nx.all_pairs_shortest_path_length(self.overlay()))
        hops = sum(rate * distances.get(one, {}).get(other, 0) for (one, other), rate in self.rates.items())
        return hops / sum(self.rates.values())

    def problems(self):
        """When all is at rest."""
        found, graph = list(self.wrong), self.overlay()
        parts = list(nx.connected_components(graph))
        if any(not any(together <= part for part in parts) for together in nx.connected_components(self.built)):
            found.append(f"not connected: {sorted(graph.edges)}, built as {sorted(self.built.edges)}")
        for broker, core in self.simulator.brokers.items():
            dear = core.neighbourhood.dear & core.neighbourhood.neighbours.keys()
            if dear:
                found.append(f"broker {broker} holds {set(dear)} dear")
            (part,) = (part for part in parts if broker in part)
            if core.state.digest != self.simulator.brokers[min(part)].state.digest:
                found.append(f"broker {broker} sees another overlay")
        return [*found, *(f"broker {broker} has {count} links" for broker, count in self.excess().items())]

    def steps(self):
        return sum(core.organising[0].taken for core in self.simulator.brokers.values())

    def excess(self):
        """Links that a broker has too many, though it could do without."""
        graph, found = self.overlay(), Counter()
        bridges = {frozenset(link) for link in nx.bridges(graph)}
        for broker, degree in graph.degree:
            if degree > self.most_links and any(frozenset(link) not in bridges for link in graph.edges(broker)):
                found[broker] = degree
        return found
