"""FBR: filter-based routing on advertisement trees, with its extension to overlays with cycles.

Advertisements go to every broker, over every link. Each makes a tree: a broker's *last hop* in it is the neighbour on
its shortest path to the advertiser; what other neighbours offer of the same advertisement is a duplicate. Subscriptions
follow the last hops of the trees they intersect, and are kept at every broker on the way, once for each tree. An event
belongs to the tree of the advertisement it was published under, and is matched at every broker that it passes.

With `repair` off, a tree stays as it was first made: the plain algorithm, which does not survive the loss of a link. It
is made anew only if the last hop takes the advertisement back, or is given up for good.
With `covering` on, a broker passes a subscription on only if none that it passes on along the same tree covers it
(routing/filtering/covering.py). What takes the place of a subscription is passed on before that is taken back; and what
is hidden is settled when that which stands for it is.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from mercast.content.event import Event
from mercast.content.interest import Advertisement, Subscription
from mercast.matching import Content
from mercast.overlay.exchange import NOBODY, Cause, Key
from mercast.overlay.routes import NO_HOP
from mercast.protocol.messages import Forward, Local, Note, Origin, Packet
from mercast.routing.core import Core, together
from mercast.routing.filtering.covering import Covering
from mercast.routing.filtering.prt import PRT
from mercast.routing.settings import Settings


class Tree(NamedTuple):
    """An advertisement as this broker has it: SRT."""

    advertisement: Advertisement
    last_hop: int
    """The neighbour on the way to the advertiser; this broker, if it is the advertiser's."""


