"""The physical networks of the papers, as far as they describe them; what they leave out is said beside our choice."""

from mercast.sim.networks import LinkClass, Links, Network, TransitStub, transit_stub
from mercast.sim.physical import Physical, attach, place

_MS = 1e-3
_MEGABIT = 1e6 / 8

# Kyra, section V; MEDYM, section 5.1: 2,500 routers and 8,938 links. Full meshes in all domains (8,400 and 200) and
# single-homed stub domains (300) leave 38 links between the 20 transit domains, whose latency is not stated.
_FAR = LinkClass("transit", (50 * _MS, 100 * _MS))
KYRA = TransitStub(
    transit_domains=20,
    transit_routers=5,
    stub_domains=3,
    stub_routers=8,
    between=Links(38, _FAR),
    transit=Links(200, _FAR),
    access=Links(300, LinkClass("transit-stub", (10 * _MS, 40 * _MS))),
    stub=Links(8_400, LinkClass("stub", (1 * _MS, 5 * _MS))),
)
_LAN = LinkClass("lan", (1 * _MS, 1 * _MS))

# IP multicast, section 3.1: 100 routers and three classes of links. The figure is lost, so the shape is a choice: one
# transit domain of 4 routers, on each of them 3 stub domains of 8; 0.6 and 0.42 of all pairs inside are linked;
# latencies are Kyra's.
_INTERMEDIATE = 155 * _MEGABIT
_BACKBONE = LinkClass("backbone", (50 * _MS, 100 * _MS), 622 * _MEGABIT)
MULTICAST = TransitStub(
    transit_domains=1,
    transit_routers=4,
    stub_domains=3,
    stub_routers=8,
    between=Links(0, _BACKBONE),
    transit=Links(4, _BACKBONE),
    access=Links(12, LinkClass("intermediate", (10 * _MS, 40 * _MS), _INTERMEDIATE)),
    stub=Links(141, LinkClass("intermediate", (1 * _MS, 5 * _MS), _INTERMEDIATE)),
)
_FRINGE = LinkClass("fringe", (1 * _MS, 1 * _MS), 100 * _MEGABIT)

# Hermes, section 5.1: 10 autonomous systems of 100 nodes, by BRITE, whose systems have no stub domains inside. Links
# and latencies are not stated: two links for each new node, as in BRITE's own examples, make 197 a system and 17
# between systems; latencies are Kyra's, of transit and of stub domains.
HERMES = TransitStub(
    transit_domains=10,
    transit_routers=100,
    stub_domains=0,
    stub_routers=1,
    between=Links(17, LinkClass("between", (50 * _MS, 100 * _MS))),
    transit=Links(1_970, LinkClass("inside", (1 * _MS, 5 * _MS))),
    access=Links(0, LinkClass("none")),
    stub=Links(0, LinkClass("none")),
)


def kyra(seed: int, brokers: int = 500) -> Physical:
    """Kyra's network, and with 1,000 brokers MEDYM's: each attached to a router by a link of 1 ms."""
    network = transit_stub(KYRA, seed)
    return Physical(*attach(network, place(range(brokers), network, seed), _LAN, seed))


def multicast(seed: int, brokers: int = 88) -> Physical:
    """Brokers are attached to routers of stub domains."""
    network = transit_stub(MULTICAST, seed)
    return Physical(*attach(network, place(range(brokers), network, seed, _stub_routers(network)), _FRINGE, seed))


def hermes(seed: int, brokers: int = 500) -> Physical:
    """Brokers are nodes themselves."""
    network = transit_stub(HERMES, seed)
    return Physical(network, place(range(brokers), network, seed))


def _stub_routers(network: Network) -> range:
    return range(network.transit, network.routers)
