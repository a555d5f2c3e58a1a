"""The physical network beneath the overlay."""

import math
from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercast.content import Filter
from mercast.lab import networks as papers
from mercast.lab.worlds import world
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.groups.unicast import Unicast
from mercast.sim.links import HEADER, Link, Noise
from mercast.sim.networks import (
    PLAIN,
    LinkClass,
    Links,
    Network,
    PhysicalLink,
    TransitStub,
    gnm,
    gnm_edges,
    line,
    regular,
    transit_stub,
    waxman,
)
from mercast.sim.physical import Load, Physical, attach, place
from mercast.sim.simulator import Simulator

unhurried = settings(deadline=None)
seeds = st.integers(0, 1_000)
FAST, SLOW = LinkClass("fast", (0.001, 0.005), 1e6), LinkClass("slow", (0.05, 0.1), 1e3)
LOCAL, WAY_IN = LinkClass("local", (0.002, 0.002), 1e5), LinkClass("way in", (0.01, 0.04), 1e4)


@st.composite
def shapes(draw):
    """Transit-stub shapes that can be had, and the number of routers that they ask for."""
    domains, routers = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    stubs, size = draw(st.integers(0, 2)), draw(st.integers(1, 5))
    hanging = domains * routers * stubs

    def links(least, most, kind):
        return Links(draw(st.integers(least, most)), kind)

    shape = TransitStub(
        domains,
        routers,
        stubs,
        size,
        between=links(domains - 1, math.comb(domains, 2), SLOW),
        transit=links(domains * (routers - 1), domains * math.comb(routers, 2), FAST),
        access=links(hanging, hanging + min(3, hanging * (domains * routers * size - 1)), WAY_IN),
        stub=links(hanging * (size - 1), hanging * math.comb(size, 2), LOCAL),
    )
    return shape, domains * routers * (1 + stubs * size)


@st.composite
def networks(draw):
    match draw(st.sampled_from(["line", "gnm", "regular", "waxman", "transit-stub"])):
        case "line":
            return line(draw(st.integers(1, 20)), FAST, draw(seeds))
        case "gnm":
            routers = draw(st.integers(1, 20))
            return gnm(routers, draw(st.integers(routers - 1, math.comb(routers, 2))), draw(seeds), SLOW)
        case "regular":
            degree = draw(st.integers(2, 5))
            return regular(2 * draw(st.integers(3, 10)), degree, draw(seeds), PLAIN)
        case "waxman":
            return waxman(draw(st.integers(2, 20)), draw(seeds), SLOW, draw(st.floats(0.01, 1)))
        case _:
            return transit_stub(draw(shapes())[0], draw(seeds))


@st.composite
def placed(draw):
    network = draw(networks())
    brokers = draw(st.sets(st.integers(0, 99), min_size=1, max_size=network.routers))
    at = place(brokers, network, draw(seeds))
    return Physical(*attach(network, at, LOCAL, draw(seeds))) if draw(st.booleans()) else Physical(network, at)


def graph_of(network):
    graph = nx.Graph()
    graph.add_nodes_from(range(network.routers))
    graph.add_edges_from(
        (link.one, link.other, {"latency": link.latency, "bandwidth": link.bandwidth}) for link in network.links
    )
    return graph


def ends(network):
    return [(link.one, link.other) for link in network.links]


def kinds(network):
    return Counter(link.kind for link in network.links)


# -- generators ------------------------------------------------------------------------------------------------------


def test_a_line():
    assert line(3) == Network(
        3, (PhysicalLink(0, 1, 0.01, math.inf, "plain"), PhysicalLink(1, 2, 0.01, math.inf, "plain"))
    )


@unhurried
@given(networks())
def test_connected_and_in_order(network):
    """`Network` refuses what is not connected; so ask networkx, not it."""
    assert nx.is_connected(graph_of(network))
    assert ends(network) == sorted(ends(network))


@unhurried
@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(n - 1, math.comb(n, 2)))), seeds)
def test_gnm_has_so_many_routers_and_links(size, seed):
    network = gnm(*size, seed, SLOW)
    assert (network.routers, kinds(network)) == (size[0], Counter({"slow": size[1]}) if size[1] else Counter())
    assert all(0.05 <= link.latency <= 0.1 and link.bandwidth == 1e3 for link in network.links)


