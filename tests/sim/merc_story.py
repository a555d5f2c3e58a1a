"""Fault stories of several clusters. What tables should be is found out by brokers to whom nothing ever happened."""

import itertools
from dataclasses import replace

import networkx as nx
from sim.clusters import BACKBONE
from sim.faults import Story

from mercast.protocol.stimuli import Advertise, Declare, Subscribe
from mercast.routing.destination.merc import MERC
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator


class MERCStory(Story):
    strategy = MERC

    def make(self, broker, incarnation):
        return MERC(broker, incarnation, replace(self.settings, clusters=self.homes[broker]))

    def overlay(self, seed):
        """Of every third seed many clusters; else few, with more brokers in each."""
        return self.many_clusters() if seed % 3 == 1 else self.few_clusters()

    def many_clusters(self):
        """Each a broker and its edges; in a ring, or in any graph that hangs together."""
        rng, count = self.rng, self.rng.randint(4, 8)
        borders = nx.cycle_graph(count)
        if rng.random() < 0.5:
            borders = nx.gnm_random_graph(count, rng.randint(count - 1, 2 * count), rng)
            borders.add_edges_from((place, rng.randrange(place)) for place in range(1, count))
        self.homes = {cluster: (cluster + 1,) for cluster in range(count)}
        self.homes |= {edge: (one + 1, other + 1) for edge, (one, other) in enumerate(borders.edges, count)}
        pairs = itertools.combinations(self.homes, 2)
        return self.sound([pair for pair in pairs if self.are_together(*pair) and rng.random() < 0.3])

    def few_clusters(self):
        """A backbone of edges with stub clusters, or neighbours that share edges, in a line or in a circle."""
        rng, self.homes, links = self.rng, {}, []
        count, numbers = rng.randint(2, 3), itertools.count()
        clusters = {cluster: [next(numbers) for _ in range(rng.randint(1, 3))] for cluster in range(1, count + 1)}
        self.homes |= {broker: (cluster,) for cluster, members in clusters.items() for broker in members}
        if rng.random() < 0.6:
            clusters[BACKBONE] = []
            borders = [(cluster, BACKBONE) for cluster in range(1, count + 1)]
        else:
            borders = [(one, one + 1) for one in range(1, count)]
            borders += [(count, 1)] if count > 2 and rng.random() < 0.5 else []
        for border in borders:
            for _ in range(rng.choice([1, 2, 2])):
                edge = next(numbers)
                self.homes[edge] = border
                for cluster in border:
                    clusters[cluster].append(edge)
        for members in clusters.values():
            links += [(members[place], members[rng.randrange(place)]) for place in range(1, len(members))]
            links += [tuple(rng.sample(members, 2)) for _ in range(len(members) // 2) if len(members) > 2]
        return self.sound(links)

    def sound(self, links):
        """Two brokers have one link, in the first cluster that they share: each cluster must hang together without
        those that lie in another."""
        links = {tuple(sorted(link)) for link in links}
        for number in sorted({number for clusters in self.homes.values() for number in clusters}):
            members = [broker for broker, clusters in self.homes.items() if number in clusters]
            parts = [{broker} for broker in members]
            for one, other in sorted(links | {tuple(sorted(pair)) for pair in itertools.combinations(members, 2)}):
                if one not in members or other not in members or self.shared(one, other) != number:
                    continue
                mine = [part for part in parts if one in part or other in part]
                if len(mine) == 2:
                    links.add((one, other))
                    parts = [part for part in parts if part not in mine] + [mine[0] | mine[1]]
        return sorted(links)

    def are_together(self, one, other):
        return not set(self.homes[one]).isdisjoint(self.homes[other])

    def shared(self, one, other):
        return next(number for number in self.homes[one] if number in self.homes[other])

    def wrong_tables(self):
        fresh = Simulator(self.make)
        asked = [
            (self.all[0], Declare("types", number, declaration))
            for number, declaration in enumerate(self.types.declared.values(), 1)
        ]
        for client in self.clients.values():
            for local, one in client.advertisements.items():
                asked.append((client.broker, Advertise(*local, one.type, one.filter)))
            for local, one in client.subscriptions.items():
                asked.append((client.broker, Subscribe(*local, one.type, one.filter)))
        converge(fresh, {tuple(sorted(link)) for link in self.simulator.links()}, asked)
        return differences(self.simulator, fresh)


def differences(simulator, fresh):
    """Between the tables that brokers have and those of brokers to whom nothing ever happened."""
    return [
        f"{what} of {broker} in {number} is {is_.get(key)}, should be {should.get(key)}: {key}"
        for broker, core in simulator.brokers.items()
        for place, other in zip(core.places, fresh.brokers[broker].places, strict=True)
        for what, number, is_, should in compared(place, other)
        for key in sorted(is_.keys() | should.keys())
        if is_.get(key) != should.get(key)
    ]


def compared(place, other):
    for what in ("advertisements", "subscriptions"):
        tables = [getattr(one, what) for one in (place, other)]
        yield what, place.number, *({origin: table.of(origin) for origin in table} for table in tables)
