"""Latency and throughput under load (D-DBR, section V-A; figure 15), each broker its own core.

Matching costs what it cost in the paper: 63% of a core at 3,000 events a minute and 2,000 subscriptions, which is 12.6
ms; a broker that only forwards was 2% busy, 0.4 ms a message. Events are journeys (sim/journeys.py): a few thousand of
them, which then are drawn again and again.

FBR keeps a copy of a subscription for each tree. The paper does not say what an event is compared with: here with each
subscription that the broker keeps, once. The other readings, every copy, and those of the event's own tree alone, are
told beside the result.
"""

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from mercast.content import Filter, Value
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, holds
from mercast.lab.overlays import random_overlay
from mercast.lab.worlds import edges, world
from mercast.overlay.split import Rule
from mercast.protocol.messages import Local
from mercast.protocol.stimuli import Advertise, Publish, Stimulus, Subscribe
from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.sim.costs import Given
from mercast.sim.journeys import Journey, Load, Price, Step, run, travel
from mercast.workloads import Stock

PAPER = Given(per_filter=0.0126 / 2000, per_send=0.0004)
LINK = 0.001
"""Seconds that a link takes."""

BROKERS, DEGREE = 100, 6
FACTOR = 8
"""Throughput of D-DBR over FBR that is asked for at 100 brokers. It comes from the brokers that an event passes: of a
smaller overlay, as much less is asked."""

FASTER = 7
"""In the paper D-DBR's latency is told at so many times FBR's rate: 14,000 and 2,000 a minute. Here too, and with fewer
brokers at as many times less."""

BELOW = 0.8
"""Latency is told at this share of the rate at which FBR's runs away: in the paper 2,000 of 2,500 a minute."""

SHORTER = 0.45
"""Latency of D-DBR over that of FBR that is asked for: in the paper 491 of 1087 ms."""

BEHIND = 0.05
"""Latency has run away if a delivery took longer than this share of the time that there was publishing."""

PRECISE = 1.03
"""The rate at which latency runs away is found within this factor."""


class Variant(NamedTuple):
    """A strategy as it is run."""

    name: str
    strategy: type[Core]
    rule: Rule = "paper"


ALL_FBR = Variant("FBR", FBR)
ALL_DDBR = Variant("D-DBR, paper split", DDBR), Variant("D-DBR, covering split", DDBR, "covering")

Compared: TypeAlias = Callable[[Journey, Step], int]


class Recorded(NamedTuple):
    """Journeys of one variant, and what FBR's steps are compared with in the other readings."""

    journeys: tuple[Journey, ...]
    copies: dict[int, int]
    """By broker: all copies that it keeps."""
    of_tree: dict[tuple[int, int], int]
    """By broker and publisher's broker: the copies of that tree."""
    own: int
    """Subscriptions of a broker's own clients."""


# -- running journeys --------------------------------------------------------------------------------------------------


def as_counted(_: Journey, step: Step) -> float:
    """The price of what the broker really compared."""
    return PAPER.seconds(step.compared, step.sent)


def as_read(compared: Compared) -> Price:
    """The price in another reading."""
    return lambda journey, step: PAPER.seconds(compared(journey, step), step.sent)


def at_rate(journeys: tuple[Journey, ...], rate: float, events: int, price: Price = as_counted) -> Load:
    """Events drawn from these journeys, so many a minute."""
    return run(random.Random(1).choices(journeys, k=events), 60 / rate, price, LINK)


def ran_away(load: Load) -> bool:
    """A broker that is given more work than it can do falls behind by a fixed share of the time; one that can do it
    does not, however long the run."""
    return bool(load.slowest.max() > BEHIND * load.seconds)