@pytest.mark.parametrize(("nodes", "links"), [(100, 300), (100, 150), (20, 60)])
def test_gnm_is_the_first_random_graph_that_is_connected(nodes, links):
    graphs = (nx.gnm_random_graph(nodes, links, seed=3_000 + attempt) for attempt in range(1_000))
    assert gnm_edges(nodes, links, seed=3) == list(next(filter(nx.is_connected, graphs)).edges)


def test_gnm_with_fewer_links_than_chance_would_connect():
    assert nx.is_tree(nx.Graph(gnm_edges(300, 299, seed=1)))


@unhurried
@given(st.integers(1, 20), st.integers(0, 8), seeds)
def test_regular_networks_are_regular_or_refused(routers, degree, seed):
    possible = degree < routers and routers * degree % 2 == 0 and degree >= min(2, routers - 1)
    if not possible:
        with pytest.raises(ValueError, match="no connected network"):
            regular(routers, degree, seed)
        return
    assert set(dict(graph_of(regular(routers, degree, seed)).degree).values()) == {degree}


@unhurried
@given(st.integers(2, 30), seeds, st.floats(0.01, 1), st.floats(0.05, 1))
def test_waxman_adds_no_more_than_joins_the_parts(routers, seed, beta, alpha):
    network, drawn = waxman(routers, seed, SLOW, beta, alpha), nx.waxman_graph(routers, beta, alpha, seed=seed)
    chance = {(min(edge), max(edge)) for edge in drawn.edges}
    assert chance <= set(ends(network))
    assert len(network.links) == len(chance) + nx.number_connected_components(drawn) - 1
    for link in network.links:
        far = math.dist(drawn.nodes[link.one]["pos"], drawn.nodes[link.other]["pos"])
        assert link.latency == pytest.approx(0.05 + 0.05 * far / math.sqrt(2))


def test_waxman_joins_parts_where_they_are_nearest():
    """Nothing by chance: what is left is the shortest tree."""
    positions = nx.waxman_graph(12, 1e-9, seed=3).nodes(data="pos")
    full = nx.Graph()
    full.add_weighted_edges_from(
        (one, other, math.dist(at, there)) for one, at in positions for other, there in positions if one < other
    )
    tree = nx.minimum_spanning_tree(full)
    assert ends(waxman(12, 3, beta=1e-9)) == sorted((min(edge), max(edge)) for edge in tree.edges)


@unhurried
@given(shapes(), seeds)
def test_transit_stub_has_the_counts_asked_for(asked, seed):
    shape, routers = asked
    network = transit_stub(shape, seed)
    links = {"slow": shape.between, "fast": shape.transit, "way in": shape.access, "local": shape.stub}
    assert network.routers == routers
    assert network.transit == shape.transit_domains * shape.transit_routers
    assert kinds(network) == +Counter({name: links.number for name, links in links.items()})
    assert [router for domain in network.domains for router in domain] == list(range(routers))
    assert list(map(len, network.domains)) == [shape.transit_routers] * shape.transit_domains + [shape.stub_routers] * (
        network.transit * shape.stub_domains
    )


@unhurried
@given(shapes(), seeds)
def test_transit_stub_links_lie_where_their_class_says(asked, seed):
    network = transit_stub(asked[0], seed)
    home = {router: number for number, domain in enumerate(network.domains) for router in domain}
    graph = graph_of(network)
    for link in network.links:
        inside = home[link.one] == home[link.other]
        transit = link.one < network.transit, link.other < network.transit
        expected = {
            (True, (True, True)): "fast",
            (True, (False, False)): "local",
            (False, (True, True)): "slow",
            (False, (True, False)): "way in",
        }
        assert link.kind == expected[inside, transit]
    assert all(nx.is_connected(graph.subgraph(domain)) for domain in network.domains)


