"""Self-organising reconfiguration as brokers do it with each other (D-DBR, section III-C): one step at a time.

What is decided is in `organise.py`. Here is who says what to whom, in one cluster. A step is a new link, for which
either end may give up an old one; or, for a broker that has more links than it may, an old link alone.

1. *Collection.* Messages are counted for a cycle. Whenever the view of the overlay changes, counting starts anew.
2. *Evaluation.* In the next cycle brokers have their turns, in the order of their numbers, while nothing is on its way.
   One asks its best candidate (`Ask`), which accepts only if it sees the very same overlay, or refuses (`Reply`).
3. *Mark.* Both open the link, as one of the dearest cost: nobody goes by it, and all see that a step is being taken.
4. *Agreement.* The asker asks everybody whether they see what it sees (`Look`, `Same`). When all do, and the overlay is
   what was decided on, and no other link is dear, then the step is taken: at both ends the new link costs what links
   cost, and in the same record the old ones become dear. Of steps that meet, the lowest link stays and the others end.
5. *Execution.* Events have left a dear link when its far end sees the same overlay and says so over that link, behind
   all else. Then it is closed, if all that is not dear is now what it was to be.

Why this is safe. *At most one step is taken at a time.* Say A's and B's both were. Each lists a dear link from before
it asks the others until it is done. B told A that both see the same, with nothing of B's dear: so B's link became dear
after A had asked, and thus after A's had. The same holds the other way round: each became dear after the other. *So no
step disconnects*: it was judged with all that had been closed before, and what else is open is only more. *Nothing is
lost*: see 5. All this holds whatever messages are lost, late or doubled: agreement is of digests, and what others do is
read from their own records.

Nobody holds a lock. When time runs out or something else changes, a step ends where it is: before it was taken, the new
link is closed; after, the old one is kept, and a broker may have a link too many for a while. A mark goes with the
record of who made it, so a crash ends its step. What is closed just while something else fails may disconnect. So both
ends remember each other, and open their link again when one is out of the other's reach.

By the rule `carried` steady traffic brings it to rest, as one step at a time is decided on counts of one topology.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from mercast.limits import DEFAULTS
from mercast.overlay.cluster import Cluster
from mercast.overlay.neighbourhood import Outgoing
from mercast.overlay.organise import Organiser, Quota, Request, Rule, Traffic
from mercast.overlay.routes import NO_HOP
from mercast.overlay.split import BROKER, unpack
from mercast.overlay.topology import MOST_COST, Link, Topology
from mercast.protocol.effects import UNWANTED, CloseLink, OpenLink
from mercast.protocol.messages import Ask, Look, Organise, Reply, Same

Marks: TypeAlias = dict[int, tuple[int, ...]]
"""Per broker that lists any, the neighbours that it lists as dear."""

_NEVER = float("inf")
_DOUBT = 4.0
"""Standard deviations: traffic that comes by chance would otherwise move links to and fro between equals, for ever."""

_PATIENCE = 10
"""Cycles for what is given up to be closed. It only takes so long if a broker stands still and is not found out."""

_LISTS = 1024
"""Of different destinations that are kept as they came; then their entries are counted one by one."""


class Manners(NamedTuple):
    rule: Rule
    cycle: float
    """Seconds."""
    most_links: int
    """MaxDegree."""
    resend_after: float
    """Seconds."""


@dataclass
class _Step:
    """One that this broker takes part in."""

    decided: Topology
    """What it was decided on."""
    until: float
    """When it is given up."""
    peer: int | None = None
    """The other end of the new link."""
    gives: int | None = None
    """The neighbour whose link this broker gives up."""
    ask: Ask | None = None
    """What began it; None if nobody had to be asked."""
    reply: Reply | None = None
    was_up: bool = False
    """The new link."""
    agreed: bool = False
    """The candidate has told the asker that it sees its mark."""
    taken: bool = False
    moved: tuple[Link, ...] = ()
    """All its links."""
    after: Topology | None = None
    """What is to be left of all links that are not dear, once it is taken."""
    again: float = 0.0
    """When to ask again those who have not answered."""


class Organising:
    def __init__(self, cluster: Cluster, manners: Manners) -> None:
        self.cluster = cluster
        self._state, self._neighbourhood, self._manners = cluster.state, cluster.neighbourhood, manners
        self.me = cluster.state.me
        self.taken = 0
        """Steps that this broker asked for, and that were taken."""
        self._now = 0.0
        self._digest = b""
        """Of the view that was looked at last."""
        self._lists: dict[tuple[int, bytes], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._traffic: Traffic | None = None
        """What was counted in the last whole cycle."""
        self._cycle_ends, self._turn = _NEVER, _NEVER
        self._refused: set[int] = set()
        """Candidates, in this view."""
        self._step: _Step | None = None
        self._same: set[int] = set()
        """Who sees what this broker sees."""
        self._mute: set[int] = set()
        """Who did not answer when a step needed it: perhaps it takes no part."""
        self._number = 0
        self._heard: list[tuple[int, Organise]] = []
        self._leaving: set[int] = set()
        """Neighbours that were told that their link may be closed."""
        self.parted: set[int] = set()
        """Whose links were closed, and are to be opened again when they are out of reach."""
        self._outgoing: Outgoing = []
        self._links: list[OpenLink | CloseLink] = []

    # -- collection --------------------------------------------------------------------------------------------------

    def count(self, source: int, destinations: bytes, messages: int) -> None:
        """So many messages with this list were sent here, came in, or passed by."""
        key = source, destinations
        self._lists[key] = self._lists.get(key, 0) + messages
        if len(self._lists) >= _LISTS:
            self._count_pairs()

    def _count_pairs(self) -> None:
        pairs, most = self._pairs, DEFAULTS.counted_pairs
        for (source, destinations), messages in self._lists.items():
            for entry in unpack(destinations):
                pair = source, entry & BROKER
                if pair in pairs or len(pairs) < most:
                    pairs[pair] = pairs.get(pair, 0) + messages
        self._lists.clear()

    def _end_cycle(self) -> None:
        self._count_pairs()
        self._traffic, self._pairs = Traffic(self._pairs), {}
        others = sorted(self._state.reachable)
        self._turn = self._cycle_ends + self._manners.cycle * others.index(self.me) / len(others)
        self._cycle_ends += self._manners.cycle
        if self._cycle_ends <= self._now:  # this broker has been asleep
            self._start_anew()

    def _start_anew(self) -> None:
        self._lists.clear()
        self._pairs.clear()
        self._traffic = None
        self._cycle_ends, self._turn = self._now + self._manners.cycle, _NEVER
        self._refused.clear()

    # -- what happens ------------------------------------------------------------------------------------------------

    def hear(self, neighbour: int, message: Organise) -> None:
        """A message for this broker, by way of this neighbour; it is acted upon in `act`."""
        self._heard.append((neighbour, message))

    def act(self, now: float) -> tuple[Outgoing, list[OpenLink | CloseLink]]:
        """What to say to neighbours, and what to do to links. To be asked after every stimulus."""
        if self._state.digest == self._digest and not self._heard and now < self.next_deadline():
            return [], []
        self._now, self._outgoing, self._links = now, [], []
        self._look()
        heard, self._heard = self._heard, []
        for neighbour, message in heard:
            self._take(neighbour, message)
        if self._step is not None:
            self._go_on(self._step)
        elif now >= self._cycle_ends:
            self._end_cycle()
        elif now >= self._turn:
            self._turn = _NEVER
            self._take_turn()
        return self._outgoing, self._links

    def next_deadline(self) -> float:
        if self._step is not None:
            return min(self._step.until, self._step.again)
        return min(self._cycle_ends, self._turn)

    def _look(self) -> None:
        """Has the view changed?"""
        if self._state.digest == self._digest:
            return
        self._digest = self._state.digest
        self._same.clear()
        self._start_anew()
        if self._step is not None:
            self._step.again = self._now
        neighbours = self._neighbourhood.neighbours
        for neighbour in sorted(self._leaving):
            if neighbour not in neighbours:
                self._close(neighbour)
            elif self._is_cheap(neighbour, self.me):
                self._leaving.discard(neighbour)  # it has thought better of it
        self.parted -= neighbours.keys()
        for broker in sorted(self.parted - self._state.reachable):
            self.parted.discard(broker)
            self._links.append(OpenLink(broker))

    def _close(self, neighbour: int) -> None:
        self._leaving.discard(neighbour)
        self.parted.add(neighbour)
        self._links.append(CloseLink(neighbour, UNWANTED))

    # -- the view ----------------------------------------------------------------------------------------------------

    def _is_dear(self, broker: int, neighbour: int) -> bool:
        return broker in self._state and (neighbour, MOST_COST) in self._state[broker].links

    def _is_cheap(self, broker: int, neighbour: int) -> bool:
        """Neither is true of a link that the broker does not list."""
        return broker in self._state and dict(self._state[broker].links).get(neighbour, MOST_COST) < MOST_COST

    def _marks(self) -> Marks:
        marks = {}
        for record in self._state.known():
            dear = tuple(neighbour for neighbour, cost in record.links if cost == MOST_COST)
            if dear:
                marks[record.broker] = dear
        return marks

    def _may_link(self, broker: int) -> bool:
        """Two brokers have one link, in the first of the clusters that they share."""
        mine, theirs = self._state.mine.clusters, self._state[broker].clusters
        first = (next(filter(others.__contains__, some), None) for some, others in ((mine, theirs), (theirs, mine)))
        return all(cluster == self.cluster.number for cluster in first)

    def _hold_dear(self, *neighbours: int) -> None:
        self._outgoing += self._neighbourhood.hold_dear(*neighbours)
        self._look()

    # -- evaluation and negotiation ----------------------------------------------------------------------------------

    def _organiser(self, traffic: Traffic) -> Organiser:
        return Organiser(self.me, self._state.topology, traffic, self._manners.most_links, self._manners.rule, _DOUBT)

    def _take_turn(self) -> None:
        if self._traffic is None or self._marks():
            return
        self._mute &= self._state.reachable
        if self._mute:
            for broker in sorted(self._mute):
                self._send(Look(self.me, broker, 0, self._digest))
            return
        organiser = self._organiser(self._traffic)
        excess = organiser.excess()
        if excess is not None:
            self._begin(gives=excess)
            self._hold_dear(excess)
            return
        candidates = [request for request in organiser.requests() if self._may_link(request.candidate)]
        request = next((one for one in candidates if one.candidate not in self._refused), None)
        if request is None:
            self._refused.clear()
            return
        self._number += 1
        counts = request.traffic.counts.items() if self._manners.rule == "carried" else ()
        ask = Ask(
            *(self.me, request.candidate, 0, self._number, self._digest, request.gain, *request.quota),
            tuple(sorted((*pair, messages) for pair, messages in counts)),
        )
        self._begin(peer=request.candidate, gives=request.quota.neighbour, ask=ask)
        # It is not up: but should it come up before the answer, it is dear.
        self._neighbourhood.dear = frozenset([request.candidate])

    def _begin(self, peer: int | None = None, gives: int | None = None, ask: Ask | None = None) -> None:
        until = self._now + self._manners.cycle
        decided = self._state.topology.without_dear()
        self._step = _Step(decided, until, peer, gives, ask)
        if peer is None:
            self._step.moved = _links(self.me, gives)
            self._step.after = decided.changed(closed=self._step.moved)

    def _take(self, neighbour: int, message: Organise) -> None:
        step = self._step
        if message.source not in self._state.reachable - {self.me}:
            return
        self._mute.discard(message.source)
        match message:
            case Ask():
                self._send(self._answer(message))
            case Reply() if step is not None and step.ask is not None and step.reply is None:
                if (message.source, message.number, message.digest) == (step.ask[1], *step.ask[3:5]):
                    self._replied(step, message)
            case Look() if message.digest == self._digest:
                self._looked(step, message.source)
                same = Same(self.me, message.source, 0, self._digest)
                self._send(same, over=neighbour if neighbour == message.source else None)
            case Same() if message.digest == self._digest:
                self._same.add(message.source)

    def _looked(self, step: _Step | None, source: int) -> None:
        """Somebody is told that its marks are seen: if they are on a link to this broker, what follows is clear."""
        if not self._is_dear(source, self.me):
            return
        if step is not None and step.peer == source:
            step.agreed = True
        else:
            self._leaving.add(source)

    def _answer(self, ask: Ask) -> Reply:
        step = self._step
        if step is not None and step.reply is not None and step.ask == ask._replace(hops=0):
            return step.reply  # the first one may be lost
        refused = Reply(self.me, ask.source, 0, ask.number, ask.digest, accepted=False)
        if step is not None or self._traffic is None or ask.digest != self._digest or self._marks():
            return refused
        if not self._may_link(ask.source):
            return refused
        counted = Traffic({(source, destination): messages for source, destination, messages in ask.counts})
        request = Request(ask.source, self.me, ask.gain, Quota(ask.lose, ask.given_up), counted)
        answer = self._organiser(self._traffic).answer(request)
        if answer is None:
            return refused
        given_up = dict(answer.closed).get(self.me)
        self._begin(peer=ask.source, gives=given_up, ask=ask._replace(hops=0))
        assert self._step is not None
        self._step.until += 2 * self._manners.cycle  # the asker's end comes first
        self._step.reply = refused._replace(accepted=True, given_up=given_up)
        self._open(self._step, answer.closed)
        return self._step.reply

    def _replied(self, step: _Step, reply: Reply) -> None:
        neighbours = step.decided.neighbours(reply.source)
        if not reply.accepted or not (reply.given_up is None or reply.given_up in neighbours):
            self._end(step)
            return
        step.reply = reply
        step.until = self._now + self._manners.cycle
        self._open(step, (*_links(self.me, step.gives), *_links(reply.source, reply.given_up)))

    # -- execution ---------------------------------------------------------------------------------------------------

    def _open(self, step: _Step, closed: tuple[Link, ...]) -> None:
        assert step.peer is not None
        step.moved = (self.me, step.peer), *closed
        step.after = step.decided.changed(step.moved[:1], closed)
        self._neighbourhood.dear = frozenset([step.peer])
        self._links.append(OpenLink(step.peer))

    def _go_on(self, step: _Step) -> None:
        is_up = step.peer in self._neighbourhood.neighbours
        step.was_up |= is_up
        if self._now >= step.until or (step.was_up and not is_up):
            self._end(step)
        elif step.taken:
            self._part(step)
        elif step.peer is not None and step.reply is None:
            self._ask_again(step)
        elif step.ask is None or step.ask.source == self.me:
            self._agree(step)
        else:
            self._follow(step, step.ask.source)

    def _ask_again(self, step: _Step) -> None:
        if self._now >= step.again and step.ask is not None:
            step.again = self._now + self._manners.resend_after
            self._send(step.ask)

    def _agree(self, step: _Step) -> None:
        """Before a step is taken: everybody must see what was decided on, with this step's mark and no other."""
        mark = step.gives if step.peer is None else step.peer
        assert mark is not None
        mine = {self.me: (mark,)} | ({} if step.peer is None else {step.peer: (self.me,)})
        marks = self._marks()
        others = [(_link(one, other), one) for one, some in marks.items() if one not in mine for other in some]
        if others and min(others) < (_link(self.me, mark), self.me):
            self._end(step)
        elif marks != mine:
            step.again = _NEVER
        elif self._state.topology.without_dear() != step.decided.changed(closed=[(self.me, mark)]):
            self._end(step)
        elif self._see_the_same(step, self._state.reachable - {self.me}):
            self.taken += 1
            self._step_taken(step)

    def _follow(self, step: _Step, asker: int) -> None:
        """The candidate takes the step when it sees that the asker has, and ends it when the asker cannot."""
        step.again = _NEVER
        if step.was_up and step.agreed and self._is_cheap(asker, self.me):
            self._step_taken(step)
        elif self._state.topology.without_dear() != step.decided:
            self._end(step)

    def _step_taken(self, step: _Step) -> None:
        step.taken, step.until = True, self._now + _PATIENCE * self._manners.cycle
        if step.peer is not None:
            self._hold_dear(*(() if step.gives is None else (step.gives,)))
        if step.gives is None:
            self._step = None
        else:
            self._part(step)

    def _part(self, step: _Step) -> None:
        """After it: what is given up is closed when all else is as it was to be, and nothing comes by it any more."""
        assert step.gives is not None
        assert step.after is not None
        cheap = self._state.topology.without_dear()
        if step.gives not in self._neighbourhood.neighbours or not _is_moving(cheap, step.after, step.moved):
            self._end(step)
        elif cheap != step.after:
            step.again = _NEVER
        elif self._see_the_same(step, {step.gives}):
            self._step, self._neighbourhood.dear = None, frozenset()
            self._close(step.gives)

    def _end(self, step: _Step) -> None:
        """Given up, or too late."""
        self._step = None
        if self._now >= step.until and not step.taken and (step.ask is None or step.ask.source == self.me):
            asked = {step.peer} if step.peer is not None and step.reply is None else self._state.reachable - {self.me}
            self._mute |= asked - self._same
        if step.taken or step.peer is None:
            self._hold_dear()
            return
        self._refused.add(step.peer)
        self._neighbourhood.dear = frozenset()
        if step.reply is not None or step.peer in self._neighbourhood.neighbours:
            self._close(step.peer)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _see_the_same(self, step: _Step, brokers: Iterable[int]) -> bool:
        missing = sorted(set(brokers) - self._same)
        if missing and self._now >= step.again:
            step.again = self._now + self._manners.resend_after
            for broker in missing:
                self._send(Look(self.me, broker, 0, self._digest), over=broker if broker == step.gives else None)
        return not missing

    def _send(self, message: Organise, over: int | None = None) -> None:
        """Over the link to a neighbour, or by the shortest way; what has no route is lost."""
        hop = self._state.routes.next_hop(message.target) if over is None else over
        if hop != NO_HOP:
            self._outgoing.append((hop, message))


def _links(broker: int, neighbour: int | None) -> tuple[Link, ...]:
    return () if neighbour is None else ((broker, neighbour),)


def _is_moving(now: Topology, after: Topology, moved: tuple[Link, ...]) -> bool:
    """Whether nothing differs but links of the step."""
    return now.brokers == after.brokers and now.changed(closed=moved) == after.changed(closed=moved)


def _link(one: int, other: int) -> Link:
    return min(one, other), max(one, other)
