"""Set-up in one step: brokers that know the overlay and each other's control state, as they would after exchanging it.

Views of the overlay are given to each broker directly. Control state is exchanged by the brokers' own channels, but
handed from one end to the other at once: no network, no time. A test holds the tables equal to those built by messages.
"""

from collections import deque
from collections.abc import Iterable

from mercast.protocol.effects import Effect, Send
from mercast.protocol.messages import Control, Record
from mercast.protocol.stimuli import Received, Stimulus
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
    cores = simulator.brokers
    records = [
        Record(broker, cores[broker].incarnation, len(mine), (0,), tuple(sorted(mine.items())))
        for broker, mine in sorted(links.items())
    ]
    _exchange(simulator, [(who, core.begin_with(simulator.now, links[who], records)) for who, core in cores.items()])
    for broker, stimulus in asked:
        _exchange(simulator, [(broker, cores[broker].handle(simulator.now, stimulus))])


def _exchange(simulator: Simulator, begun: Iterable[tuple[int, list[Effect]]]) -> None:
    """Carry control state to and fro until nobody has anything to say; all other effects take their usual way."""
    waiting = deque(begun)
    while waiting:
        broker, effects = waiting.popleft()
        simulator.after(broker, [effect for effect in effects if not isinstance(effect, Send)])
        for effect in effects:
            for message in effect.messages if isinstance(effect, Send) else ():
                if isinstance(message, Control) and message.target in simulator.brokers:
                    core = simulator.brokers[message.target]
                    neighbour = next(iter(core.neighbourhood.neighbours))
                    heard = Received(neighbour, (message,))
                    waiting.append((message.target, core.handle(simulator.now, heard)))
