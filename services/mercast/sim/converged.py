"""Set-up in one step: brokers that know the overlay and each other's control state, as they would after exchanging it.

Views of the overlay are given to each broker directly. Control state is exchanged by the brokers' own channels, but
handed from one end to the other at once: no network, no time; what one broker is asked for in a row, it is asked for in
a batch. A test holds the tables equal to those built by messages.
"""

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby

from mercast.overlay.cluster import place_of
from mercast.protocol.effects import Effect, Send
from mercast.protocol.messages import Control, Record
from mercast.protocol.stimuli import Batch, Received, Stimulus
from mercast.routing.core import Core, View
from mercast.sim.addresses import meeting
from mercast.sim.simulator import Simulator


def converge(
    simulator: Simulator,
    edges: Iterable[tuple[int, int]],
    asked: Iterable[tuple[int, Stimulus]] = (),
    latency: float = 0.01,
) -> None:
    """Start the brokers of these links, and let clients ask for things (broker, stimulus) until all is settled. One
    that is asked for something is started even if it has no link."""
    asked = list(asked)
    links: dict[int, dict[int, int]] = {broker: {} for broker, _ in asked}
    for one, other in edges:
        links.setdefault(one, {})[other] = links.setdefault(other, {})[one] = 1
    for broker in sorted(links):
        simulator.start(broker)
        for other in links[broker]:
            if other < broker:
                simulator.join(broker, other, latency)
    with _no_collecting():
        _load(simulator, links, asked)
    refused = [answer.refused for answer in simulator.answers.values() if answer.refused]
    if refused:
        raise ValueError(f"{len(refused)} requests were refused: {refused[0]}")


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Tables only grow here: looking for garbage among millions of live objects would take almost half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load(simulator: Simulator, links: dict[int, dict[int, int]], asked: Iterable[tuple[int, Stimulus]]) -> None:
    cores = simulator.brokers
    begun = []
    for who, (home, *others) in _views(cores, links).items():
        begun.append((who, cores[who].begin_with(simulator.now, *home, *others)))
    _exchange(simulator, begun)
    for broker, stimuli in groupby(asked, key=lambda one: one[0]):
        together = Batch(tuple(stimulus for _, stimulus in stimuli))
        _exchange(simulator, [(broker, cores[broker].handle(simulator.now, together))])


def _views(cores: Mapping[int, Core], links: dict[int, dict[int, int]]) -> dict[int, list[View]]:
    """What each broker begins with in each of its clusters: its links there, and the records of all."""
    records: dict[int, list[Record]] = {}
    views: dict[int, list[View]] = {}
    for who, core in sorted(cores.items()):
        for cluster in core.clusters:
            mine = {other: cost for other, cost in links[who].items() if meeting(core, cores[other]) is cluster}
            known = records.setdefault(cluster.number, [])
            known.append(Record(who, core.incarnation, len(mine), core.settings.clusters, tuple(sorted(mine.items()))))
            views.setdefault(who, []).append((mine, known))
    return views


def _exchange(simulator: Simulator, begun: Iterable[tuple[int, list[Effect]]]) -> None:
    """Carry control state to and fro until nobody has anything to say; all other effects take their usual way."""
    waiting = deque(begun)
    while waiting:
        broker, effects = waiting.popleft()
        simulator.after(broker, [effect for effect in effects if not isinstance(effect, Send)])
        for effect in effects:
            if not isinstance(effect, Send):
                continue
            number = simulator.brokers[broker].clusters[place_of(effect.neighbour)].number
            for message in effect.messages:
                if isinstance(message, Control) and message.target in simulator.brokers:
                    core = simulator.brokers[message.target]
                    place = next(one for one in core.clusters if one.number == number)
                    neighbour = next(iter(place.neighbourhood.neighbours))
                    heard = Received(place.address(neighbour), (message,))
                    waiting.append((message.target, core.handle(simulator.now, heard)))