class FBR(Core):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None) -> None:
        super().__init__(me, incarnation, settings)
        self.offers: dict[Origin, dict[int, Advertisement]] = {}
        """Advertisements by the neighbours that offer them."""
        self.srt: dict[Origin, Tree] = {}
        self.prt = PRT(self.make_table())
        """Subscriptions of neighbours as (neighbour, tree, origin)."""
        self.asked: dict[Origin, dict[tuple[int, Origin], Subscription]] = {}
        """The same by tree, to be told on when the tree changes."""
        self.coverings: dict[Origin, Covering[Origin, Subscription]] = {}
        """With covering: of what is asked for along a tree, by origin, what is passed on to its last hop."""
        self.duplicates = 0
        """Advertisements that came from a neighbour that is not the last hop."""

    def peers(self) -> Iterable[int]:
        return self.neighbourhood.neighbours.keys() & self.state.reachable

    def meet(self, peer: int) -> None:
        """Trees that are not repaired take their way from who was heard first: what stood before is said first."""
        self.exchange.meet(peer)
        self.met(peer)

    def met(self, peer: int) -> None:
        for origin, tree in self.srt.items():
            if tree.last_hop != peer:
                self.exchange.tell(peer, ("advertisement", origin), tree.advertisement, NOBODY)

    def overlay_changed(self) -> None:
        for origin in list(self.offers):
            self._grow(origin, NOBODY)

    # -- clients -----------------------------------------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None:
        self.srt[self.me, local] = Tree(advertisement, self.me)
        self._offer((self.me, local), cause)

    def unadvertised(self, local: Local, cause: Cause) -> None:
        self._fell((self.me, local), cause)

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None:  # noqa: ARG002
        for tree in self.srt:
            self._ask(tree, ((self.me, local),), cause)

    def unsubscribed(self, local: Local, cause: Cause) -> None:
        for tree in self.srt:
            self._ask(tree, ((self.me, local),), cause)

    # -- neighbours --------------------------------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        match key:
            case ("advertisement", origin):
                offers = self.offers.setdefault(origin, {})
                self.duplicates += bool(offers) or origin[0] == self.me
                offers[peer] = value
                self._grow(origin, cause)
            case ("subscription", tree, origin):
                self.prt.add((peer, tree, origin), value)
                self.asked.setdefault(tree, {})[peer, origin] = value
                self._ask(tree, (origin,), cause)

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:  # noqa: ARG002
        match key:
            case ("advertisement", origin):
                del self.offers[origin][peer]
                self._grow(origin, cause)
                if not self.offers[origin]:
                    del self.offers[origin]
            case ("subscription", tree, origin):
                self.prt.remove((peer, tree, origin))
                del self.asked[tree][peer, origin]
                self._ask(tree, (origin,), cause)
                if not self.asked[tree]:
                    del self.asked[tree]

    def validate(self) -> None:
        super().validate()
        said = {(peer, key) for peer, key, _ in self.heard_items()}
        offers = {(peer, ("advertisement", origin)) for origin, peers in self.offers.items() for peer in peers}
        asked = {(peer, tree, origin) for tree, table in self.asked.items() for peer, origin in table}
        assert offers | {(peer, ("subscription", tree, origin)) for peer, tree, origin in asked} == said
        assert set(self.prt) == asked
        assert all(self.clients.advertisements[origin[1]] for origin in self.srt if origin[0] == self.me)
        for tree, (_, last_hop) in self.srt.items():
            wanted = {origin: one for origin in self._askers(tree) if (one := self._wanted(tree, origin)) is not None}
            if tree in self.coverings:
                self.coverings[tree].validate()
                assert self.coverings[tree].interests == wanted
                wanted = self.coverings[tree].passed
            told = self.exchange.told.get(last_hop, {}).items()
            passed_on = {key[2]: one for key, one in told if key[:2] == ("subscription", tree)}
            assert passed_on == (wanted if last_hop != self.me else {})

    def types_changed(self, cause: Cause) -> None:
        """What intersects and what covers may be otherwise now."""
        for tree, (_, last_hop) in self.srt.items():
            before = self.coverings.get(tree)
            if before is not None:
                self.coverings[tree] = Covering(self._covers)
            self._ask(tree, self._askers(tree), cause)
            for origin in sorted(before.passed.keys() - self.coverings[tree].passed.keys()) if before else ():
                self.exchange.untell(last_hop, ("subscription", tree, origin), cause)

    # -- trees -------------------------------------------------------------------------------------------------------

    def _grow(self, origin: Origin, cause: Cause) -> None:
        """The last hop of a tree may have changed: leave the old one, join the new one."""
        before = self.srt.get(origin)
        after = self._tree(origin, before)
        if before == after or origin[0] == self.me:
            return
        if before is not None:
            self._fell(origin, cause)
        if after is None:
            return
        self.srt[origin] = after
        self._offer(origin, cause)
        if self.settings.covering:
            self.coverings[origin] = Covering(self._covers)
        self._ask(origin, self._askers(origin), cause)

    def _tree(self, origin: Origin, before: Tree | None) -> Tree | None:
        offers = self.offers.get(origin, {})
        if not self.settings.repair and before is not None and before.last_hop in offers:
            return before
        hop = self.state.routes.next_hop(origin[0])
        return Tree(offers[hop], hop) if hop != NO_HOP and hop in offers else None

    def _offer(self, origin: Origin, cause: Cause) -> None:
        """To every neighbour but the one that it came from."""
        tree = self.srt[origin]
        for peer in self.exchange.told:
            if peer == tree.last_hop:
                self.exchange.untell(peer, ("advertisement", origin), cause)
            else:
                self.exchange.tell(peer, ("advertisement", origin), tree.advertisement, cause)

    def _fell(self, origin: Origin, cause: Cause) -> None:
        """A tree is gone: neither offer it nor ask along it."""
        tree = self.srt.pop(origin)
        self.coverings.pop(origin, None)
        for peer in self.exchange.told:
            self.exchange.untell(peer, ("advertisement", origin), cause)
        for key in [key for key in self.exchange.told.get(tree.last_hop, ()) if key[:2] == ("subscription", origin)]:
            self.exchange.untell(tree.last_hop, key, cause)

    def _covers(self, one: Subscription, other: Subscription) -> bool:
        return one.covers(self.types, other)

    def _askers(self, tree: Origin) -> Iterable[Origin]:
        """Whose subscriptions may have to go along a tree."""
        mine = ((self.me, local) for local in self.clients.subscriptions)
        return dict.fromkeys((*mine, *(origin for _, origin in self.asked.get(tree, ()))))

    def _wanted(self, tree: Origin, origin: Origin) -> Subscription | None:
        """What a subscriber asks for along a tree: a client here, or one beyond a neighbour other than the last hop."""
        advertisement, last_hop = self.srt[tree]
        if origin[0] == self.me:  # neighbours may still say it, or what it was before a restart
            mine = self.clients.subscriptions.get(origin[1])
            return mine if mine is not None and mine.intersects(self.types, advertisement) else None
        asked = self.asked.get(tree, {})
        others = ((peer, origin) for peer in self.exchange.told if peer != last_hop)
        return next((asked[at] for at in others if at in asked), None)

    def _ask(self, tree: Origin, origins: Iterable[Origin], cause: Cause) -> None:
        """These subscriptions have come, changed or gone: pass that on toward the advertiser."""
        grown = self.srt.get(tree)
        if grown is None or grown.last_hop not in self.exchange.told:
            return
        covering = self.coverings.get(tree)
        wanted = {origin: self._wanted(tree, origin) for origin in origins}
        changes = wanted if covering is None else covering.update(wanted)
        for origin, subscription in changes.items():
            if subscription is not None:
                self.exchange.tell(grown.last_hop, ("subscription", tree, origin), subscription, cause)
            else:
                self.exchange.untell(grown.last_hop, ("subscription", tree, origin), cause)
        if covering is not None:
            stand_in = {covering.root(origin) for origin, subscription in wanted.items() if subscription is not None}
            for origin in sorted(stand_in - changes.keys()):
                self.exchange.wait_for(grown.last_hop, ("subscription", tree, origin), cause)

    # -- events ------------------------------------------------------------------------------------------------------

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:  # noqa: ARG002
        trees = groupby(packets, lambda packet: self._tree_of(packet.event))
        return [count for tree, run in trees for count in self._onward(list(run), 0, tree, self.me)]

    def _tree_of(self, event: Event) -> Origin:
        """The tree of the first of the publisher's advertisements that the event falls under."""
        mine = self.clients.advertisements_of(event.publisher)
        advertisements = self.clients.advertisements
        falls = (one for one in mine if advertisements[one].matches(self.types, event.type, event.attributes))
        return self.me, next(falls)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        self._onward(self.take_in(forward, neighbour), forward.hops, forward.note, neighbour)

    def _onward(self, packets: Sequence[Packet], hops: int, tree: Note, whence: int) -> list[int]:
        """To the neighbours that asked along the tree for what matches; how many, for each event."""
        others = self.neighbourhood.neighbours.keys() - {whence}
        wanted = [others & asked for asked in self.prt.wanted(tree, self.contents(packets))]
        for neighbour in sorted(set().union(*wanted)):
            theirs = [packet for packet, asked in zip(packets, wanted, strict=True) if neighbour in asked]
            self.send(neighbour, together(b"", hops + 1, theirs, tree))
        return [len(asked) for asked in wanted]
