"""Set-up in one step: brokers that know the overlay and each other's control state, as they would after exchanging it.

Views of the overlay are given to each broker directly. Control state is exchanged by the brokers' own channels, but
handed from one end to the other at once: no network, no time; all that brokers are asked for, they are asked for before
any of it is exchanged. A test holds the tables equal to those built by messages.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby

from mercast.overlay.cluster import place_of
from mercast.protocol.effects import Effect, Send
from mercast.protocol.messages import Control, Record
from mercast.protocol.stimuli import Batch, Received, Stimulus
from mercast.routing.core import Core, View
from mercast.sim.simulator import Simulator


def converge(
    simulator: Simulator,
    edges: Iterable[tuple[int, int]],
    asked: Iterable[tuple[int, Stimulus]] = (),
    latency: float = 0.01,
) -> None:
    """Start the brokers of these links, and let clients ask for things (broker, stimulus) until all is settled."""
    links: dict[int, dict[int, int]] = {}
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
    for broker, (home, *others) in _views(simulator, links).items():
        begun.append((broker, cores[broker].begin_with(simulator.now, *home, *others)))
    _exchange(simulator, begun)
    begun = []
    for broker, stimuli in groupby(asked, key=lambda one: one[0]):
        together = Batch(tuple(stimulus for _, stimulus in stimuli))
        begun.append((broker, cores[broker].handle(simulator.now, together)))
    _exchange(simulator, begun)


def _views(simulator: Simulator, links: dict[int, dict[int, int]]) -> dict[int, list[View]]:
    """What each broker knows, cluster by cluster."""
    in_cluster: dict[int, dict[int, dict[int, int]]] = {}
    for broker, core in sorted(simulator.brokers.items()):
        for cluster in core.clusters:
            mine = {
                other: cost
                for other, cost in links[broker].items()
                if place_of(simulator.address(broker, other)) == cluster.place
            }
            in_cluster.setdefault(cluster.number, {})[broker] = mine
    records = {
        number: [_record(simulator.brokers[broker], mine) for broker, mine in members.items()]
        for number, members in in_cluster.items()
    }
    return {
        broker: [(in_cluster[one.number][broker], records[one.number]) for one in core.clusters]
        for broker, core in simulator.brokers.items()
    }


def _record(core: Core, links: dict[int, int]) -> Record:
    return Record(core.me, core.incarnation, len(links), core.settings.clusters, tuple(sorted(links.items())))


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
