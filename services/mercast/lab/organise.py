"""What self-organising reconfiguration saves (D-DBR, section III-C; figure 22).

Every broker counts messages for a cycle, then they take turns in the order of their numbers, again and again until a
whole round changes nothing. A message has one destination, so it is received once by a broker that is interested and
once by each on the way: routing accuracy is messages over hops.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from mercast.lab.experiment import Figure, Row, Series, Setting, Verdict, experiment, holds, judged, within
from mercast.lab.organise_merc import BACKBONE_LINKS, CLUSTERS, LINKS, SIZE, Cluster, clusters
from mercast.lab.overlays import random_overlay
from mercast.overlay.organise import Organiser, Rule, Step, Traffic
from mercast.overlay.routes import Routes
from mercast.overlay.topology import UNREACHABLE, Array, Topology

BROKERS, DEGREE, MOST_RATE = 70, 3, 100
LIMITS = (3, 4, 5, 6)
"""MaxDegree: the paper does not say."""

BEFORE, AFTER = 3.97, 3.51
"""Hops per message; the accuracies 0.252 and 0.285 are one over these."""


class Reading(NamedTuple):
    """A way to read the algorithm."""

    name: str
    rule: Rule
    asks: int = 1
    """How many candidates a broker asks in its turn, until one accepts."""


LITERAL = Reading("the paper's rule", "paper")
"""The one that is judged; the others are shown beside it."""

ASKING_ON = Reading("the paper's rule, asking the next when refused", "paper", BROKERS)
CARRIED = Reading("rule carried", "carried")

Counting: TypeAlias = Callable[[int], Traffic]
"""What a broker counts in a cycle."""


class Outcome(NamedTuple):
    """How an overlay changed until it came to rest."""

    topology: Topology
    hops: list[float]
    """Per message, at the start and after each step."""

    rested: bool
    """If not, it came back to an overlay that it had been before, and would go round for ever."""

    @property
    def links(self) -> int:
        return int(np.count_nonzero(self.topology.trt)) // 2


Outcomes: TypeAlias = dict[int, list[Outcome]]
"""Per MaxDegree, an outcome of each overlay."""


@experiment("A13", "self-organising reconfiguration, 70 brokers, 1 to 100 messages a minute between every two")
def reconfiguration(setting: Setting) -> Iterator[Row | Figure]:
    seeds = range(setting.seed, setting.seed + setting.size(5, 1))
    worlds = [(random_overlay(BROKERS, DEGREE, seed), random_rates(BROKERS, seed)) for seed in seeds]
    starts = [mean_hops(*world) for world in worlds]
    each = ", ".join(f"{start:.2f}" for start in starts)
    why = f"connected G(n, m) of {BROKERS * DEGREE // 2} links, seed by seed: {each}"
    yield within("hops before", BEFORE, float(np.mean(starts)), 0.10, why=why)
    yield within("routing accuracy before", 0.252, 1 / float(np.mean(starts)), 0.10, why="1 / hops")
    series = [Series("before", [(limit, float(np.mean(starts))) for limit in LIMITS])]
    series.append(Series("after, MaxDegree not stated", [(limit, AFTER) for limit in LIMITS], paper=True))
    for reading in (LITERAL, CARRIED) if setting.scale == "quick" else (LITERAL, ASKING_ON, CARRIED):
        outcomes = {}
        for limit in LIMITS[: setting.size(len(LIMITS), 2)]:
            setting.progress(f"{reading.name}, MaxDegree {limit}")
            outcomes[limit] = [organise(*world, limit, reading.rule, reading.asks) for world in worlds]
        if reading == LITERAL:
            yield from savings(outcomes)
        yield calm(reading, outcomes)
        after = [(limit, float(np.mean([one.hops[-1] for one in some]))) for limit, some in outcomes.items()]
        series.append(Series(f"after, {reading.name}", after))
    yield from in_clusters(setting, [rates for _, rates in worlds], series)
    yield Figure("Fig. 22: hops per message", "MaxDegree", "hops", series)


def in_clusters(setting: Setting, rates: Sequence[Array], series: list[Series]) -> Iterator[Row]:
    """The same messages in a network of MERC, of which the paper has no figures."""
    networks = [clusters(some, seed) for seed, some in enumerate(rates, setting.seed)]
    for reading in (LITERAL, CARRIED):
        outcomes: dict[int, list[Outcome]] = {}
        hops: dict[int, tuple[float, float]] = {}
        for limit in LIMITS[: setting.size(len(LIMITS), 2)]:
            setting.progress(f"MERC, {reading.name}, MaxDegree {limit}")
            each = [[organise(*one, limit, reading.rule) for one in some] for some in networks]
            outcomes[limit] = [outcome for some in each for outcome in some]
            hops[limit] = _across(networks, each, rates, 0), _across(networks, each, rates, -1)
        yield _shortened(f"MERC, hops, {reading.name}", hops, -1)
        accuracy = {limit: (1 / before, 1 / after) for limit, (before, after) in hops.items()}
        yield _shortened(f"MERC, routing accuracy, {reading.name}", accuracy, 1)
        yield calm(reading, outcomes, "MERC, every cluster ")
        series.append(Series(f"MERC, after, {reading.name}", [(limit, after) for limit, (_, after) in hops.items()]))
    before = next(iter(hops.values()))[0]
    series.append(Series("MERC, before", [(limit, before) for limit in LIMITS]))


def _across(
    networks: Sequence[Sequence[Cluster]], each: Sequence[Sequence[Outcome]], rates: Sequence[Array], step: int
) -> float:
    """Hops per message through all clusters on its way, at the start or at the end."""
    hops = [
        sum(outcome.hops[step] * one.rates.sum() for one, outcome in zip(network, outcomes, strict=True)) / some.sum()
        for network, outcomes, some in zip(networks, each, rates, strict=True)
    ]
    return float(np.mean(hops))


def _shortened(name: str, figures: dict[int, tuple[float, float]], better: int) -> Row:
    """Holds if it is better afterwards, whatever MaxDegree is."""
    before = next(iter(figures.values()))[0]
    after = [after for _, after in figures.values()]
    ours = f"{before:.3g} → {' / '.join(f'{one:.3g}' for one in after)}"
    why = (
        f"no figure in the paper; {CLUSTERS} clusters of {SIZE}, one edge each, {LINKS} links in each and "
        f"{BACKBONE_LINKS} in the backbone; after with MaxDegree {' / '.join(map(str, figures))}"
    )
    return holds(name, "no figure", ours, all((one - before) * better > 0 for one in after), why)


def savings(outcomes: Outcomes) -> Iterator[Row]:
    before = float(np.mean([one.hops[0] for some in outcomes.values() for one in some]))
    after = {limit: float(np.mean([one.hops[-1] for one in some])) for limit, some in outcomes.items()}
    saved = {limit: 100 * (1 - hops / before) for limit, hops in after.items()}
    accuracy = {limit: 1 / hops for limit, hops in after.items()}
    yield _spanned("hops saved, the paper's rule", 100 * (1 - AFTER / BEFORE), saved, "%")
    yield _spanned("routing accuracy after, the paper's rule", 0.285, accuracy)


def _spanned(name: str, paper: float, ours: dict[int, float], unit: str = "") -> Row:
    """Holds if the paper's figure lies in the range that the limits span."""
    least, most = min(ours.values()), max(ours.values())
    below, above = ([limit for limit in ours if (ours[limit] < paper) == side] for side in (True, False))
    why = f"MaxDegree is not stated: less than the paper with {below or 'none'}, more with {above or 'none'}"
    verdict: Verdict = "holds" if least <= paper <= most else "differs"
    return Row(name, f"{paper:.3g}{unit}", f"{least:.3g}{unit} to {most:.3g}{unit}", verdict, why)


