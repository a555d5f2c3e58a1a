"""How long destination lists are (D-DBR, section V; figures 16, 19, 20, 21)."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from mercast.lab.clusters import ALIKE, DENSE, ONE_LINK, SPARSE, Crossing, transit_stub
from mercast.lab.experiment import Figure, Row, Series, Setting, experiment, judged, within
from mercast.lab.overlays import Lists, Walk, mean, random_overlay, share_below
from mercast.overlay.split import Rule

HALF = 0.5
NEAR = 0.15
"""Share of the paper's that a mean list may differ by."""

POINTS = 2
"""Percentage points that a share may differ from the paper's."""

LINEAR = 0.99
"""R² from which growth counts as linear."""

LARGE = 700
"""Brokers of the paper's largest network."""

SHARES = (0.1, 0.5, 1.0)
"""Of brokers that are interested, in figures."""

RULES: tuple[Rule, ...] = ("paper", "covering")


Means: TypeAlias = dict[float, tuple[float, float, float]]
"""By the share that is interested: the mean list, and the least and the greatest mean of a broker."""


class Listed(NamedTuple):
    """A strategy's lists on overlays with 100 brokers."""

    name: str
    paper: float
    spread: str
    """Of the means of brokers, in the paper."""
    make: Callable[[int, Rule], Lists]
    """A fresh overlay from a seed."""
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Overlays and events of each, full and quick: MERC's events go through its brokers, and take longer."""


LISTED = (
    Listed(
        "D-DBR", 2.12, "1 to 5", lambda seed, rule: Walk(random_overlay(100, 6, seed), rule), ((10, 1_000), (2, 300))
    ),
    Listed("MERC", 1.18, "1 to 1.6", lambda seed, rule: Crossing(transit_stub(seed), rule), ((5, 100), (1, 30))),
)


@experiment("A5", "mean destination list, 100 brokers, degree 6, every broker publishes; MERC: 10 edges, 90 internal")
def mean_list(setting: Setting) -> Iterator[Row | Figure]:
    by_share, by_broker = [], []
    for listed, rule in product(LISTED, RULES):
        name = f"{listed.name}, {rule} split"
        means, of_brokers = _means(setting, listed, rule)
        by_broker.append(Series(name, list(enumerate(of_brokers, 1))))
        by_share.append(Series(name, [(100 * share, figure[0]) for share, figure in means.items()]))
        ours, least, most = means.pop(HALF)
        others = "".join(f"; {share:.0%} interested: {figure[0]:.2f}" for share, figure in means.items())
        why = f"per broker {least:.2f} to {most:.2f} (paper: {listed.spread}){others}"
        if listed.name == "MERC":
            why += f"; {ALIKE.why}"
        yield within(f"{name}, 50% interested", listed.paper, ours, NEAR, why=why)
    yield from _other_readings(setting, LISTED[-1].paper)
    paper = [
        Series(f"{one.name}: mean of all brokers", [(1, one.paper), (100, one.paper)], paper=True) for one in LISTED
    ]
    yield Figure(
        "Mean list at each broker, one overlay, 50% interested (Fig. 16)",
        *("brokers, by their mean list", "destinations per message"),
        [*by_broker, *paper],
    )
    yield Figure("Mean list by share of interested brokers", "% interested", "destinations per message", by_share)


def _means(setting: Setting, listed: Listed, rule: Rule) -> tuple[Means, list[float]]:
    """Over some overlays; and the mean of each broker of the first one, ascending, if half are interested."""
    figures: dict[float, list[tuple[float, float, float]]] = {}
    first: list[float] = []
    overlays, events = listed.sizes[setting.size(0, 1)]
    for number in range(overlays):
        lists = listed.make(setting.seed + number, rule)
        for share in (0.1, HALF, 1.0) if setting.scale == "quick" else (0.1, 0.25, HALF, 0.75, 1.0):
            setting.progress(f"{listed.name}, {rule} split, overlay {number + 1} of {overlays}, {share:.0%} interested")
            lists.forget()
            lists.send_random(events, share, setting.seed)
            of_brokers = sorted(mean(some) for some in lists.by_broker.values())
            figures.setdefault(share, []).append((mean(lists.lengths), of_brokers[0], of_brokers[-1]))
            if share == HALF and number == 0:
                first = of_brokers
    return {share: tuple(np.mean(some, axis=0)) for share, some in figures.items()}, first


def _other_readings(setting: Setting, paper: float) -> Iterator[Row]:
    """MERC's mean list if its links are elsewhere. Rows of their own, judged alike: the verdict depends on it."""
    for reading in (ONE_LINK, SPARSE, DENSE):
        setting.progress(f"MERC, {reading.name}")
        lists = Crossing(transit_stub(setting.seed, reading))
        lists.send_random(setting.size(100, 30), HALF, setting.seed)
        yield within(f"MERC, {reading.name}, 50% interested", paper, mean(lists.lengths), NEAR, why=reading.why)


