"""Set-up in one step: brokers that know the overlay and each other's control state, as they would after exchanging it.

Views of the overlay are given to each broker directly. Control state is exchanged by the brokers' own channels, but
handed from one end to the other at once: no network, no time; all that brokers are asked for, they are asked for before
any of it is exchanged. A test holds the tables equal to those built by messages.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby

from mercast.overlay.cluster import place_of
from mercast.protocol.effects import Effect, Send
from mercast.protocol.messages import Control, Record
from mercast.protocol.stimuli import Batch, Received, Stimulus
from mercast.routing.core import Core
from mercast.routing.overlaid import View
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
    begun = []
    for broker, stimuli in groupby(asked, key=lambda one: one[0]):
        together = Batch(tuple(stimulus for _, stimulus in stimuli))
        begun.append((broker, cores[broker].handle(simulator.now, together)))
    _exchange(simulator, begun)


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


def _exchange(simulator: Simulator, begun: list[tuple[int, list[Effect]]]) -> None:
    """Carry control state to and fro until nobody has anything to say; all other effects take their usual way. What
    all the others say to a broker in a cluster it hears at once: then it has much to say at once, too."""
    while begun:
        heard: dict[tuple[int, int], list[Control]] = {}
        for broker, effects in begun:
            simulator.after(broker, [effect for effect in effects if not isinstance(effect, Send)])
            for send in [effect for effect in effects if isinstance(effect, Send)]:
                number = simulator.brokers[broker].clusters[place_of(send.neighbour)].number
                for message in send.messages:
                    if isinstance(message, Control) and message.target in simulator.brokers:
                        heard.setdefault((message.target, number), []).append(message)
        begun = []
        for (target, number), messages in heard.items():
            core = simulator.brokers[target]
            received = Received(_a_neighbour(core, number), tuple(messages))
            begun.append((target, core.handle(simulator.now, received)))


def _a_neighbour(core: Core, number: int) -> int:
    """Whoever brings a message in a cluster: it is all the same."""
    cluster = next(one for one in core.clusters if one.number == number)
    return cluster.address(next(iter(cluster.neighbourhood.neighbours)))
