"""What brokers store and send to keep their tables (D-DBR, sections III-D and V; figures 17 and 18)."""

import random
from collections.abc import Iterator
from functools import cache

from mercast.content import Filter
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, holds, judged
from mercast.lab.overlays import random_overlay
from mercast.lab.worlds import edges, world
from mercast.overlay.routes import Routes
from mercast.protocol.stimuli import Advertise, LinkDown, Stimulus, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR

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


@experiment("A6", "duplicate messages for 100 advertisements, 100 brokers, degree 6")
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


@cache
def copies(seed: int, share: float, subscriptions: int) -> tuple[float, float]:
    """How often a subscription is stored under FBR and D-DBR, if this share of the brokers advertises what it wants.

    The one at the subscriber's own broker counts if that broker has advertised too: it is the table that its events
    are matched with.
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
    return fbr / count, (remote + local) / count


def by_share(setting: Setting, title: str, y: str, times: int, papers: dict[str, tuple[float, float]]) -> Figure:
    """What is stored, against the share of brokers that advertise; the paper's points are in its text."""
    shares = (0.2, 0.4, 0.6, 0.8, 1.0) if setting.scale == "full" else (0.6, 0.8)
    points: dict[str, list[tuple[float, float]]] = {"FBR": [], "D-DBR": []}
    for share in shares:
        setting.progress(f"{share:.0%} advertise")
        for name, figure in zip(points, copies(setting.seed, share, 1), strict=True):
            points[name].append((100 * share, times * figure))
    series = [Series(name, some) for name, some in points.items()]
    series += [Series(name, [point], paper=True) for name, point in papers.items()]
    return Figure(title, "brokers that advertise, %", y, series)


@experiment("A7", "copies of a subscription when 80% of 100 brokers advertise")
def subscription_copies(setting: Setting) -> Iterator[Row | Figure]:
    fbr, ddbr = copies(setting.seed, 0.8, 1)
    yield judged("D-DBR: one at each matching broker", "80", f"{ddbr:g}", ddbr == 0.8 * BROKERS)
    yield holds("FBR", "221", f"{fbr:.1f}", fbr >= 2 * ddbr, "at least twice as many as D-DBR")
    title = "Fig. 17: how often a subscription is stored"
    yield by_share(setting, title, "copies", 1, {"FBR": (80, 221)})


@experiment("A8", "subscriptions stored per broker, 3,000 in all, 60% of 100 brokers advertise")
def stored(setting: Setting) -> Iterator[Row | Figure]:
    each = setting.size(_EACH, 1)
    setting.progress(f"{each * BROKERS:,} subscriptions")
    fbr, ddbr = (_EACH * figure for figure in copies(setting.seed, 0.6, each))
    note = "" if each == _EACH else "; one subscription per broker, counted thirtyfold"
    yield judged("D-DBR", "1800", f"{ddbr:g}", ddbr == 0.6 * BROKERS * _EACH, note.removeprefix("; "))
    yield holds("FBR", "5005", f"{fbr:.0f}", fbr >= 2 * ddbr, f"at least twice as many as D-DBR{note}")
    title = "Fig. 18: subscriptions stored per broker; one per broker, counted thirtyfold"
    yield by_share(setting, title, "subscriptions", _EACH, {"FBR": (60, 5005), "D-DBR": (60, 1800)})


@experiment("A16", "who is told of a reconfiguration, 100 brokers, degree 6")
def reconfiguration(setting: Setting) -> Iterator[Row]:
    links = edges(random_overlay(BROKERS, DEGREE, setting.seed))
    simulator = world(DDBR, links, [])
    one, other = random.Random(setting.seed).choice(links)
    before = {broker: core.state[one].sequence for broker, core in simulator.brokers.items()}
    sent = simulator.messages_sent
    simulator.do(one, LinkDown(other))
    simulator.do(other, LinkDown(one))
    simulator.run(simulator.now + 5)
    told = sum(core.state[one].sequence > before[broker] for broker, core in simulator.brokers.items())
    messages = simulator.messages_sent - sent
    why = f"{messages} messages crossed a link: both ends of the lost link tell all others"
    yield judged("D-DBR: brokers that get the update", "N = 100", f"{told}", told == BROKERS, why)