def calm(reading: Reading, outcomes: Outcomes, where: str = "") -> Row:
    """Nobody was ever cut off, and all came to rest; by the rule `carried`, no step made paths longer."""
    every = [outcome for some in outcomes.values() for outcome in some]
    steps = [after - before for outcome in every for before, after in pairwise(outcome.hops)]
    longer = sum(step > 0 for step in steps)
    rested = sum(outcome.rested for outcome in every)
    connected = all(max(outcome.hops) != UNREACHABLE for outcome in every)
    good = connected and rested == len(every) and (reading.rule == "paper" or longer == 0)
    ours = f"{rested} of {len(every)}{'' if connected else ', not always connected'}"
    each = "; ".join(f"{limit}: {_figures(some)}" for limit, some in outcomes.items())
    why = f"{longer} of {len(steps)} steps made all paths together longer; saved by MaxDegree {each}"
    name = f"{where}at rest and never disconnected, {reading.name}"
    return holds(name, "no figure", ours, good, why) if where else judged(name, "not said", ours, good, why)


def _figures(outcomes: list[Outcome]) -> str:
    saved = [100 * (1 - outcome.hops[-1] / outcome.hops[0]) for outcome in outcomes]
    hops, links = np.mean([(outcome.hops[-1], outcome.links) for outcome in outcomes], axis=0)
    return f"{np.mean(saved):.1f}% ({min(saved):.1f} to {max(saved):.1f}), {hops:.2f} hops, {links:.0f} links"