def knee(journeys: tuple[Journey, ...], events: int, price: Price = as_counted) -> float:
    """The highest rate that latency does not run away at: doubled until it does, then narrowed down."""
    low, high = 0.0, 1_000.0
    while not ran_away(at_rate(journeys, high, events, price)):
        low, high = high, 2 * high
    while high > PRECISE * low:
        middle = (low + high) / 2
        if ran_away(at_rate(journeys, middle, events, price)):
            high = middle
        else:
            low = middle
    return low


def quote(number: int, attributes: dict[str, Value]) -> Publish:
    return Publish("p", 1_000_000 + number, "quote", attributes, 0)


# -- A1, A2: a general overlay -----------------------------------------------------------------------------------------


@cache
def recorded(variant: Variant, seed: int, brokers: int, each: int, events: int) -> Recorded:
    """Every broker has a publisher and a subscriber with so many subscriptions; events of random ones of them."""
    rng, workload = random.Random(seed), Stock()
    asked: list[tuple[int, Stimulus]] = [(broker, Advertise("p", 1, "quote", Filter())) for broker in range(brokers)]
    for broker in range(brokers):
        asked += [(broker, Subscribe("s", number, "quote", workload.filter(rng))) for number in range(1, each + 1)]
    links = edges(random_overlay(brokers, DEGREE, seed))
    cores = world(variant.strategy, links, asked, rule=variant.rule).brokers
    journeys = tuple(
        travel(cores, rng.randrange(brokers), quote(number, workload.event(rng))) for number in range(events)
    )
    tables = {broker: core for broker, core in cores.items() if isinstance(core, FBR)}
    copies = {broker: len(core.prt) for broker, core in tables.items()}
    of_tree = {
        (broker, source): len(core.asked.get((source, Local("p", 1)), ()))
        for broker, core in tables.items()
        for source in range(brokers)
    }
    return Recorded(journeys, copies, of_tree, each)


def general(variant: Variant, setting: Setting) -> Recorded:
    setting.progress(f"{variant.name}: journeys")
    sizes = setting.size(BROKERS, 25), setting.size(30, 40), setting.size(3_000, 400)
    return recorded(variant, setting.seed, *sizes)


def share(setting: Setting) -> float:
    """Of the paper's brokers."""
    return setting.size(BROKERS, 25) / BROKERS


def length(setting: Setting) -> int:
    """Events in a run."""
    return setting.size(20_000, 2_000)


def curves(setting: Setting) -> Figure:
    """Latency against rate, up to where it runs away and a step beyond; the paper's are in its text."""
    series = [Series("FBR", ((2_000, 1087), (2_500, 2843)), True), Series(ALL_DDBR[0].name, ((14_000, 491),), True)]
    for variant in (ALL_FBR, *ALL_DDBR):
        journeys = general(variant, setting).journeys
        most = knee(journeys, length(setting))
        rates = [most * tenth / 10 for tenth in range(1, 12)]
        points = [(rate, 1e3 * at_rate(journeys, rate, length(setting)).latency) for rate in rates]
        series.append(Series(variant.name, points))
    return Figure("Fig. 15: latency under load", "events a minute", "mean latency, ms", series, log_x=True, log_y=True)


@experiment("A1", "throughput of D-DBR over FBR: 100 brokers, degree 6, 1 advertisement and 30 subscriptions each")
def throughput(setting: Setting) -> Iterator[Row]:
    """Rows for both splits; beside the first, what the readings and the selectivity of events matter."""
    events = length(setting)
    fbr = general(ALL_FBR, setting)
    setting.progress("FBR: raising the rate")
    fbr_most = knee(fbr.journeys, events)
    for variant in ALL_DDBR:
        ddbr = general(variant, setting)
        setting.progress(f"{variant.name}: raising the rate")
        most = knee(ddbr.journeys, events)
        busiest = at_rate(ddbr.journeys, most, events).busiest
        fbr_busiest = at_rate(fbr.journeys, fbr_most, events).busiest
        why = f"FBR {fbr_most:,.0f} a minute (busiest broker {fbr_busiest:.0%}), D-DBR {most:,.0f} ({busiest:.0%})"
        if variant.rule == "paper":
            why += f"; run away: a delivery took longer than {BEHIND:.0%} of the run, {events:,} events"
            why += f"; {readings(fbr, most, events)}; {selective(fbr, ddbr, events)}"
        good = most >= FACTOR * share(setting) * fbr_most
        asked = (
            "8x"
            if setting.scale == "full"
            else f"8x; {FACTOR * share(setting):g}x asked of {share(setting):.0%} of the brokers"
        )
        yield holds(variant.name, asked, f"{most / fbr_most:.1f}x", good, why)


