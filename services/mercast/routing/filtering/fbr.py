"""FBR: filter-based routing on advertisement trees, with its extension to overlays with cycles.

Advertisements go to every broker, over every link. Each makes a tree: a broker's *last hop* in it is the neighbour on
its shortest path to the advertiser; what other neighbours offer of the same advertisement is a duplicate. Subscriptions
follow the last hops of the trees they intersect, and are kept at every broker on the way, once for each tree. An event
belongs to the tree of the advertisement it was published under, and is matched at every broker that it passes.

With `repair` off, a tree stays as it was first made: the plain algorithm, which does not survive the loss of a link.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from mercast.content.event import Event
from mercast.content.interest import Advertisement, Subscription
from mercast.overlay.exchange import NOBODY, Cause, Key
from mercast.overlay.routes import NO_HOP
from mercast.protocol.messages import Forward, Local, Packet
from mercast.routing.core import Core
from mercast.routing.settings import Settings

Origin: TypeAlias = tuple[int, Local]
"""Where an advertisement or subscription was made: broker, and its name there."""


class Tree(NamedTuple):
    """An advertisement as this broker has it: SRT."""

    advertisement: Advertisement
    last_hop: int
    """The neighbour on the way to the advertiser; this broker, if it is the advertiser's."""


class FBR(Core):
    def __init__(self, me: int, incarnation: int, settings: Settings | None = None, repair: bool = True) -> None:
        super().__init__(me, incarnation, settings)
        self.repair = repair
        self.offers: dict[Origin, dict[int, Advertisement]] = {}
        """Advertisements by the neighbours that offer them."""
        self.srt: dict[Origin, Tree] = {}
        self.prt = self.make_table()
        """Subscriptions of neighbours as (neighbour, tree, origin); the destination is (tree, neighbour)."""
        self.asked: dict[Origin, dict[tuple[int, Origin], Subscription]] = {}
        """The same by tree, to be told on when the tree changes."""
        self.duplicates = 0
        """Advertisements that came from a neighbour that is not the last hop."""

    def peers(self) -> Iterable[int]:
        return self.neighbourhood.neighbours.keys() & self.state.reachable

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

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None:
        for origin, tree in self.srt.items():
            if subscription.intersects(self.types, tree.advertisement):
                self._ask(origin, (self.me, local), subscription, self.me, cause)

    def unsubscribed(self, local: Local, cause: Cause) -> None:
        for origin in self.srt:
            self._ask_no_more(origin, (self.me, local), cause)

    # -- neighbours --------------------------------------------------------------------------------------------------

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None:
        match key:
            case ("advertisement", origin):
                offers = self.offers.setdefault(origin, {})
                self.duplicates += bool(offers) or origin[0] == self.me
                offers[peer] = value
                self._grow(origin, cause)
            case ("subscription", tree, origin):
                self.prt.add((peer, tree, origin), value.type, value.filter, (tree, peer))
                self.asked.setdefault(tree, {})[peer, origin] = value
                self._ask(tree, origin, value, peer, cause)

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
                if not any(other == origin for _, other in self.asked[tree]):
                    self._ask_no_more(tree, origin, cause)
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

    def types_changed(self, cause: Cause) -> None:
        for origin, tree in self.srt.items():
            for local, subscription in self.clients.subscriptions.items():
                if subscription.intersects(self.types, tree.advertisement):
                    self._ask(origin, (self.me, local), subscription, self.me, cause)
                else:
                    self._ask_no_more(origin, (self.me, local), cause)

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
        for local, subscription in self.clients.subscriptions.items():
            if subscription.intersects(self.types, after.advertisement):
                self._ask(origin, (self.me, local), subscription, self.me, cause)
        for (peer, asker), subscription in self.asked.get(origin, {}).items():
            self._ask(origin, asker, subscription, peer, cause)

    def _tree(self, origin: Origin, before: Tree | None) -> Tree | None:
        offers = self.offers.get(origin, {})
        if not self.repair and before is not None and before.last_hop in offers:
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
        for peer in self.exchange.told:
            self.exchange.untell(peer, ("advertisement", origin), cause)
        for key in [key for key in self.exchange.told.get(tree.last_hop, ()) if key[:2] == ("subscription", origin)]:
            self.exchange.untell(tree.last_hop, key, cause)

    def _ask(self, tree: Origin, origin: Origin, subscription: Subscription, whence: int, cause: Cause) -> None:
        """Pass a subscription on toward the advertiser."""
        grown = self.srt.get(tree)
        if grown is not None and grown.last_hop not in (self.me, whence) and grown.last_hop in self.exchange.told:
            self.exchange.tell(grown.last_hop, ("subscription", tree, origin), subscription, cause)

    def _ask_no_more(self, tree: Origin, origin: Origin, cause: Cause) -> None:
        grown = self.srt.get(tree)
        if grown is not None and grown.last_hop in self.exchange.told:
            self.exchange.untell(grown.last_hop, ("subscription", tree, origin), cause)

    # -- events ------------------------------------------------------------------------------------------------------

    def published(self, packet: Packet) -> int:
        return self._onward(Forward(b"", 0, packet, self._tree_of(packet.event)), self.me)

    def _tree_of(self, event: Event) -> Origin:
        """The tree of the first of the publisher's advertisements that the event falls under."""
        mine, _ = self.clients.of(event.publisher)
        advertisements = self.clients.advertisements
        falls = (one for one in mine if advertisements[one].matches(self.types, event.type, event.attributes))
        return self.me, next(falls)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        if self.take_in(forward, neighbour):
            self._onward(forward, neighbour)

    def _onward(self, forward: Forward, whence: int) -> int:
        event = forward.packet.event
        found = self.prt.destinations(self.types.lineage(event.type), event.attributes)
        neighbours = [peer for tree, peer in found if tree == forward.note and peer != whence]
        for neighbour in neighbours:
            self.send(neighbour, forward._replace(hops=forward.hops + 1))
        return len(neighbours)
