"""Simulated overlays for experiments: converged at once, quiet but for what the experiment does."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from mercast.overlay.channel import Patience
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import Rule
from mercast.overlay.topology import Topology
from mercast.protocol.stimuli import Stimulus
from mercast.routing.core import Core
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.costs import Cost, free
from mercast.sim.simulator import Lay, Simulator

_QUIET = Settings(timing=Timing(heart_beat=float("inf")), patience=Patience(compare_every=float("inf")))


def edges(topology: Topology) -> list[tuple[int, int]]:
    return [(one, other) for one in topology.brokers for other in topology.neighbours(one) if one < other]


def world(
    strategy: type[Core],
    links: Iterable[tuple[int, int]],
    asked: Iterable[tuple[int, Stimulus]],
    cost: Cost = free,
    latency: float = 0.001,
    lay: Lay | None = None,
    rule: Rule = "paper",
    clusters: Mapping[int, tuple[int, ...]] | None = None,
    matcher: Literal["index", "scan"] = "index",
) -> Simulator:
    """An overlay whose clients have asked for things, all settled; `clusters` says in which ones brokers are."""
    settings = replace(_QUIET, rule=rule, matcher=matcher)

    def make(broker: int, incarnation: int) -> Core:
        return strategy(broker, incarnation, replace(settings, clusters=clusters[broker]) if clusters else settings)

    simulator = Simulator(make, cost=cost, lay=lay)
    converge(simulator, links, asked, latency)
    return simulator
