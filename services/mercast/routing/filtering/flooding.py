"""Event flooding: every event goes to every broker; each matches it against its own clients and drops repeats."""

from collections.abc import Iterable, Sequence
from typing import Any

from mercast.content.interest import Advertisement, Subscription
from mercast.matching import Content
from mercast.overlay.exchange import Cause, Key
from mercast.protocol.messages import Forward, Local, Packet
from mercast.routing.core import Core, together


class Flooding(Core):
    def peers(self) -> Iterable[int]:
        """For declarations of types alone."""
        return self.neighbourhood.neighbours.keys() & self.state.reachable

    def published(self, packets: Sequence[Packet], contents: Sequence[Content]) -> list[int]:  # noqa: ARG002
        return [self._flood(packets, 1, self.me)] * len(packets)

    def forwarded(self, neighbour: int, forward: Forward) -> None:
        self._flood(self.take_in(forward, neighbour), forward.hops + 1, neighbour)

    def _flood(self, packets: Sequence[Packet], hops: int, but: int) -> int:
        others = [who for who in self.neighbourhood.neighbours if who != but]
        for who in others if packets else ():
            self.send(who, together(b"", hops, packets))
        return len(others)

    # -- no control state: nobody is told anything -------------------------------------------------------------------

    def advertised(self, local: Local, advertisement: Advertisement, cause: Cause) -> None: ...

    def unadvertised(self, local: Local, cause: Cause) -> None: ...

    def subscribed(self, local: Local, subscription: Subscription, cause: Cause) -> None: ...

    def unsubscribed(self, local: Local, cause: Cause) -> None: ...

    def heard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...

    def unheard(self, peer: int, key: Key, value: Any, cause: Cause) -> None: ...