@experiment("A9", "mean list, 700 brokers, all interested")
def mean_list_large(setting: Setting) -> Iterator[Row | Figure]:
    events = setting.size(10_000, 40)
    for degree, paper in ((6, 3.8), (9, 3.2)):
        for rule in RULES:
            setting.progress(f"degree {degree}, {rule} split, {events} events")
            walk = Walk(random_overlay(LARGE, degree, setting.seed), rule)
            walk.send_random(events, 1.0, setting.seed)
            yield within(f"degree {degree}, {rule} split", paper, mean(walk.lengths), 0.10)
    yield _by_size(setting)


def _by_size(setting: Setting) -> Figure:
    points: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
    for size in range(100, LARGE + 1, setting.size(100, 300)):
        walk = Walk(random_overlay(size, 6, setting.seed))
        for share in SHARES:
            setting.progress(f"figure: {size} brokers, {share:.0%} interested")
            walk.lengths.clear()
            walk.send_random(setting.size(1_000, 20), share, setting.seed)
            points[share].append((size, mean(walk.lengths)))
    series = [Series(f"{share:.0%} interested", means) for share, means in points.items()]
    paper = Series("100% interested", [(LARGE, 3.8)], paper=True)
    title = "Mean list by size of the network, degree 6 (Fig. 19)"
    return Figure(title, "brokers", "destinations per message", [*series, paper])


@experiment("A10", "distribution of list lengths, 700 brokers, 10% interested")
def distribution(setting: Setting) -> Iterator[Row | Figure]:
    shares, sums = [], []
    for rule in RULES:
        setting.progress(f"{rule} split")
        walk = Walk(random_overlay(LARGE, 6, setting.seed), rule)
        walk.send_random(setting.size(10_000, 150), 0.1, setting.seed)
        for bound, paper in ((5, 95.0), (12, 99.0)):
            ours = 100 * share_below(walk.lengths, bound)
            good = ours >= paper - POINTS
            why = "" if ours > paper else f"{'within' if good else 'by more than'} {POINTS} points"
            yield judged(f"lists below {bound}, {rule} split", f"> {paper:g}%", f"{ours:.1f}%", good, why)
        lengths = range(1, max(walk.lengths) + 1)
        total = walk.lengths.total()
        shares.append(Series(f"{rule} split", [(x, 100 * walk.lengths[x] / total) for x in lengths if walk.lengths[x]]))
        sums.append(Series(f"{rule} split", [(x, 100 * share_below(walk.lengths, x + 1)) for x in lengths]))
    length, share = "destinations in the list", "% of messages"
    yield Figure("Lists by length (Fig. 20)", length, share, shares, log_x=True, log_y=True)
    least = Series("at least", [(4, 95.0), (11, 99.0)], paper=True)
    yield Figure("Lists of at most this length (Fig. 20)", length, share, [*sums, least], log_x=True)


@experiment("A11", "mean list, 100 brokers, degree 3, 50 destinations")
def mean_list_sparse(setting: Setting) -> Iterator[Row]:
    for rule in RULES:
        setting.progress(f"{rule} split")
        means = []
        for number in range(setting.size(20, 4)):
            walk = Walk(random_overlay(100, 3, setting.seed + number), rule)
            walk.send_random(setting.size(500, 100), 0.5, setting.seed)
            means.append(mean(walk.lengths))
        yield within(f"{rule} split", 2.84, float(np.mean(means)), NEAR)


@experiment("A12", "list at the source grows linearly with the network")
def at_the_source(setting: Setting) -> Iterator[Row | Figure]:
    sizes = range(100, LARGE + 1, 100) if setting.scale == "full" else range(60, 301, 60)
    points: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
    for size in sizes:
        walks = [Walk(random_overlay(size, 6, setting.seed + number)) for number in range(setting.size(5, 3))]
        for share in SHARES:
            setting.progress(f"{size} brokers, {share:.0%} interested")
            for walk in walks:
                walk.at_source.clear()
                walk.send_random(setting.size(1_000, 200), share, setting.seed)
            points[share].append((size, float(np.mean([mean(walk.at_source) for walk in walks]))))
    for share, lengths in points.items():
        fit = float(np.corrcoef(np.transpose(lengths))[0, 1] ** 2)
        figures = ", ".join(f"{length:.0f}" for _, length in lengths)
        yield judged(f"{share:.0%} interested", "linear", f"R² {fit:.4f}", fit >= LINEAR, f"means {figures}")
    series = [Series(f"{share:.0%} interested", lengths) for share, lengths in points.items()]
    yield Figure("List at the source by size of the network (Fig. 21)", "brokers", "destinations per message", series)
