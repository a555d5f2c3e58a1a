"""How long destination lists are (D-DBR, section V; figures 16, 19, 20, 21)."""

from collections.abc import Iterator

import numpy as np

from mercast.lab.experiment import Row, Setting, experiment, judged, within
from mercast.lab.overlays import Walk, mean, random_overlay, share_below
from mercast.overlay.split import Rule

HALF = 0.5
POINTS = 2
"""Percentage points that a share may differ from the paper's."""

LINEAR = 0.99
"""R² from which growth counts as linear."""

RULES: tuple[Rule, ...] = ("paper", "covering")


@experiment("A5", "mean destination list, 100 brokers, degree 6, every broker publishes")
def mean_list(setting: Setting) -> Iterator[Row]:
    for rule in RULES:
        means = {}
        for share in (HALF,) if setting.scale == "quick" else (0.1, 0.25, HALF, 0.75, 1.0):
            setting.progress(f"{rule} split, {share:.0%} interested")
            figures = []
            for number in range(setting.size(10, 2)):
                walk = Walk(random_overlay(100, 6, setting.seed + number), rule)
                walk.send_random(setting.size(1_000, 300), share, setting.seed)
                of_brokers = [mean(lists) for lists in walk.by_broker.values()]
                figures.append((mean(walk.lengths), min(of_brokers), max(of_brokers)))
            means[share] = np.mean(figures, axis=0)
        ours, least, most = means.pop(HALF)
        others = "".join(f"; {share:.0%} interested: {figure[0]:.2f}" for share, figure in means.items())
        why = f"per broker {least:.2f} to {most:.2f} (paper: 1 to 5){others}"
        yield within(f"D-DBR, {rule} split, 50% interested", 2.12, float(ours), 0.15, why=why)


@experiment("A9", "mean list, 700 brokers, all interested")
def mean_list_large(setting: Setting) -> Iterator[Row]:
    events = setting.size(10_000, 40)
    for degree, paper in ((6, 3.8), (9, 3.2)):
        for rule in RULES:
            setting.progress(f"degree {degree}, {rule} split, {events} events")
            walk = Walk(random_overlay(700, degree, setting.seed), rule)
            walk.send_random(events, 1.0, setting.seed)
            yield within(f"degree {degree}, {rule} split", paper, mean(walk.lengths), 0.10)


@experiment("A10", "distribution of list lengths, 700 brokers, 10% interested")
def distribution(setting: Setting) -> Iterator[Row]:
    for rule in RULES:
        walk = Walk(random_overlay(700, 6, setting.seed), rule)
        walk.send_random(setting.size(10_000, 150), 0.1, setting.seed)
        for bound, paper in ((5, 95.0), (12, 99.0)):
            ours = 100 * share_below(walk.lengths, bound)
            good = ours >= paper - 2
            yield Row(
                f"lists below {bound}, {rule} split", f"> {paper:g}%", f"{ours:.1f}%", "match" if good else "differs"
            )


@experiment("A11", "mean list, 100 brokers, degree 3, 50 destinations")
def mean_list_sparse(setting: Setting) -> Iterator[Row]:
    for rule in RULES:
        means = []
        for number in range(setting.size(20, 4)):
            walk = Walk(random_overlay(100, 3, setting.seed + number), rule)
            walk.send_random(setting.size(500, 100), 0.5, setting.seed)
            means.append(mean(walk.lengths))
        yield within(f"{rule} split", 2.84, float(np.mean(means)), 0.15)


@experiment("A12", "list at the source grows linearly with the network")
def at_the_source(setting: Setting) -> Iterator[Row]:
    sizes = range(100, 701, 100) if setting.scale == "full" else range(60, 301, 60)
    for share in (0.1, 0.5, 1.0):
        lengths = []
        for size in sizes:
            setting.progress(f"{share:.0%} interested, {size} brokers")
            walks = [Walk(random_overlay(size, 6, setting.seed + number)) for number in range(setting.size(5, 3))]
            for walk in walks:
                walk.send_random(setting.size(1_000, 200), share, setting.seed)
            lengths.append(float(np.mean([mean(walk.at_source) for walk in walks])))
        fit = float(np.corrcoef(list(sizes), lengths)[0, 1] ** 2)
        figures = ", ".join(f"{length:.0f}" for length in lengths)
        yield judged(f"{share:.0%} interested", "linear", f"R² {fit:.4f}", fit >= LINEAR, f"means {figures}")