def random_rates(brokers: int, seed: int) -> Array:
    """Messages per minute between every two brokers, as many each way: so these are the messages of two minutes."""
    rng = random.Random(seed)
    rates = np.zeros((brokers, brokers), np.int64)
    for one in range(brokers):
        for other in range(one):
            rates[one, other] = rates[other, one] = rng.randint(1, MOST_RATE)
    return rates


def mean_hops(topology: Topology, rates: Array) -> float:
    sent = rates > 0
    return float((rates[sent] * topology.distances(topology.brokers)[sent]).sum() / rates.sum())


def organise(topology: Topology, rates: Array, most_links: int, rule: Rule, asks: int = 1) -> Outcome:
    """Take turns until nobody has anything to change."""
    hops = [mean_hops(topology, rates)]
    known = {topology.trt.tobytes()}
    counting = _collect(topology, rates, rule)
    while True:
        before = topology
        for broker in topology.brokers:
            step = turn(broker, topology, counting, most_links, rule, asks)
            if step is not None:
                topology = topology.changed([step.opened], step.closed)
                hops.append(mean_hops(topology, rates))
                counting = _collect(topology, rates, rule)
        if topology is before or topology.trt.tobytes() in known:
            return Outcome(topology, hops, rested=topology is before)
        known.add(topology.trt.tobytes())


def turn(broker: int, topology: Topology, counting: Counting, most_links: int, rule: Rule, asks: int) -> Step | None:
    """A broker asks its best candidates, so many at most, until one accepts."""
    asker = Organiser(broker, topology, counting(broker), most_links, rule)
    for request in islice(asker.requests(), asks):
        candidate = Organiser(request.candidate, topology, counting(request.candidate), most_links, rule)
        step = candidate.answer(request)
        if step is not None:
            return step
    return None


def _collect(topology: Topology, rates: Array, rule: Rule) -> Counting:
    return sent_and_received(topology, rates) if rule == "paper" else handled(topology, rates)


def sent_and_received(topology: Topology, rates: Array) -> Counting:
    """Brokers count their own messages, which is all that the paper's rule asks for."""

    def traffic(me: int) -> Traffic:
        own = np.zeros_like(rates)
        place = topology.place[me]
        own[place], own[:, place] = rates[place], rates[:, place]
        return _traffic(topology, own)

    return traffic


def handled(topology: Topology, rates: Array) -> Counting:
    """Brokers count all messages that they send, receive and pass on, by their routes."""
    next_places = np.array([[topology.place[hop] for hop in Routes(topology, me).sprt] for me in topology.brokers])
    places = np.arange(len(topology.brokers))
    paths = [np.broadcast_to(places[:, None], rates.shape)]
    while (paths[-1] != places).any():
        paths.append(next_places[paths[-1], places])
    return lambda me: _traffic(topology, rates * np.any([at == topology.place[me] for at in paths], axis=0))


def _traffic(topology: Topology, counts: Array) -> Traffic:
    brokers = topology.brokers
    return Traffic({(brokers[one], brokers[other]): int(counts[one, other]) for one, other in np.argwhere(counts)})
