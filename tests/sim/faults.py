"""Random overlays, clients, churn and faults, from a seed; and what must hold afterwards.

During faults nothing is delivered twice or wrongly. When they end, every table equals a fresh computation over the live
clients, and an event reaches exactly the subscribers that match, once.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import networkx as nx

from mercast.content import Advertisement, AttributeType, Declaration, Filter, Subscription, Types
from mercast.overlay.channel import Patience
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.messages import Local
from mercast.protocol.rows import Dropped, Published
from mercast.protocol.stimuli import Advertise, Declare, Leave, Publish, Subscribe, Unadvertise, Unsubscribe
from mercast.routing.core import Core
from mercast.routing.settings import Settings
from mercast.sim.links import Clock
from mercast.sim.simulator import Noise, Simulator

SETTINGS = Settings(
    timing=Timing(heart_beat=0.2, misses=3),
    matcher="scan",
    patience=Patience(resend_after=0.3, compare_every=2.0),
    settle_within=3.0,
    purge_after=4.0,
    wait_for_route=1.0,
)
FILTERS = ["", "x < 5", "x >= 5", "x = 3", "x BETWEEN 2 AND 7", "x <> 4", "y IS NULL AND x > 1"]
TYPES = ["red", "blue", "crimson"]
DECLARATIONS = [
    Declaration("crimson", "red", {"x": kind} if kind else {}, open=True)
    for kind in (None, AttributeType.INT, AttributeType.FLOAT)
]
"""The last two contradict each other; whichever wins, crimson is red."""
DECLARED = Types()
DECLARED.declare(DECLARATIONS[0])


@dataclass
class Client:
    broker: int
    name: str
    requests: int = 0
    advertisements: dict[Local, Advertisement] = field(default_factory=dict)
    subscriptions: dict[Local, Subscription] = field(default_factory=dict)

    def request(self) -> int:
        self.requests += 1
        return self.requests


class Story:
    """One seed's run."""

    strategy: type[Core]
    settings = SETTINGS

    def __init__(self, seed: int, record: dict[int, Callable[[str], None]] | None = None) -> None:
        self.rng = random.Random(seed)
        rule, matcher = self.rng.choice(["paper", "covering"]), self.rng.choice(["scan", "scan", "index"])
        self.settings = replace(self.settings, rule=rule, matcher=matcher)
        self.simulator = Simulator(self.make, seed, record=record)
        self.clients: dict[str, Client] = {}
        self.arrivals = 0
        self.ever: dict[tuple[str, int], Subscription] = {}
        self.simulator.build(self.overlay(seed), latency=self.rng.uniform(0.001, 0.02))
        self.all = sorted(self.simulator.brokers)
        for broker in self.all:
            self.simulator.set_clock(broker, Clock(self.rng.uniform(-5, 5), self.rng.uniform(0.97, 1.03)))

    def make(self, broker: int, incarnation: int) -> Core:
        return self.strategy(broker, incarnation, self.settings)

    def overlay(self, seed: int) -> list[tuple[int, int]]:
        """Its links."""
        count = self.rng.randint(3, 8)
        graph = nx.gnm_random_graph(count, min(count * (count - 1) // 2, self.rng.randint(count - 1, 2 * count)), seed)
        graph.add_edges_from((place, self.rng.randrange(place)) for place in range(1, count))
        return list(graph.edges)

    # -- what may happen ---------------------------------------------------------------------------------------------

    def play(self) -> None:
        self.simulator.run(3)
        for _ in range(6):
            self.arrive()
        while self.simulator.now < 13:
            self.rng.choice(self.HAPPENINGS)(self)
            self.simulator.run(self.simulator.now + self.rng.expovariate(12))
        self.heal()
        self.simulator.run(self.simulator.now + 12)

    def arrive(self) -> None:
        alive = sorted(self.simulator.brokers)
        if alive and len(self.clients) < 15:
            self.arrivals += 1
            client = Client(self.rng.choice(alive), f"c{self.arrivals}")
            self.clients[client.name] = client
            self.interest(client)
            self.interest(client)

    def someone(self) -> Client | None:
        return self.clients[self.rng.choice(sorted(self.clients))] if self.clients else None

    def ask(self) -> None:
        if client := self.someone():
            self.interest(client)

    def interest(self, client: Client) -> None:
        filter, number = Filter.parse(self.rng.choice(FILTERS)), client.request()
        local = Local(client.name, number)
        if self.rng.random() < 0.4:
            client.advertisements[local] = Advertisement(self.rng.choice(TYPES), filter)
            self.simulator.do(client.broker, Advertise(client.name, number, *_parts(client.advertisements[local])))
        else:
            client.subscriptions[local] = Subscription(self.rng.choice([*TYPES, None]), filter)
            self.ever[client.name, number] = client.subscriptions[local]
            self.simulator.do(client.broker, Subscribe(client.name, number, *_parts(client.subscriptions[local])))

    def take_back(self) -> None:
        client = self.someone()
        if client is None:
            return
        if client.subscriptions:
            local = self.rng.choice(sorted(client.subscriptions))
            del client.subscriptions[local]
            self.simulator.do(client.broker, Unsubscribe(client.name, client.request(), local.request))
        if client.advertisements and self.rng.random() < 0.5:
            local = self.rng.choice(sorted(client.advertisements))
            del client.advertisements[local]
            self.simulator.do(client.broker, Unadvertise(client.name, client.request(), local.request))

    def declare(self) -> None:
        if client := self.someone():
            declaration = self.rng.choice(DECLARATIONS)
            self.simulator.do(client.broker, Declare(client.name, client.request(), declaration))

    def leave(self) -> None:
        if client := self.someone():
            del self.clients[client.name]
            self.simulator.do(client.broker, Leave(client.name))

    def publish(self) -> None:
        if client := self.someone():
            self.send(client)

    def send(self, client: Client) -> None:
        if client.advertisements:
            local = self.rng.choice(sorted(client.advertisements))
            attributes = {"x": self.rng.randint(0, 9)}
            type = client.advertisements[local].type
            self.simulator.do(client.broker, Publish(client.name, client.request(), type, attributes, 0))

    def crash(self) -> None:
        broker = self.rng.choice(self.all)
        if broker in self.simulator.brokers:
            self.simulator.crash(broker)
            self.clients = {name: client for name, client in self.clients.items() if client.broker != broker}

    def restart(self) -> None:
        broker = self.rng.choice(self.all)
        if broker not in self.simulator.brokers:
            self.simulator.start(broker)

    def pause(self) -> None:
        self.simulator.pause(self.rng.choice(self.all))

    def resume(self) -> None:
        self.simulator.resume(self.rng.choice(self.all))

    def cut(self) -> None:
        one, other = self.rng.choice(self.simulator.links())
        self.simulator.set_cut(one, other, True)
        if self.rng.random() < 0.6:
            self.simulator.set_cut(other, one, True)

    def mend(self) -> None:
        for one, other in self.rng.sample(self.simulator.links(), 2):
            self.simulator.set_cut(one, other, False)

    def noise(self) -> None:
        noisy = Noise(self.rng.uniform(0, 0.3), self.rng.uniform(0, 0.3), self.rng.uniform(0, 0.3))
        self.simulator.set_noise(self.rng.choice([Noise(), noisy]))

    HAPPENINGS = (
        *(arrive, arrive, arrive, ask, ask, ask, take_back, declare, leave, *[publish] * 12),
        *(crash, restart, restart, pause, resume, resume, cut, mend, mend, noise),
    )

    def heal(self) -> None:
        self.simulator.set_noise(Noise())
        for broker in self.all:
            self.simulator.resume(broker)
            if broker not in self.simulator.brokers:
                self.simulator.start(broker)
        for one, other in self.simulator.links():
            self.simulator.set_cut(one, other, False)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        found = self.wrong_deliveries() + self.wrong_views() + self.wrong_tables() + self.unsettled()
        return found or self.wrong_afterwards() or self.still_waiting()

    def still_waiting(self) -> list[str]:
        """When all has been quiet for long enough, nothing that a broker was told waits to be settled."""
        cores = self.simulator.brokers.values()
        self.simulator.run(self.simulator.now + 2 * max(core.settings.settle_within for core in cores))
        return [
            f"broker {core.me} waits since {core.exchange.oldest}" for core in cores if isfinite(core.exchange.oldest)
        ]

    def unsettled(self) -> list[str]:
        """Whatever happened, every live client has been told about each of its requests."""
        asked = [
            (client.broker, *local)
            for client in self.clients.values()
            for local in (*client.advertisements, *client.subscriptions)
        ]
        return [f"never settled: {request}" for request in asked if request not in self.simulator.settled]

    def wrong_views(self) -> list[str]:
        views = self.views()
        types = [dict(core.types.declared) for core in self.simulator.brokers.values()]
        found = [] if all(some == types[0] for some in types) else [f"types differ: {types}"]
        return [
            *found,
            *(f"views of {sorted(members)} differ: {some}" for members, some in views.items() if len(some) > 1),
        ]

    def views(self) -> dict[frozenset[int], set[tuple[bytes, frozenset[int]]]]:
        """Of each cluster's members, what they see; all the same, if all is well."""
        views: dict[frozenset[int], set[tuple[bytes, frozenset[int]]]] = {}
        members: dict[int, set[int]] = {}
        for broker, core in self.simulator.brokers.items():
            for cluster in core.clusters:
                members.setdefault(cluster.number, set()).add(broker)
        for number, some in members.items():
            seen = {
                (cluster.state.digest, cluster.state.reachable)
                for broker in some
                for cluster in self.simulator.brokers[broker].clusters
                if cluster.number == number
            }
            views[frozenset(some)] = seen | {(one[0], frozenset(some)) for one in seen}
        return views

    @property
    def types(self) -> Types:
        """What is declared, when all agree."""
        return next(iter(self.simulator.brokers.values())).types

    def wrong_deliveries(self) -> list[str]:
        found = []
        counts = Counter((d.client, d.event.id) for d in self.simulator.deliveries)
        found += [f"delivered {count} times: {what}" for what, count in counts.items() if count > 1]
        for d in self.simulator.deliveries:
            for number in d.subscriptions:
                if not self.ever[d.client, number].matches(DECLARED, d.event.type, d.event.attributes):
                    found.append(f"undue: {d}")
        return found

    def wrong_tables(self) -> list[str]:
        """Each strategy's tables against a fresh computation: a subclass knows them."""
        return []

    def wrong_afterwards(self) -> list[str]:
        """Everybody publishes now that all is quiet: who gets what is known beforehand."""
        self.simulator.deliveries.clear()
        self.simulator.rows.clear()
        for name in sorted(self.clients) * 3:
            self.send(self.clients[name])
        self.simulator.run(self.simulator.now + 2)
        published = [row for _, row in self.simulator.rows if isinstance(row, Published)]
        got = Counter((d.client, d.event.id, d.subscriptions) for d in self.simulator.deliveries)
        due = Counter((name, row.event, matched) for row in published for name, matched in self.matching(row))
        lost = [
            f"dropped: {row}" for _, row in self.simulator.rows if isinstance(row, Dropped) and row.why == "hop limit"
        ]
        return [f"missing: {what}" for what in due - got] + [f"undue: {what}" for what in got - due] + lost

    def matching(self, row: Published) -> list[tuple[str, tuple[int, ...]]]:
        """The clients that want an event, with the subscriptions that match."""
        found = []
        for client in self.clients.values():
            wanted = [
                local.request
                for local, one in client.subscriptions.items()
                if one.matches(self.types, row.type, row.attributes)
            ]
            if wanted:
                found.append((client.name, tuple(sorted(wanted))))
        return found

    def at(self, broker: int, table: str) -> dict[Local, Any]:
        """The live advertisements or subscriptions of a broker's clients."""
        return {
            local: one
            for client in self.clients.values()
            if client.broker == broker
            for local, one in getattr(client, table).items()
        }


def _parts(interest: Advertisement | Subscription) -> tuple[Any, Filter]:
    return interest.type, interest.filter
