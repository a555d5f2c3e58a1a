"""Links move to where the traffic is (overlay/organising.py): what must hold at every moment, whatever happens."""

import json
import random
from collections import Counter

import networkx as nx
import pytest
from sim.organised_links import Links
from sim.organised_story import AimedStory, OrganisedMERCStory, OrganisedStory

from mercast.content import Filter
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.effects import CloseLink, OpenLink
from mercast.protocol.rows import Published
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.recording import Replayed, replay
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Noise, Simulator


def seeds(count, quick):
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(count)]


# -- links alone: many seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(6, 3))
def test_it_comes_to_rest_and_is_connected_and_within_the_limit_at_every_moment(seed):
    links = Links(seed)
    links.run_to_rest()
    assert links.problems() == []
    if max(degree for _, degree in links.built.degree) <= links.most_links:
        assert links.hops == sorted(links.hops, reverse=True)
    else:
        assert links.excess() == {}


@pytest.mark.slow
def test_paths_become_shorter():
    before, after, steps = 0.0, 0.0, 0
    for seed in range(20):
        links = Links(seed)
        links.run_to_rest()
        before, after, steps = before + links.hops[0], after + links.hops[-1], steps + links.steps()
    assert steps > 40
    assert after < 0.85 * before


@pytest.mark.parametrize("seed", seeds(4, 2))
def test_nor_does_it_matter_that_nobody_waits_for_its_turn(seed):
    links = Links(seed)
    links.all_at_once = True
    links.run_to_rest()
    assert links.problems() == []


@pytest.mark.parametrize("seed", seeds(5, 3))
def test_messages_that_are_lost_doubled_and_late_change_nothing_of_that(seed):
    """No link is lost: so it must stay connected, and no broker may have a link too many, at every moment."""
    links = Links(seed, misses=40)
    links.noise()
    links.run(40)
    links.simulator.set_noise(Noise())
    links.run_to_rest()
    assert links.problems() == []


@pytest.mark.parametrize("seed", seeds(6, 3))
def test_after_faults_in_the_midst_of_steps_all_are_connected_again(seed):
    links = Links(seed)
    links.trouble(40)
    links.run_to_rest()
    assert links.problems() == []


@pytest.mark.parametrize("seed", seeds(3, 2))
def test_whoever_is_left_when_brokers_are_gone_for_good_is_connected_as_far_as_the_overlay_was_built(seed):
    links = Links(seed)
    links.run_to_rest()
    links.faultless = False
    links.crash_for_good(max(links.overlay().degree, key=lambda one: one[1])[0])
    links.run_to_rest()
    assert links.problems() == []


def test_the_faults_do_hit_steps():
    hits = 0
    for seed in range(6):
        links = Links(seed)
        links.trouble(20)
        hits += links.hits
    assert hits > 10


# -- whole brokers -----------------------------------------------------------------------------------------------------


class World:
    """Brokers with clients, and events at a steady rate."""

    def __init__(self, seed, count=8, most_links=3, organise="carried"):
        rng = random.Random(seed)
        ring = rng.sample(range(count), count)
        links = list(zip(ring, [*ring[1:], ring[0]], strict=True))
        settings = Settings(
            timing=Timing(0.2, 3), matcher="scan", organise=organise, organise_every=2.0, most_links=most_links
        )
        self.simulator = Simulator(lambda who, life: DDBR(who, life, settings), seed)
        self.wants = [(broker, of) for broker in range(count) for of in rng.sample(range(count), 3) if of != broker]
        self.rates = [rng.choice([1, 2, 5]) for _ in range(count)]
        self.requests = [1] * count
        asked = [(of, Advertise("p", 1, f"t{of}", Filter())) for of in range(count)]
        asked += [(at, Subscribe(f"s{of}", 1, f"t{of}", Filter())) for at, of in self.wants]
        converge(self.simulator, links, asked)
        self.links = []
        carry_out = self.simulator._carry_out

        def carry(broker, effects):
            self.links += [(broker, effect) for effect in effects if isinstance(effect, OpenLink | CloseLink)]
            carry_out(broker, effects)

        self.simulator._carry_out = carry

    def run(self, until):
        while self.simulator.now < until:
            for broker, rate in enumerate(self.rates):
                for _ in range(rate):
                    self.requests[broker] += 1
                    stimulus = Publish("p", self.requests[broker], f"t{broker}", {}, 0)
                    self.simulator.do(broker, stimulus)
            self.simulator.run(self.simulator.now + 0.2)

    def hops(self):
        distances = dict(nx.all_pairs_shortest_path_length(nx.Graph(self.simulator.connected())))
        total = sum(self.rates[of] for _, of in self.wants)
        return sum(self.rates[of] * distances[of][at] for at, of in self.wants) / total


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_doubled_while_links_move_under_load(seed):
    world = World(seed)
    before = world.hops()
    world.run(40)
    moved = len(world.links)
    world.run(50)
    world.simulator.run(52)
    assert moved >= 8
    assert len(world.links) == moved  # at rest
    assert world.hops() < before
    rows = [row for _, row in world.simulator.rows if isinstance(row, Published)]
    due = Counter(
        (f"s{row.event.broker}", at, row.event) for row in rows for at, of in world.wants if of == row.event.broker
    )
    got = Counter((one.client, one.broker, one.event.id) for one in world.simulator.deliveries)
    assert got == due
    assert not any(core.dropped for core in world.simulator.brokers.values())


def test_off_means_that_nothing_is_counted_said_or_moved():
    world = World(0, organise="off")
    world.run(8)
    assert world.links == []
    assert all(core.organising == () for core in world.simulator.brokers.values())


@pytest.mark.slow
def test_while_one_broker_takes_no_part_nothing_moves():
    world = World(0)
    world.simulator.brokers[3].organising = ()
    world.run(40)
    tried = len(world.links)  # everybody finds that out
    world.run(50)
    assert len(world.links) == tried
    assert sum(organising.taken for core in world.simulator.brokers.values() for organising in core.organising) == 0


@pytest.mark.parametrize("story", [OrganisedStory, AimedStory, OrganisedMERCStory])
@pytest.mark.parametrize("seed", seeds(2, 1))
def test_nothing_wrong_during_faults_and_nothing_missing_after(story, seed):
    told = story(seed)
    told.simulator.validate = seed % 10 == 0
    told.play()
    told.simulator.run(told.simulator.now + 20)
    assert told.problems() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_in_clusters_links_move_inside_each_and_never_across(seed):
    told = OrganisedMERCStory(seed)
    told.calm()
    moved = sum(organising.taken for core in told.simulator.brokers.values() for organising in core.organising)
    assert moved > 0
    for number in sorted({number for clusters in told.homes.values() for number in clusters}):
        members = [broker for broker, clusters in told.homes.items() if number in clusters]
        inside = nx.Graph(link for link in told.simulator.connected() if told.shared(*link) == number)
        inside.add_nodes_from(members)
        assert set(inside) == set(members)
        assert nx.is_connected(inside)
    in_circles = {"not carried", "repeat"}  # while one way between clusters takes over from another
    assert {why for core in told.simulator.brokers.values() for why in core.dropped} <= in_circles
    assert told.problems() == []


@pytest.mark.slow
def test_a_run_in_which_links_move_replays_the_same():
    lines = {broker: [] for broker in range(8)}
    told = AimedStory(3, {broker: lines[broker].append for broker in lines})
    told.play()
    assert any('"is":"OpenLink"' in line for some in lines.values() for line in some)
    for broker in told.all:
        headers = sum("version" in json.loads(line) for line in lines[broker])
        assert replay(lines[broker]) == Replayed(len(lines[broker]) - headers)
