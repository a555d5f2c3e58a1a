"""Event flooding: every event goes to every broker; each matches it against its own clients and drops repeats."""

from collections.abc import Iterable
from typing import Any

from mercast.content.interest import Advertisement, Subscription
from mercast.overlay.exchange import Cause, Key
from mercast.overlay.seen import Seen
from mercast.protocol.messages import Forward, Local, Packet
from mercast.protocol.rows import Copied
from mercast.routing.core import Core


class Flooding(Core):
    def peers(self) -> Iterable[int]:
        return ()

    def published(self, packet: Packet) -> int:
        return self._flood(Forward(b"", 0, packet), self.me)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        event = forward.packet.event
        seen = self.seen.see(event.id)
        if seen is not Seen.NEW:
            self.drop(forward.packet, seen.value)
            return
        count = self.deliver(forward.packet, forward.hops)
        self.tap(Copied(event.id, event.time, neighbour, forward.hops, 0, 1, count > 0))
        self._flood(forward, neighbour)

    def _flood(self, forward: Forward, but: int) -> int:
        others = [who for who in self.neighbourhood.neighbours if who != but]
        for who in others:
            self.send(who, forward._replace(hops=forward.hops + 1))
        return len(others)

    # -- no control state: nobody is told anything -------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None: ...

    def unadvertised(self, local: Local, cause: Cause) -> None: ...

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None: ...

    def unsubscribed(self, local: Local, cause: Cause) -> None: ...

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...
