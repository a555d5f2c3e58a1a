"""Brokers, links and clients on virtual time.

Things happen in the order (time, priority, sequence); all chance comes from one seeded source; so the same seed gives
the same run, to the byte. Links (sim/links.py) are connections as TCP has them: in order, and lost whole. A broker
takes no time to work, unless costs (sim/costs.py) are given: then it does one thing after the other.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from mercast.overlay.cluster import NUMBER
from mercast.protocol import stimuli
from mercast.protocol.effects import (
    UNWANTED,
    Answer,
    CloseLink,
    Deliver,
    Effect,
    OpenLink,
    Receipts,
    Reported,
    Send,
    Settled,
    Tap,
)
from mercast.protocol.stimuli import Stimulus
from mercast.routing import recording
from mercast.routing.core import Core
from mercast.sim.addresses import address
from mercast.sim.costs import Cost, free
from mercast.sim.links import QUIET, Clock, Link, Noise, count_of

ARRIVALS, DEADLINES = 0, 1
"""Priorities: what arrives at the very moment of a deadline is in time."""


Lay: TypeAlias = Callable[[int, int], Link]
"""Gives the link from one broker to another, such as one over a physical network (sim/physical.py)."""

_LATENCY = 0.01
"""Seconds, of links that brokers open."""


class Delivery(NamedTuple):
    time: float
    broker: int
    client: str
    event: Any
    subscriptions: tuple[int, ...]


class Simulator:
    def __init__(
        self,
        make: Callable[[int, int], Core],
        seed: int = 0,
        reconnect_after: float = 0.5,
        cost: Cost = free,
        lay: Lay | None = None,
        record: Mapping[int, Callable[[str], object]] | None = None,
    ) -> None:
        """`make(broker, incarnation)` gives a fresh broker; `lay` gives the links in place of those asked for; `record`
        says where the lines of recorded brokers go."""
        self.now = 0.0
        self.rng = random.Random(seed)
        self.brokers: dict[int, Core] = {}
        self.deliveries: list[Delivery] = []
        self.answers: dict[tuple[int, str, int], Answer] = {}
        self.receipts: dict[tuple[int, str, int], int] = {}
        """The destinations of each publish that was accepted."""
        self.settled: dict[tuple[int, str, int], Settled] = {}
        self.rows: list[tuple[int, Any]] = []
        self.reports: list[tuple[int, Reported]] = []
        self.messages_sent = 0
        """Events that travel together count one each, as in the papers."""
        self.validate = False
        """Check every broker after every stimulus."""
        self._make = make
        self._cost = cost
        self._lay = lay
        self._record = record or {}
        self._clocks: dict[int, Clock] = {}
        self._queues: dict[int, deque[Stimulus]] = {}
        """What waits at brokers that are at work."""
        self.busy: dict[int, float] = {}
        """Seconds that each broker has worked."""
        self._reconnect_after = reconnect_after
        self._links: dict[tuple[int, int], Link] = {}
        self._built: set[tuple[int, int]] = set()
        """Those that a broker has when it starts."""
        self._unwanted: set[tuple[int, int]] = set()
        """Those that brokers have closed for good; each both ways."""
        self._connected: dict[tuple[int, int], int] = {}
        """Ends that think they are connected, with the number of the connection."""
        self._incarnations: dict[int, int] = {}
        self._paused: set[int] = set()
        self._held: dict[int, list[Callable[[], None]]] = {}
        self._agenda: list[tuple[float, int, int, Callable[[], None]]] = []
        self._order = count()
        self._tick_at: dict[int, float] = {}
        self._addresses: dict[tuple[int, int], int] = {}
        """Of neighbours, as edge brokers know them."""

    # -- time --------------------------------------------------------------------------------------------------------

    def at(self, time: float, action: Callable[[], None], priority: int = ARRIVALS) -> None:
        heapq.heappush(self._agenda, (max(time, self.now), priority, next(self._order), action))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, _, action = heapq.heappop(self._agenda)
            action()
        self.now = max(self.now, until)

    # -- building ----------------------------------------------------------------------------------------------------

    def start(self, broker: int) -> None:
        """Start a broker, or start it again after a crash."""
        if broker in self.brokers:
            raise ValueError(f"broker {broker} is running: crash it first")
        self._incarnations[broker] = self._incarnations.get(broker, 0) + 1
        self.brokers[broker] = self._make(broker, self._incarnations[broker])
        self._tick_at[broker] = float("inf")
        if broker in self._record:
            self._record[broker](recording.header(self.brokers[broker]))
        for one, other in list(self._links):
            if one == broker:
                if (one, other) in self._built:
                    self._unwanted -= {(one, other), (other, one)}
                self._connect_soon(one, other)

    def link(self, one: int, other: int, latency: float = 0.01, bandwidth: float = float("inf"), cost: int = 1) -> None:
        """Bandwidth in bytes per second, each way; the cost is what both ends are told when the link comes up."""
        self._lay_both_ways(one, other, latency, bandwidth, cost)
        self._built |= {(one, other), (other, one)}
        self._connect_soon(one, other)

    def build(self, edges: Iterable[tuple[int, int]], latency: float = 0.01) -> None:
        edges = list(edges)
        for broker in sorted({broker for edge in edges for broker in edge} - self.brokers.keys()):
            self.start(broker)
        for one, other in edges:
            self.link(one, other, latency)

    def join(self, one: int, other: int, latency: float, bandwidth: float = float("inf")) -> None:
        """Link two brokers that know of it already (sim/converged.py)."""
        self._lay_both_ways(one, other, latency, bandwidth)
        self._built |= {(one, other), (other, one)}
        self._connected[one, other] = self._connected[other, one] = next(self._order)

    def _lay_both_ways(self, one: int, other: int, latency: float, bandwidth: float, cost: int = 1) -> None:
        for ends in ((one, other), (other, one)):
            self._links[ends] = self._lay(*ends) if self._lay else Link(latency, bandwidth, cost)

    # -- clients -----------------------------------------------------------------------------------------------------

    def do(self, broker: int, stimulus: Stimulus) -> None:
        """Give a broker a stimulus now."""
        self._when_awake(broker, lambda: self._handle(broker, stimulus))

    def after(self, broker: int, effects: list[Effect]) -> None:
        """A broker was given something by other means: carry out what came of it."""
        if broker in self._record:
            raise ValueError(f"broker {broker} is being recorded: it may be given nothing but stimuli, by do()")
        self._carry_out(broker, effects)
        self._schedule_tick(broker, self.brokers[broker])

    # -- faults ------------------------------------------------------------------------------------------------------

    def crash(self, broker: int) -> None:
        """The process is gone; its neighbours' connections break."""
        self.brokers.pop(broker, None)
        self._queues.pop(broker, None)
        self._paused.discard(broker)
        self._held.pop(broker, None)
        for one, other in [ends for ends in self._connected if broker in ends]:
            if one == broker:
                del self._connected[one, other]
            elif not self._links[broker, one].cut:  # else that end hears nothing of it
                self._disconnect(one, other)

    def pause(self, broker: int) -> None:
        """The process stands still: connections stay, nothing is read or sent."""
        self._paused.add(broker)

    def resume(self, broker: int) -> None:
        self._paused.discard(broker)
        for action in self._held.pop(broker, []):
            action()  # now, lest what comes next overtake it

    def set_cut(self, one: int, other: int, cut: bool) -> None:
        """Cut or mend the way from one to another; the way back is not touched."""
        self._links[one, other].cut = cut
        if not cut:
            self._connect_soon(one, other)

    def partition(self, some: Collection[int], cut: bool = True) -> None:
        """Cut these brokers off from the others, both ways, or mend it."""
        for one, other in self._links:
            if (one in some) != (other in some):
                self.set_cut(one, other, cut)

    def set_clock(self, broker: int, clock: Clock) -> None:
        self._clocks[broker] = clock

    def set_noise(self, noise: Noise) -> None:
        for link in self._links.values():
            link.noise = noise

    def links(self) -> list[tuple[int, int]]:
        """Each both ways; those that brokers have closed are among them, for they may open them again."""
        return list(self._links)

    def connected(self) -> list[tuple[int, int]]:
        """The links that are there, each once."""
        return [(one, other) for one, other in self._connected if one < other and (other, one) in self._connected]

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _handle(self, broker: int, stimulus: Stimulus) -> None:
        """Let a broker work on a stimulus, when it has done what came before."""
        if self._cost is free:
            self._work(broker, stimulus)
        elif broker in self._queues:
            self._queues[broker].append(stimulus)
        else:
            self._queues[broker] = deque([stimulus])
            self._work_on(broker)

    def _work_on(self, broker: int) -> None:
        if self._queues[broker]:
            self._work(broker, self._queues[broker].popleft())
        else:
            del self._queues[broker]

    def _work(self, broker: int, stimulus: Stimulus) -> None:
        core = self.brokers.get(broker)
        if core is None:
            self._queues.pop(broker, None)
            return
        clock = self._clocks.get(broker)
        now = clock.shows(self.now) if clock else self.now
        effects, seconds = self._cost(core, now, stimulus)
        if broker in self._record:
            self._record[broker](recording.entry(now, stimulus, effects))
        if self.validate:
            core.validate()
        if self._cost is free:
            self._carry_out(broker, effects)
            self._schedule_tick(broker, core)
            return

        def done() -> None:
            if self.brokers.get(broker) is core:
                self.busy[broker] = self.busy.get(broker, 0.0) + seconds
                self._carry_out(broker, effects)
                self._schedule_tick(broker, core)
                self._work_on(broker)

        self.at(self.now + seconds, lambda: self._when_awake(broker, done))

    def _schedule_tick(self, broker: int, core: Core) -> None:
        deadline, clock = core.next_deadline(), self._clocks.get(broker)
        if clock:
            deadline = clock.time_of(deadline)
        if deadline < self._tick_at[broker]:
            self._tick_at[broker] = deadline
            self.at(deadline, lambda: self._tick(broker, core, deadline), DEADLINES)

    def _tick(self, broker: int, core: Core, deadline: float) -> None:
        if self.brokers.get(broker) is core and self._tick_at[broker] == deadline:
            self._tick_at[broker] = float("inf")
            self._when_awake(broker, lambda: self._handle(broker, stimuli.Tick()))

    def _when_awake(self, broker: int, action: Callable[[], None]) -> None:
        if broker in self._paused:
            self._held.setdefault(broker, []).append(action)
        else:
            action()

    def _carry_out(self, broker: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Deliver(client, event, subscriptions):
                    self.deliveries.append(Delivery(self.now, broker, client, event, subscriptions))
                case Send(neighbour, messages):
                    self._send(broker, neighbour & NUMBER, messages)
                case Answer(client, request):
                    self.answers[broker, client, request] = effect
                case Receipts(client, first, counts):
                    self.receipts.update(
                        ((broker, client, request), count) for request, count in enumerate(counts, first)
                    )
                case Reported():
                    self.reports.append((broker, effect))
                case Settled(client, request):
                    self.settled[broker, client, request] = effect
                case Tap(rows):
                    self.rows += [(broker, row) for row in rows]
                case OpenLink(neighbour):
                    self._open(broker, neighbour & NUMBER)
                case CloseLink(neighbour, reason):
                    self._close(broker, neighbour & NUMBER)
                    if reason == UNWANTED:
                        self._unwanted |= {(broker, neighbour & NUMBER), (neighbour & NUMBER, broker)}
                case _:
                    raise TypeError(f"nobody carries out a {type(effect).__name__} here")

    # -- links -------------------------------------------------------------------------------------------------------

    def _send(self, one: int, other: int, messages: tuple[Any, ...]) -> None:
        link, connection = self._links[one, other], self._connected.get((one, other))
        if connection is None:
            return
        self.messages_sent += count_of(messages)
        if link.cut:
            return
        if link.noise == QUIET:
            self.at(link.arrival(self.now, messages), lambda: self._arrive(one, other, connection, messages))
            return
        for message in messages:
            chance = self.rng.random
            if chance() < link.noise.loss:
                continue
            for _ in range(2 if chance() < link.noise.doubling else 1):
                late = link.latency * 5 * chance() if chance() < link.noise.reordering else 0.0
                arrives = link.arrival(self.now, (message,)) + late
                self.at(arrives, lambda m=message: self._arrive(one, other, connection, (m,)))  # type: ignore[misc]

    def _arrive(self, one: int, other: int, connection: int, messages: tuple[Any, ...]) -> None:
        def read() -> None:
            if self._connected.get((other, one)) == connection:
                self._handle(other, stimuli.Received(self.address(other, one), messages))

        self._when_awake(other, read)

    def _connect_soon(self, one: int, other: int) -> None:
        self.at(self.now + self._reconnect_after * (0.5 + self.rng.random()), lambda: self._connect(one, other))

    def _connect(self, one: int, other: int) -> None:
        """A connection needs both brokers, awake, and both ways whole; the ends must have given up the one before."""
        if (one, other) in self._unwanted or {(one, other), (other, one)} <= self._connected.keys():
            return
        blocked = self._links[one, other].cut or self._links[other, one].cut
        asleep = {one, other} & self._paused or not {one, other} <= self.brokers.keys()
        if blocked or asleep:
            if {one, other} <= self.brokers.keys():
                self._connect_soon(one, other)
            return
        for end in ((one, other), (other, one)):
            if end in self._connected:  # half open: the end that still holds it learns that it is gone
                self._disconnect(*end)
        connection = next(self._order)
        self._connected[one, other] = self._connected[other, one] = connection
        for me, neighbour in ((one, other), (other, one)):
            cost, incarnation = self._links[me, neighbour].cost, self._incarnations[neighbour]
            self._handle(me, stimuli.LinkUp(self.address(me, neighbour), incarnation, cost))

    def _open(self, one: int, other: int) -> None:
        """A broker wants a link, until one of its ends does not."""
        if (one, other) not in self._links:
            self._lay_both_ways(one, other, _LATENCY, float("inf"))
        self._unwanted -= {(one, other), (other, one)}
        self._connect_soon(one, other)

    def _close(self, one: int, other: int) -> None:
        """One end gives up; the other learns of it unless the way there is cut."""
        connection = self._connected.pop((one, other), None)
        if connection is None:
            return
        link = self._links[one, other]
        if not link.cut:

            def learn() -> None:
                if self._connected.get((other, one)) == connection:
                    self._disconnect(other, one)

            self.at(self.now + link.latency, lambda: self._when_awake(other, learn))
        self._connect_soon(one, other)

    def _disconnect(self, one: int, other: int) -> None:
        """One end is told that its connection is gone."""
        if self._connected.pop((one, other), None) is not None:
            self._when_awake(one, lambda: self._handle(one, stimuli.LinkDown(self.address(one, other))))

    def address(self, me: int, neighbour: int) -> int:
        """How a broker knows its neighbour, also one that has crashed."""
        core, other = self.brokers.get(me), self.brokers.get(neighbour)
        if core is None or len(core.clusters) == 1:
            return neighbour
        known = self._addresses.get((me, neighbour))
        if known is None and other is not None:
            known = self._addresses[me, neighbour] = address(core, other)
        return neighbour if known is None else known
