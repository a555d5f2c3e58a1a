"""What is seen of a run, in words: a line for each thing that a reader of the scenario would want to know.

It watches every stimulus and its effects through the simulator's own door for costs. Lines come in the order of time;
those of one moment are sorted, so that they do not depend on the order in which a broker happens to say things.
"""

from collections.abc import Iterator
from typing import Any

from scenarios.names import Names

from mercast.overlay.split import unpack
from mercast.protocol import rows
from mercast.protocol.effects import Answer, CloseLink, Deliver, Effect, Receipts, Send, Settled, Tap
from mercast.protocol.messages import Control, Drop, Forward, HeartBeat, Put
from mercast.protocol.stimuli import LinkDown, LinkUp, Publish, Stimulus
from mercast.routing.core import Core
from mercast.routing.rendezvous.static_hash import TO_OWNER

FAULT, ANSWER, DELIVERY, MESSAGE, END, LINK = range(6)
"""What is told first of one moment."""


class Journal:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.control = False
        """Whether to tell what brokers tell each other of advertisements and subscriptions."""
        self.cuts: set[tuple[int, int]] = set()
        self.unsettled: set[tuple[str, int]] = set()
        """Requests that were granted and are not settled yet."""
        self.last_news = 0.0
        """When something was said that is more than a heart-beat."""
        self._lines: list[tuple[float, int, str]] = []

    def say(self, now: float, rank: int, text: str) -> None:
        self._lines.append((round(now, 6), rank, text))

    def take(self) -> list[str]:
        lines, self._lines = sorted(self._lines), []
        return [text for _, _, text in lines]

    def watch(self, core: Core, now: float, stimulus: Stimulus) -> tuple[list[Effect], float]:
        """A cost of nothing, for the simulator."""
        effects = core.handle(now, stimulus)
        core.validate()
        self._name_event(stimulus, effects)
        me = self.names.broker(core.me)
        match stimulus:
            case LinkUp(neighbour):
                self.say(now, LINK, f"{me} finds {self.names.broker(neighbour)}")
            case LinkDown(neighbour):
                self.say(now, LINK, f"{me} loses {self.names.broker(neighbour)}")
        for effect in effects:
            for rank, text in self._seen(core, effect):
                self.say(now, rank, text)
            if not isinstance(effect, Send) or not all(isinstance(one, HeartBeat) for one in effect.messages):
                self.last_news = now
        return effects, 0.0

    def _name_event(self, stimulus: Stimulus, effects: list[Effect]) -> None:
        for effect in effects:
            for row in effect.rows if isinstance(effect, Tap) else ():
                if isinstance(stimulus, Publish) and isinstance(row, rows.Published):
                    self.names.events[row.event] = self.names.thing((stimulus.client, stimulus.request))

    def _seen(self, core: Core, effect: Effect) -> Iterator[tuple[int, str]]:
        names, me = self.names, self.names.broker(core.me)
        match effect:
            case Answer(client, request, ""):
                self.unsettled.add((client, request))
            case Answer(_, _, refused):
                yield ANSWER, f"refused: {refused}"
            case Receipts(_, _, counts):
                for count in counts:
                    yield ANSWER, f"acknowledged, destinations: {count}"
            case Settled(client, request, missing):
                self.unsettled.discard((client, request))
                late = f" without {names.brokers(missing)}" if missing else ""
                yield END, f"{names.thing((client, request))} settled{late}"
            case Deliver(client, event, subscriptions):
                by = " ".join(names.thing((client, number)) for number in subscriptions)
                yield DELIVERY, f"{client} at {me} gets {names.events[event.id]} by {by}"
            case Tap(written):
                for event, _, why in (row for row in written if isinstance(row, rows.Dropped)):
                    yield END, f"{names.events[event]} dropped at {me}: {why}"
            case CloseLink(neighbour, reason):
                yield LINK, f"{me} loses {names.broker(neighbour)}: {reason}"
            case Send(neighbour, messages):
                for message in messages:
                    yield from self._message(core, neighbour, message)

    def _message(self, core: Core, neighbour: int, message: Any) -> Iterator[tuple[int, str]]:
        me = self.names.broker(core.me)
        match message:
            case Forward(destinations, hops, packets, note):
                way = f"{me} -> {self.names.broker(neighbour)}{self._where_to(destinations, note)}"
                for packet in packets:
                    event = self.names.events[packet.event.id]
                    yield MESSAGE, f"{event} {way}, hop {hops}{self._fate(core, neighbour)}"
            case Control(source, target, items=items) if self.control and source == core.me:
                for item in items:
                    yield from self._told(me, self.names.broker(target), item)

    def _fate(self, core: Core, neighbour: int) -> str:
        if neighbour not in core.neighbourhood.neighbours:
            return ", lost: no neighbour any more"
        return ", lost: the link is cut" if (core.me, neighbour) in self.cuts else ""

    def _where_to(self, destinations: bytes, note: Any) -> str:
        if note == TO_OWNER:
            return f" for the owner {self.names.brokers(unpack(destinations))}"
        if note is not None:
            return f" in the tree of {self.names.thing(note)}"
        return f" for {self.names.brokers(unpack(destinations))}" if destinations else ""

    def _told(self, me: str, other: str, item: Any) -> Iterator[tuple[int, str]]:
        match item:
            case Put(key, _):
                yield MESSAGE, f"{me} tells {other} of {self._key(key)}"
            case Drop(key):
                yield MESSAGE, f"{me} tells {other} no more of {self._key(key)}"

    def _key(self, key: tuple[Any, ...]) -> str:
        match key:
            case ("advertisement", origin):
                return self.names.thing(origin)
            case ("subscription", tree, origin):
                return f"{self.names.thing(origin)} in the tree of {self.names.thing(tree)}"
        return self.names.thing(key)
