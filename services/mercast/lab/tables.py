"""What brokers store and send to keep their tables (D-DBR and MERC, sections III-D and V; figures 17 and 18)."""

import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from mercast.content import Filter
from mercast.content.interest import Subscription
from mercast.lab.clusters import BACKBONE, EDGES, Clusters, transit_stub
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, holds, judged, within
from mercast.lab.overlays import random_overlay
from mercast.lab.worlds import edges, world
from mercast.overlay.routes import Routes
from mercast.protocol.messages import Origin
from mercast.protocol.stimuli import Advertise, LinkDown, Stimulus, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.destination.place import Place
from mercast.routing.filtering.fbr import FBR
from mercast.sim.addresses import address, meeting
from mercast.sim.simulator import Simulator

BROKERS, DEGREE = 100, 6
MOST_BYTES = 11_000

_MANY = 30_000
"""Duplicate advertisements that the claim asks for at least."""

_EACH = 30
"""Subscriptions at each broker."""


@experiment("A15", "memory of TRT and SPRT at 100 brokers")
def memory(setting: Setting) -> Iterator[Row]:
    topology = random_overlay(BROKERS, DEGREE, setting.seed)
    sprt = Routes(topology, 0).sprt
    size = topology.trt.nbytes + len(sprt) * sprt.itemsize
    yield judged("TRT + SPRT", "11 kB", f"{size / 1000:.1f} kB", size <= MOST_BYTES)


@experiment("A6", "duplicate messages for 100 advertisements, 100 brokers, degree 6; MERC: 10 edges, 90 internal")
def advertisements(setting: Setting) -> Iterator[Row]:
    links = edges(random_overlay(BROKERS, DEGREE, setting.seed))
    everybody = [(broker, Advertise("p", 1, "quote", Filter())) for broker in range(BROKERS)]
    setting.progress("FBR")
    fbr = world(FBR, links, everybody)
    duplicates = sum(core.duplicates for core in fbr.brokers.values() if isinstance(core, FBR))
    yield holds("FBR", "> 38,000", f"{duplicates:,}", duplicates > _MANY)
    setting.progress("D-DBR")
    ddbr = world(DDBR, links, everybody)
    told = sum(len(items) for core in ddbr.brokers.values() for items in core.exchange.told.values())
    stored = sum(
        len(table) for core in ddbr.brokers.values() if isinstance(core, DDBR) for table in core.r_srt.values()
    )
    yield judged("D-DBR", "0", f"{told - stored}", told == stored == BROKERS * (BROKERS - 1))
    setting.progress("MERC")
    clusters = transit_stub(setting.seed)
    merc = world(MERC, clusters.links, everybody, clusters=clusters.homes).brokers
    told = sum(len(items) for core in merc.values() for items in core.exchange.told.values())
    known = sum(len(_origins(core.places)) for core in merc.values() if isinstance(core, MERC))
    why = "10 edges, 90 internal brokers; edges carry each advertisement across, and nobody is told of one twice"
    yield judged("MERC", "0", f"{told - known}", told == known == BROKERS * (BROKERS - 1), why)


def _origins(places: Iterable[Place]) -> set[Origin]:
    """Advertisements of others that a broker knows of, in whichever cluster."""
    return {origin for place in places for origin in place.advertisements if origin[0] != place.cluster.state.me}


class Copies(NamedTuple):
    """How often a subscription is stored, on average."""

    fbr: float
    ddbr: float
    merc: float
    laid: float
    """MERC, with what edges lay once more for the cluster that they bring it into: there the events of their own
    clients are matched with it."""


@cache
def copies(seed: int, share: float, subscriptions: int) -> Copies:
    """If this share of the brokers advertises what is wanted.

    The one at the subscriber's own broker counts if that broker has advertised too, or is an edge: it is the table that
    events there are matched with.
    """
    links = edges(random_overlay(BROKERS, DEGREE, seed))
    advertisers = random.Random(seed).sample(range(BROKERS), round(share * BROKERS))
    asked: list[tuple[int, Stimulus]] = [(broker, Advertise("p", 1, "wanted", Filter())) for broker in advertisers]
    asked += [
        (broker, Advertise("p", 1, "unwanted", Filter())) for broker in range(BROKERS) if broker not in advertisers
    ]
    for broker in range(BROKERS):
        asked += [(broker, Subscribe("s", 2 + number, "wanted", Filter())) for number in range(subscriptions)]
    count = BROKERS * subscriptions
    fbr = sum(len(core.prt) for core in world(FBR, links, asked).brokers.values() if isinstance(core, FBR))
    brokers = world(DDBR, links, asked).brokers
    remote = sum(len(core.r_prt) for core in brokers.values() if isinstance(core, DDBR))
    local = sum(len(brokers[broker].clients.subscriptions) for broker in advertisers)
    merc, laid = _by_merc(transit_stub(seed), asked, {*advertisers, *range(EDGES)})
    return Copies(fbr / count, (remote + local) / count, merc / count, laid / count)


def _by_merc(clusters: Clusters, asked: list[tuple[int, Stimulus]], matching: set[int]) -> tuple[int, int]:
    """Subscriptions that MERC's brokers keep: those heard of in each cluster, and of their own clients if they match
    events with them; and the same with what edges lay for the cluster that they bring it into."""
    heard = laid = local = 0
    for broker, core in world(MERC, clusters.links, asked, clusters=clusters.homes).brokers.items():
        assert isinstance(core, MERC)
        local += len(core.clients.subscriptions) if broker in matching else 0
        heard += sum(isinstance(value, Subscription) for _, _, value in core.heard_items())
        laid += sum(len(place.matcher) for place in core.places)
    return heard + local, laid + local