def readings(fbr: Recorded, ddbr_most: float, events: int) -> str:
    """The factor, if FBR compared an event with something else."""
    every = knee(fbr.journeys, events, as_read(lambda _, step: fbr.own + fbr.copies[step.broker]))
    tree = knee(
        fbr.journeys, events, as_read(lambda journey, step: fbr.own + fbr.of_tree[step.broker, journey[0].broker])
    )
    once, mean = fbr.journeys[0][0].compared, sum(fbr.copies.values()) / len(fbr.copies)
    return (
        f"FBR compares with {once:,} subscriptions, each once; with all copies ({mean:,.0f}) {ddbr_most / every:.1f}x, "
        f"with those of the event's tree alone {ddbr_most / tree:.1f}x"
    )


def selective(fbr: Recorded, ddbr: Recorded, events: int) -> str:
    """The factor for the events that most brokers want."""

    def reached(journey: Journey) -> int:
        return sum(step.delivered > 0 for step in journey)

    mean = sum(map(reached, fbr.journeys)) / len(fbr.journeys)
    half = len(fbr.copies) / 2
    popular = [tuple(one for one in some.journeys if reached(one) > half) for some in (fbr, ddbr)]
    slow, fast = (knee(some, events) for some in popular)
    return (
        f"events reach {mean:.0f} brokers; those that reach more than half of all, alone, {fast / slow:.1f}x "
        f"({slow:,.0f} and {fast:,.0f} a minute)"
    )


@experiment("A2", "latency of D-DBR under FBR: the same overlay")
def latency(setting: Setting) -> Iterator[Row | Figure]:
    """FBR somewhat below its limit, as in the paper; D-DBR at the same rate, and at seven times that."""
    events = length(setting)
    fbr = general(ALL_FBR, setting).journeys
    setting.progress("FBR: raising the rate")
    rate = BELOW * knee(fbr, events)
    slow = 1e3 * at_rate(fbr, rate, events).latency
    for variant in ALL_DDBR:
        ddbr = general(variant, setting).journeys
        for times in (1, FASTER * share(setting)):
            setting.progress(f"{variant.name} at {times * rate:,.0f} a minute")
            load = at_rate(ddbr, times * rate, events)
            fast = 1e3 * load.latency
            good = fast <= SHORTER * slow and not ran_away(load)
            why = f"FBR {slow:.0f} ms at {rate:,.0f} a minute, D-DBR {fast:.0f} ms at {times * rate:,.0f}"
            if times == 1 and variant.rule == "paper":
                why += f"; {as_in_the_paper(fbr, ddbr, events)}"
            yield holds(f"{variant.name}, at {times:g}x FBR's rate", "0.45x", f"{fast / slow:.2f}x", good, why)
    setting.progress("curves")
    yield curves(setting)


def as_in_the_paper(fbr: tuple[Journey, ...], ddbr: tuple[Journey, ...], events: int) -> str:
    """At the paper's rates; there 1087, 2843 and 491 ms."""
    slow, slower = (1e3 * at_rate(fbr, rate, events).latency for rate in (2_000, 2_500))
    fast = 1e3 * at_rate(ddbr, 14_000, events).latency
    return f"at the paper's rates FBR {slow:.0f} ms at 2,000 and {slower:.0f} at 2,500, D-DBR {fast:.0f} at 14,000"
