"""Tables loaded at once equal those built by messages."""

import random
from dataclasses import replace

import networkx as nx
import pytest
from sim.clusters import SHAPES

from mercast.content import Filter
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.stimuli import Advertise, Publish, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.destination.merc import MERC
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.settings import Settings
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator

QUIET = Settings(timing=Timing(heart_beat=1_000.0), matcher="scan")


def clients(brokers, rng):
    for broker in rng.sample(brokers, len(brokers) // 2):
        yield broker, Advertise("p", 1, rng.choice(["red", "blue"]), Filter.parse(f"x > {rng.randint(0, 9)}"))
    for broker in brokers:
        for request in (2, 3):
            filter = Filter.parse(f"x BETWEEN {rng.randint(0, 5)} AND {rng.randint(5, 9)}")
            yield broker, Subscribe("s", request, rng.choice(["red", "blue", None]), filter)


def tables(core):
    core.validate()
    if isinstance(core, MERC):
        return [table_of(place) for place in core.places]
    own = {name: getattr(core, name) for name in ("r_srt", "srt", "offers", "asked") if hasattr(core, name)}
    matchers = {name: set(getattr(core, name)) for name in ("r_prt", "prt", "kept") if hasattr(core, name)}
    view = core.state.known(), core.state.digest, core.state.routes.sprt
    said = {peer: items for peer, items in core.exchange.said.items() if items}
    told = {peer: items for peer, items in core.exchange.told.items() if items}
    return own, matchers, view, said, told


def table_of(place):
    advertisements, subscriptions = (
        {origin: table.of(origin) for origin in table} for table in (place.advertisements, place.subscriptions)
    )
    state = place.cluster.state
    return advertisements, subscriptions, set(place.matcher), state.known(), state.routes.sprt


COVERING = replace(QUIET, covering=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "settings", "brokers"),
    [
        (DDBR, QUIET, 25),
        (FBR, QUIET, 25),
        (FBR, COVERING, 12),
        (Flooding, QUIET, 12),
        (Unicast, QUIET, 12),
        (StaticHash, QUIET, 12),
    ],
)
def test_loaded_tables_equal_those_built_by_messages(strategy, settings, brokers):
    edges = list(nx.random_regular_graph(4, brokers, seed=7).edges)
    loaded_equals_built(lambda *who: strategy(*who, settings), edges)


@pytest.mark.parametrize("shape", ["backbone", "cycle"])
def test_several_clusters_are_loaded_too(shape):
    homes, edges = SHAPES[shape]
    loaded_equals_built(lambda who, nth: MERC(who, nth, Settings(matcher="scan", clusters=homes[who])), edges)


def loaded_equals_built(make, edges):
    asked = list(clients(sorted({broker for edge in edges for broker in edge}), random.Random(7)))
    built, loaded = (Simulator(make, seed=1) for _ in range(2))
    built.build(edges)
    built.run(10)
    for broker, stimulus in asked:
        built.do(broker, stimulus)
    built.run(40)
    converge(loaded, edges, asked)
    assert {b: tables(core) for b, core in loaded.brokers.items()} == {
        b: tables(core) for b, core in built.brokers.items()
    }
    assert loaded.settled == built.settled
    for simulator in (built, loaded):
        simulator.do(asked[0][0], Publish("p", 9, asked[0][1].type, {"x": 10}, 0))
        simulator.do(asked[0][0], Publish("p", 10, asked[0][1].type, {"x": 5}, 0))
        simulator.run(60)
    assert sorted(d[1:] for d in loaded.deliveries) == sorted(d[1:] for d in built.deliveries)
