"""Overlays for experiments, and what a message costs on them, worked out by the brokers' own routes and splits."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from mercast.overlay.routes import Routes
from mercast.overlay.split import Rule, Splitter, pack
from mercast.overlay.topology import Topology
from mercast.sim.networks import gnm_edges


def random_overlay(brokers: int, degree: float, seed: int) -> Topology:
    """A connected G(n, m) with this mean degree."""
    return Topology.of(gnm_edges(brokers, round(brokers * degree / 2), seed))


class Lists(ABC):
    """Sends events over an overlay and counts the lists of their messages by length."""

    def __init__(self, brokers: Sequence[int]) -> None:
        self.brokers = brokers
        self.lengths: Counter[int] = Counter()
        self.by_broker: dict[int, Counter[int]] = {broker: Counter() for broker in brokers}
        """Lists of the messages that each broker sent or received."""

    @abstractmethod
    def send(self, source: int, destinations: Sequence[int]) -> None: ...

    def count(self, at: int, hop: int, length: int) -> None:
        """A message from one broker to the next."""
        self.lengths[length] += 1
        self.by_broker[at][length] += 1
        self.by_broker[hop][length] += 1

    def send_random(self, events: int, interested: float, seed: int) -> None:
        """Events from random brokers, each to a random share of the others."""
        rng = random.Random(seed)
        wanted = round(interested * len(self.brokers))
        for _ in range(events):
            source = rng.choice(self.brokers)
            chosen = self.brokers if wanted == len(self.brokers) else rng.sample(self.brokers, wanted)
            self.send(source, [broker for broker in chosen if broker != source])

    def forget(self) -> None:
        """Count anew."""
        for counts in (self.lengths, *self.by_broker.values()):
            counts.clear()


class Walk(Lists):
    """D-DBR's lists: the splits of all brokers, without the brokers."""

    def __init__(self, topology: Topology, rule: Rule = "paper") -> None:
        super().__init__(topology.brokers)
        self.topology = topology
        self._splitters = {broker: Splitter(Routes(topology, broker), rule) for broker in topology.brokers}
        self.at_source: Counter[int] = Counter()

    def send(self, source: int, destinations: Sequence[int]) -> None:
        waiting = [(source, pack(destinations))]
        while waiting:
            at, entries = waiting.pop()
            for hop, part in self._splitters[at](entries):
                if hop == at:
                    continue
                length = len(part) // 2
                self.count(at, hop, length)
                if at == source:
                    self.at_source[length] += 1
                waiting.append((hop, part))


def mean(counts: Counter[int]) -> float:
    return sum(value * count for value, count in counts.items()) / max(1, counts.total())


def share_below(counts: Counter[int], bound: int) -> float:
    return sum(count for value, count in counts.items() if value < bound) / counts.total()