@unhurried
@given(st.floats(1, 9), st.floats(0, 1), st.integers(1, 12), seeds)
def test_sizes_vary_around_their_average_and_keep_the_total(average, spread, domains, seed):
    def shape(links):
        return TransitStub(
            domains,
            average,
            0,
            1,
            Links(domains - 1, SLOW),
            Links(links, FAST),
            Links(0, PLAIN),
            Links(0, PLAIN),
            spread,
        )

    routers = round(domains * average)
    network = transit_stub(shape(routers - domains), seed)
    assert network.routers == routers
    assert all(
        math.floor(average * (1 - spread)) <= len(d) <= math.ceil(average * (1 + spread)) for d in network.domains
    )


def test_spread_makes_sizes_differ():
    shape = TransitStub(50, 5, 0, 1, Links(49, SLOW), Links(200, FAST), Links(0, PLAIN), Links(0, PLAIN), spread=0.4)
    assert set(map(len, transit_stub(shape, 1).domains)) == {3, 4, 5, 6, 7}


ONE_DOMAIN = TransitStub(1, 3, 1, 2, Links(0, SLOW), Links(3, FAST), Links(3, WAY_IN), Links(3, LOCAL))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: line(0), "0 routers: must be at least 1"),
        (lambda: gnm(0, 0, 1), "0 nodes: must be at least 1"),
        (lambda: gnm(5, 3, 1), "3 links between 5 nodes: must be 4 to 10"),
        (lambda: gnm(5, 11, 1), "11 links between 5 nodes: must be 4 to 10"),
        (lambda: regular(5, 3, 1), "no connected network of 5 routers with 3 links each exists"),
        (lambda: waxman(1, 1), "1 routers: must be at least 2"),
        (lambda: waxman(5, 1, beta=0), "beta 0, alpha 0.1: must be above 0, and beta at most 1"),
        (lambda: LinkClass("lan", (0, 1)), "latency of lan links: 0 to 1 s, must ascend from above 0"),
        (lambda: LinkClass("lan", bandwidth=0), "bandwidth of lan links: 0, must be above 0"),
        (
            lambda: Network(3, (PhysicalLink(0, 1, 1, 1, ""),)),
            "the links do not connect the routers 0 to 2 and no others",
        ),
        (
            lambda: Network(1, (PhysicalLink(0, 1, 1, 1, ""),)),
            "the links do not connect the routers 0 to 0 and no others",
        ),
        (lambda: Network(2, (PhysicalLink(1, 0, 1, 1, ""),)), "two routers have one link at most"),
        (lambda: Network(2, (PhysicalLink(0, 1, 1, 1, ""),) * 2), "two routers have one link at most"),
        (lambda: Network(2, (PhysicalLink(0, 1, 0, 1, ""),)), "latency and bandwidth of links must be above 0"),
        (lambda: place(range(4), line(3), 1), "4 brokers on 3 routers: each must have one of its own"),
    ],
)
def test_what_cannot_be_had_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transit_domains": 0}, "0 transit domains: must be at least 1"),
        ({"transit_routers": 0.5}, "routers in a transit domain: 0.5 on average, spread 0.0; must be at least 1"),
        ({"stub_domains": -1}, "stub domains on a transit router: -1 on average"),
        ({"spread": 2}, "spread 2; must be at least 1, from 0 to 1"),
        ({"between": Links(1, SLOW)}, "1 links between transit domains: must be 0 to 0"),
        ({"transit": Links(1, SLOW)}, "1 links inside transit domains: must be 2 to 3"),
        ({"access": Links(2, SLOW)}, "2 links from stub domains to transit routers: must be 3 to 18"),
        ({"stub": Links(4, SLOW)}, "4 links inside stub domains: must be 3 to 3"),
    ],
)
def test_shapes_that_cannot_be_had_are_refused(change, message):
    assert transit_stub(ONE_DOMAIN, 1).routers == 9
    with pytest.raises(ValueError, match=message):
        transit_stub(TransitStub(**(vars(ONE_DOMAIN) | change)), 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: line(10, SLOW, seed),
        lambda seed: gnm(30, 40, seed),
        lambda seed: gnm(200, 200, seed),
        lambda seed: regular(20, 3, seed),
        lambda seed: waxman(20, seed),
        lambda seed: transit_stub(papers.MULTICAST, seed),
        lambda seed: sorted(place(range(9), line(30), seed).items()),
    ],
    ids=["line", "gnm", "sparse", "regular", "waxman", "transit-stub", "places"],
)
def test_the_seed_decides(make):
    assert make(7) == make(7)
    assert make(7) != make(8)