def by_share(setting: Setting, title: str, y: str, times: int, papers: dict[str, tuple[float, float]]) -> Figure:
    """What is stored, against the share of brokers that advertise; the paper's points are in its text."""
    shares = (0.2, 0.4, 0.6, 0.8, 1.0) if setting.scale == "full" else (0.6, 0.8)
    points: dict[str, list[tuple[float, float]]] = {"FBR": [], "D-DBR": [], "MERC": []}
    for share in shares:
        setting.progress(f"{share:.0%} advertise")
        for name, figure in zip(points, copies(setting.seed, share, 1)[:3], strict=True):
            points[name].append((100 * share, times * figure))
    series = [Series(name, some) for name, some in points.items()]
    series += [Series(name, [point], paper=True) for name, point in papers.items()]
    return Figure(title, "brokers that advertise, %", y, series)


@experiment("A7", "copies of a subscription when 80% of 100 brokers advertise")
def subscription_copies(setting: Setting) -> Iterator[Row | Figure]:
    fbr, ddbr, _, _ = copies(setting.seed, 0.8, 1)
    yield judged("D-DBR: one at each matching broker", "80", f"{ddbr:g}", ddbr == 0.8 * BROKERS)
    yield holds("FBR", "221", f"{fbr:.1f}", fbr >= 2 * ddbr, "at least twice as many as D-DBR")
    title = "Fig. 17: how often a subscription is stored"
    yield by_share(setting, title, "copies", 1, {"FBR": (80, 221)})


@experiment("A8", "subscriptions stored per broker, 3,000 in all, 60% of 100 brokers advertise")
def stored(setting: Setting) -> Iterator[Row | Figure]:
    each = setting.size(_EACH, 1)
    setting.progress(f"{each * BROKERS:,} subscriptions")
    fbr, ddbr, merc, laid = (_EACH * figure for figure in copies(setting.seed, 0.6, each))
    note = "" if each == _EACH else "; one subscription per broker, counted thirtyfold"
    yield judged("D-DBR", "1800", f"{ddbr:g}", ddbr == 0.6 * BROKERS * _EACH, note.removeprefix("; "))
    yield holds("FBR", "5005", f"{fbr:.0f}", fbr >= 2 * ddbr, f"at least twice as many as D-DBR{note}")
    yield within("MERC", 1945, merc, 0.10, why=f"which brokers advertise is drawn, edges like others{note}")
    why = (
        "edges keep what they bring into a cluster for events of their own clients, too; whether the paper counts that"
    )
    yield within("MERC, that of edges counted twice", 1945, laid, 0.10, why=f"{why} is not said{note}")
    title = "Fig. 18: subscriptions stored per broker; one per broker, counted thirtyfold"
    yield by_share(setting, title, "subscriptions", _EACH, {"FBR": (60, 5005), "D-DBR": (60, 1800), "MERC": (60, 1945)})


@experiment("A16", "who is told of a reconfiguration, 100 brokers, degree 6; MERC: 10 edges, 90 internal")
def reconfiguration(setting: Setting) -> Iterator[Row]:
    rng = random.Random(setting.seed)
    links = edges(random_overlay(BROKERS, DEGREE, setting.seed))
    told = update(world(DDBR, links, []), rng.choice(links))
    why = f"{told.messages} messages crossed a link: both ends of the lost link tell all others"
    yield judged("D-DBR: brokers that get the update", "N = 100", f"{told.here}", told.here == BROKERS, why)
    clusters = transit_stub(setting.seed)
    for number, where in ((1 + rng.randrange(EDGES), "a cluster"), (BACKBONE, "the backbone")):
        members = set(clusters.members(number))
        lost = rng.choice([link for link in clusters.links if members.issuperset(link)])
        told = update(world(MERC, clusters.links, [], clusters=clusters.homes), lost)
        why = f"{told.messages} messages crossed a link; {told.elsewhere} brokers of other clusters were told"
        good = told.here == BROKERS // EDGES and told.elsewhere == 0
        yield judged(f"MERC: brokers that get the update, link in {where}", "N/M = 10", f"{told.here}", good, why)


class Told(NamedTuple):
    """Of a link that is lost."""

    here: int
    """Brokers that have the news in its cluster, both of its ends included."""
    elsewhere: int
    """Views of other clusters that have changed."""
    messages: int


def update(simulator: Simulator, lost: tuple[int, int]) -> Told:
    one, other = (simulator.brokers[broker] for broker in lost)
    number, before, sent = meeting(one, other).number, _views(simulator), simulator.messages_sent
    simulator.do(one.me, LinkDown(address(one, other)))
    simulator.do(other.me, LinkDown(address(other, one)))
    simulator.run(simulator.now + 5)
    now = _views(simulator)
    changed = [at for (_, at), view in now.items() if view == now[one.me, number] != before[one.me, number]]
    elsewhere = sum(view != before[who, at] for (who, at), view in now.items() if at != number)
    return Told(changed.count(number), elsewhere, simulator.messages_sent - sent)


def _views(simulator: Simulator) -> dict[tuple[int, int], bytes]:
    """What each broker knows of each of its clusters; equal if they know the same."""
    return {
        (broker, cluster.number): cluster.state.digest
        for broker, core in simulator.brokers.items()
        for cluster in core.clusters
    }
