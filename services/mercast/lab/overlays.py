"""Overlays for experiments, and what a message costs on them, worked out by the brokers' own routes and splits."""

import random
from collections import Counter
from collections.abc import Iterable

from mercast.overlay.routes import Routes
from mercast.overlay.split import Rule, Splitter, pack
from mercast.overlay.topology import Topology
from mercast.sim.networks import gnm_edges


def random_overlay(brokers: int, degree: float, seed: int) -> Topology:
    """A connected G(n, m) with this mean degree."""
    return Topology.of(gnm_edges(brokers, round(brokers * degree / 2), seed))


class Walk:
    """Sends lists over an overlay and counts them by length."""

    def __init__(self, topology: Topology, rule: Rule = "paper") -> None:
        self.topology = topology
        self._splitters = {broker: Splitter(Routes(topology, broker), rule) for broker in topology.brokers}
        self.lengths: Counter[int] = Counter()
        self.at_source: Counter[int] = Counter()
        self.by_broker: dict[int, Counter[int]] = {broker: Counter() for broker in topology.brokers}
        """Lists of the messages that each broker sent or received."""

    def send(self, source: int, destinations: Iterable[int]) -> None:
        waiting = [(source, pack(destinations))]
        while waiting:
            at, entries = waiting.pop()
            for hop, part in self._splitters[at](entries):
                if hop == at:
                    continue
                length = len(part) // 2
                self.lengths[length] += 1
                self.by_broker[at][length] += 1
                self.by_broker[hop][length] += 1
                if at == source:
                    self.at_source[length] += 1
                waiting.append((hop, part))

    def send_random(self, events: int, interested: float, seed: int) -> None:
        """Events from random brokers, each to a random share of the others."""
        rng = random.Random(seed)
        brokers = self.topology.brokers
        wanted = round(interested * len(brokers))
        for _ in range(events):
            source = rng.choice(brokers)
            chosen = brokers if wanted == len(brokers) else rng.sample(brokers, wanted)
            self.send(source, [broker for broker in chosen if broker != source])


def mean(counts: Counter[int]) -> float:
    return sum(value * count for value, count in counts.items()) / max(1, counts.total())


def share_below(counts: Counter[int], bound: int) -> float:
    return sum(count for value, count in counts.items() if value < bound) / counts.total()