# -- the papers' networks --------------------------------------------------------------------------------------------


def test_kyra_section_v_and_medym_section_5_1():
    network = transit_stub(papers.KYRA, 1)
    assert (network.routers, len(network.links), network.transit, len(network.domains)) == (2_500, 8_938, 100, 320)
    home = {router: domain for domain in network.domains[:20] for router in domain}
    between = [edge for edge in ends(network) if max(edge) < 100 and home[edge[0]] != home[edge[1]]]
    assert len(between) == 38
    assert {home[router].index(router) for edge in between for router in edge} == {0, 1, 2, 3, 4}


def test_multicast_section_3_1():
    physical = papers.multicast(1)
    assert kinds(physical.network) == {"backbone": 4, "intermediate": 153, "fringe": 88}
    assert physical.network.routers == 100 + 88
    assert physical.bandwidth(0, 1) == 100e6 / 8
    routers = [physical.path(0, broker)[-2] for broker in range(1, 88)]
    assert len(set(routers)) == 87
    assert min(routers) >= physical.network.transit


def test_hermes_section_5_1():
    physical = papers.hermes(1)
    assert (physical.network.routers, list(map(len, physical.network.domains))) == (1_000, [100] * 10)
    assert len(set(physical.at.values())) == len(physical.at) == 500


# -- paths and stress ------------------------------------------------------------------------------------------------


@unhurried
@given(placed())
def test_paths_are_shortest(physical):
    graph = graph_of(physical.network)
    for one in physical.at:
        shortest = nx.single_source_dijkstra_path_length(graph, physical.at[one], weight="latency")
        for other in physical.at:
            path = physical.path(one, other)
            assert (path[0], path[-1]) == (physical.at[one], physical.at[other])
            length = nx.path_weight(graph, path, "latency")
            assert length == pytest.approx(shortest[physical.at[other]])
            assert length == pytest.approx(physical.latency(one, other))
            widths = [graph.edges[hop]["bandwidth"] for hop in pairwise(path)]
            assert physical.bandwidth(one, other) == min(widths, default=math.inf)
            hops = [physical.network.links[number][:2] for number in physical.links(one, other)]
            assert hops == [(min(hop), max(hop)) for hop in pairwise(path)]


@unhurried
@given(placed())
def test_each_broker_has_a_router_of_its_own(physical):
    assert len(set(physical.at.values())) == len(physical.at)


@unhurried
@given(placed(), st.data())
def test_a_multicast_is_the_merger_of_the_unicasts(physical, data):
    source = data.draw(st.sampled_from(sorted(physical.at)))
    group = data.draw(st.sets(st.sampled_from(sorted(physical.at))))
    physical.multicast(source, group, 7)
    together, stress = physical.stress.messages.copy(), physical.stress
    assert stress.bytes.tolist() == (7 * together).tolist()
    stress.clear()
    assert not stress.messages.any()
    assert not stress.bytes.any()
    for member in group:
        physical.unicast(source, member, 7)
    assert (together <= stress.messages).all()
    assert together.tolist() == (stress.messages > 0).astype(int).tolist()
    tree = nx.Graph([ends(physical.network)[number] for number in np.flatnonzero(together)])
    assert len(tree) == 0 or nx.is_tree(tree)


@unhurried
@given(placed(), st.data())
def test_sums_agree(physical, data):
    brokers = st.sampled_from(sorted(physical.at))
    sent = data.draw(st.lists(st.tuples(brokers, brokers, st.integers(1, 1_000))))
    for one, other, size in sent:
        physical.unicast(one, other, size)
    hops = [(len(physical.path(one, other)) - 1, size) for one, other, size in sent]
    loads, stress = physical.stress.by_class(), physical.stress
    assert {name: load.links for name, load in loads.items()} == kinds(physical.network)
    assert sum(load.messages for load in loads.values()) == stress.messages.sum() == sum(hop for hop, _ in hops)
    assert sum(load.bytes for load in loads.values()) == stress.bytes.sum() == sum(hop * size for hop, size in hops)
    assert stress.usage() == pytest.approx(sum(physical.latency(one, other) for one, other, _ in sent))


