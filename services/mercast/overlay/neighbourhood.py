"""A broker's neighbours and what it knows of the overlay beyond them.

Neighbours exchange heart-beats; one that is silent for some of them is down (section III-C). A change of neighbours
makes a new record, which is multicast along the shortest paths to everybody; each broker takes it in before it
forwards it, so it travels by the new paths. Heart-beats carry a digest of the records: neighbours whose digests stay
different send each other all they know, so views that differ come together whatever was lost.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from mercast.overlay.linkstate import LinkState, is_sound
from mercast.overlay.split import Rule, Splitter, pack
from mercast.overlay.topology import MOST_COST
from mercast.protocol.messages import HeartBeat, Message, Record, Update

Outgoing: TypeAlias = list[tuple[int, Message]]
"""(neighbour, message), in order."""

FLOODED = b""
"""The list of an update that goes to whomever it is news for."""


class Timing(NamedTuple):
    """Seconds."""

    heart_beat: float = 1.0
    misses: int = 3
    """Heart-beats without a word from a neighbour before it counts as down."""


class Neighbour:
    """What is known of one neighbour."""

    def __init__(self, cost: int, now: float) -> None:
        self.cost = cost
        self.last_heard = now
        self.beat: tuple[float, float] | None = None
        """When its last heart-beat was sent, by its clock, and when it was received, by ours."""
        self.rtt: float | None = None
        """Seconds to the neighbour and back."""
        self.clock_offset: float | None = None
        """Seconds that the neighbour's clock is ahead of ours, give or take half of the RTT."""
        self.differed = False
        """Its last heart-beat had another digest than ours."""
        self.told: bytes | None = None
        """The digest of what it was told in full, when an event showed that it sees another overlay."""

    def answer(self, digest: bytes, now: float) -> HeartBeat:
        """The next heart-beat to it."""
        if self.beat is None:
            return HeartBeat(digest, now)
        sent, received = self.beat
        return HeartBeat(digest, now, sent, now - received)

    def measure(self, now: float, beat: HeartBeat) -> None:
        """What a heart-beat tells of the way and of the neighbour's clock."""
        self.beat = beat.sent, now
        if beat.echo is not None:
            self.rtt = now - beat.echo - beat.held
            self.clock_offset = beat.sent + self.rtt / 2 - now


class Neighbourhood:
    def __init__(self, state: LinkState, timing: Timing, rule: Rule) -> None:
        self.state = state
        self.neighbours: dict[int, Neighbour] = {}
        self._timing = timing
        self._next_beat = float("inf")
        self._retiring = False
        self.dear: frozenset[int] = frozenset()
        """Neighbours, or neighbours to be, whose links cost the most, whatever they cost else."""
        self._rule: Rule = rule
        self._splitter = Splitter(state.routes, rule)

    def begin_with(self, now: float, links: dict[int, int], records: Iterable[Record]) -> None:
        """As if all these links had come up one by one, and all news had arrived."""
        self.neighbours = {who: Neighbour(cost, now) for who, cost in links.items()}
        self._next_beat = now + self._timing.heart_beat
        for count in range(1, len(links) + 1):
            self.state.set_links(dict(list(links.items())[:count]))
        self.state.learn(tuple(records))

    def link_up(self, now: float, neighbour: int, incarnation: int, cost: int) -> Outgoing:
        """The new neighbour gets all records; the others get those that changed."""
        if not 1 <= cost <= MOST_COST:
            raise ValueError(f"a link to broker {neighbour} of cost {cost}; it may cost 1 to {MOST_COST}")
        self.neighbours[neighbour] = Neighbour(cost, now)
        self._next_beat = min(self._next_beat, now + self._timing.heart_beat)
        self.state.begin_anew(neighbour, incarnation)
        news = (self.state[neighbour],) if neighbour in self.state else ()  # others may hear of it from here first
        return [*self._links_changed(*news), (neighbour, self._everything())]

    def link_down(self, neighbour: int) -> Outgoing:
        if self.neighbours.pop(neighbour, None) is None:
            return []
        return self._links_changed()

    def retire(self) -> Outgoing:
        """Links of this broker are the dearest from now on: nobody goes by here who has another way."""
        self._retiring = True
        return self._links_changed()

    def hold_dear(self, *neighbours: int) -> Outgoing:
        """These links and no others are the dearest from now on."""
        self.dear = frozenset(neighbours)
        return self._links_changed()

    def beat(self, now: float) -> tuple[Outgoing, list[int]]:
        """Heart-beats that are due, and the neighbours that have been silent for too long."""
        if now < self._next_beat:
            return [], []
        self._next_beat = now + self._timing.heart_beat if self.neighbours else float("inf")
        patience = self._timing.heart_beat * (self._timing.misses + 0.5)
        silent = [who for who, neighbour in self.neighbours.items() if now - neighbour.last_heard > patience]
        digest = self.state.digest
        return [(who, one.answer(digest, now)) for who, one in self.neighbours.items()], silent

    def is_known_since(self, when: float) -> bool:
        """Whether all neighbours have said since then that they see the overlay as this broker does."""
        neighbours = self.neighbours.values()
        return all(one.beat is not None and one.beat[1] > when and not one.differed for one in neighbours)

    def agree_with(self, neighbour: int) -> Outgoing:
        """Events show that it sees another overlay: it should know all that this broker does. Said once, unless there
        is more to say."""
        one = self.neighbours.get(neighbour)
        if one is None or one.told == self.state.digest:
            return []
        one.told = self.state.digest
        return [(neighbour, self._everything())]

    def next_deadline(self) -> float:
        return self._next_beat

    def heard_beat(self, now: float, neighbour: int, beat: HeartBeat) -> Outgoing:
        one = self.neighbours[neighbour]
        one.measure(now, beat)
        differs = beat.digest != self.state.digest
        # News is usually on its way already: only a difference that lasts is worth telling everything.
        lasting, one.differed = differs and one.differed, differs
        return [(neighbour, self._everything())] if lasting else []

    def heard_updates(self, updates: Sequence[tuple[int, Update]]) -> tuple[Outgoing, bool]:
        """Take the records of these (neighbour, update) in, then send them on; whether there was news.

        All are taken in first, for routes cost time. They go to the rest of the list, or what is news to the other
        neighbours.
        """
        all_news = [self.state.learn(update.records) for _, update in updates]
        outgoing: Outgoing = []
        for (neighbour, update), news in zip(updates, all_news, strict=True):
            if update.destinations != FLOODED:
                sound = tuple(filter(is_sound, update.records))
                outgoing += self._along(update.destinations, update.hops + 1, sound)
            elif news:
                flooded = Update(FLOODED, update.hops + 1, tuple(news))
                outgoing += [(who, flooded) for who in self.neighbours if who != neighbour]
        return outgoing, any(all_news)

    @property
    def split(self) -> Splitter:
        """Over the routes of now."""
        if self._splitter.routes is not self.state.routes:
            self._splitter = Splitter(self.state.routes, self._rule)
        return self._splitter

    def _everything(self) -> Update:
        return Update(FLOODED, 0, tuple(self.state.named()))

    def _links_changed(self, *others: Record) -> Outgoing:
        record = self.state.set_links(
            {who: MOST_COST if self._retiring or who in self.dear else one.cost for who, one in self.neighbours.items()}
        )
        return self._along(pack(self.state.reachable - {self.state.me}), 0, (*others, record))

    def _along(self, destinations: bytes, hops: int, records: tuple[Record, ...]) -> Outgoing:
        return [(hop, Update(part, hops, records)) for hop, part in self.split(destinations) if hop in self.neighbours]
