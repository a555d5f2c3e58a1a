"""Fault stories of brokers whose links move to where the traffic is."""

from dataclasses import replace

import networkx as nx
from sim.faults import SETTINGS
from sim.merc_story import MERCStory
from sim.test_faults import DDBRStory

from mercast.sim.simulator import Noise

MOST_LINKS = 3
ORGANISED = replace(SETTINGS, organise="carried", organise_every=1.0, most_links=MOST_LINKS)


class OrganisedStory(DDBRStory):
    settings = replace(ORGANISED, organise_every=0.7)

    def overlay(self, seed):
        self.built = super().overlay(seed)
        return self.built

    def problems(self):
        self.simulator.run(self.simulator.now + 30)  # nobody publishes: links that are too many go, and no others move
        return self.wrong_links() + super().problems()

    def wrong_links(self):
        overlay = nx.Graph(self.simulator.connected())
        overlay.add_nodes_from(self.all)
        found = [] if nx.is_connected(overlay) else [f"not connected: {sorted(overlay.edges)}, built as {self.built}"]
        dear = {core.me: set(core.neighbourhood.dear) for core in self.simulator.brokers.values()}
        found += [f"broker {broker} holds {some} dear" for broker, some in dear.items() if some]
        for broker, degree in overlay.degree:
            bridges = [link for link in nx.bridges(overlay) if broker in link] if nx.is_connected(overlay) else []
            if degree > MOST_LINKS and degree != len(bridges):
                found.append(f"broker {broker} has {degree} links: {sorted(overlay.edges)}")
        return found


class AimedStory(OrganisedStory):
    """Much traffic and few faults, most of which hit a broker that is taking a step."""

    settings = ORGANISED

    def __init__(self, seed, record=None):
        super().__init__(seed, record)
        self.hits = 0

    def play(self):
        self.simulator.run(3)
        for _ in range(8):
            self.arrive()
        while self.simulator.now < 33:
            for _ in range(6):
                self.publish()
            busy = [broker for broker, core in self.simulator.brokers.items() if core.organising[0]._step is not None]
            if busy and self.rng.random() < 0.06:
                self.hits += 1
                self.hit(self.rng.choice(busy))
            elif self.rng.random() < 0.04:
                self.rng.choice([self.relieve, self.arrive])()
            self.simulator.run(self.simulator.now + 0.05)
        self.heal()
        self.simulator.run(self.simulator.now + 12)

    def hit(self, broker):
        """Itself, or somebody else in the midst of its step."""
        victim = self.rng.choice([broker, broker, self.rng.choice(self.all)])
        match self.rng.choice(["crash", "crash", "pause", "cut", "cut", "noise"]):
            case "crash":
                if victim in self.simulator.brokers:
                    self.simulator.crash(victim)
                    self.clients = {name: one for name, one in self.clients.items() if one.broker != victim}
            case "pause":
                self.simulator.pause(victim)
            case "cut":
                ways = [way for way in self.simulator.links() if victim in way]
                for way in self.rng.sample(ways, min(2, len(ways))):
                    self.simulator.set_cut(*way, True)
            case "noise":
                self.noise()

    def relieve(self):
        for broker in self.all:
            self.simulator.resume(broker)
            if broker not in self.simulator.brokers:
                self.simulator.start(broker)
        for way in self.simulator.links():
            self.simulator.set_cut(*way, False)
        self.simulator.set_noise(Noise())


class OrganisedMERCStory(MERCStory):
    settings = replace(ORGANISED, most_links=2)

    def calm(self):
        """Much traffic, and no faults."""
        self.simulator.run(3)
        for _ in range(8):
            self.arrive()
        while self.simulator.now < 25:
            for _ in range(8):
                self.publish()
            self.simulator.run(self.simulator.now + 0.05)
        self.simulator.run(40)