# -- beneath a simulated overlay -------------------------------------------------------------------------------------
#
#    brokers     0     1           2
#    routers     0 --- 1 --- 2 --- 3      links of 1, 2 and 4 s; 1000, 100 and 500 bytes a second


ON_A_LINE = Network(
    4,
    (PhysicalLink(0, 1, 1, 1_000, "a"), PhysicalLink(1, 2, 2, 100, "b"), PhysicalLink(2, 3, 4, 500, "b")),
)
CONTENT = len("x") + 8


def run(strategy, overlay, publisher, noise=Noise()):  # noqa: B008
    physical = Physical(ON_A_LINE, {0: 0, 1: 1, 2: 3})
    asked = [(publisher, Advertise("p", 1, "quote", Filter()))]
    asked += [(broker, Subscribe("s", 2, "quote", Filter())) for broker in range(3) if broker != publisher]
    simulator = world(strategy, overlay, asked, lay=physical.link)
    assert not physical.stress.messages.any()
    simulator.set_noise(noise)
    simulator.do(publisher, Publish("p", 3, "quote", {"x": 1}, 0))
    simulator.run(100)
    return physical, {delivery.broker: delivery.time for delivery in simulator.deliveries}


def test_each_way_of_a_link_is_laid_by_itself():
    """Equal paths may differ there and back."""
    laid = []

    def lay(one, other):
        laid.append((one, other))
        return Link(latency=1)

    world(DDBR, [(0, 1), (1, 2)], [], lay=lay)
    Simulator(DDBR, lay=lay).build([(3, 4)])
    assert laid == [(1, 0), (0, 1), (2, 1), (1, 2), (3, 4), (4, 3)]


def test_stress_of_a_line_as_worked_out_by_hand():
    """0 sends to 1 a list of two, 1 sends to 2 a list of one; the second takes the last two links."""
    physical, arrivals = run(DDBR, [(0, 1), (1, 2)], publisher=0)
    to_1, to_2 = HEADER + 2 * 2 + CONTENT, HEADER + 2 + CONTENT
    assert physical.stress.messages.tolist() == [1, 1, 1]
    assert physical.stress.bytes.tolist() == [to_1, to_2, to_2]
    assert physical.stress.by_class() == {"a": Load(1, 1, to_1), "b": Load(2, 2, 2 * to_2)}
    assert arrivals == pytest.approx({1: to_1 / 1_000 + 1, 2: to_1 / 1_000 + 1 + to_2 / 100 + 6})


def test_stress_of_a_detour_as_worked_out_by_hand():
    """The overlay goes from 0 by way of 2 to 1: up the line and back."""
    physical, arrivals = run(DDBR, [(0, 2), (1, 2)], publisher=0)
    to_2, to_1 = HEADER + 2 * 2 + CONTENT, HEADER + 2 + CONTENT
    assert physical.stress.messages.tolist() == [1, 2, 2]
    assert physical.stress.bytes.tolist() == [to_2, to_2 + to_1, to_2 + to_1]
    assert arrivals == pytest.approx({2: to_2 / 100 + 7, 1: to_2 / 100 + 7 + to_1 / 100 + 6})


def test_ip_multicast_puts_less_stress_on_a_line_than_unicasts():
    physical, _ = run(Unicast, [(0, 1), (0, 2)], publisher=0)
    assert physical.stress.messages.tolist() == [2, 1, 1]
    physical.stress.clear()
    physical.multicast(0, [1, 2], 100)
    assert physical.stress.messages.tolist() == [1, 1, 1]


def test_what_noise_does_to_stress():
    lost, arrived = run(DDBR, [(0, 1), (1, 2)], 0, Noise(loss=1.0))
    assert (lost.stress.messages.tolist(), arrived) == ([0, 0, 0], {})
    doubled, _ = run(DDBR, [(0, 1), (0, 2)], 0, Noise(doubling=1.0))
    assert doubled.stress.messages.tolist() == [4, 2, 2]
