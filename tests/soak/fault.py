"""One broker is killed halfway, and comes back."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic, monotonic_ns

from soak.ledger import Window
from soak.load import Load, counted
from soak.watch import Watch

from mercast.broker.local import Local, NotReady

_HALF, _BACK = 0.5, 0.6
"""When it is killed and when it is started again, as shares of the time."""

_IN_FLIGHT, _OF_LATE = 500_000_000, 1_000
"""What was published before the fault may still have been on its way through the broker: so many nanoseconds, or
twice as long as the slowest of so many last deliveries took."""

_LOOK = 0.05
_PATIENCE = 60.0
"""Seconds for the others to do without the broker, and for the broker to come back."""


class Fault:
    def __init__(self, mesh: Local, victim: int, load: Load, watch: Watch, tell: Callable[[str], None]) -> None:
        self._mesh, self._load, self._watch, self._tell = mesh, load, watch, tell
        self.victim = victim
        self._others = [broker for broker in mesh.brokers if broker != victim]
        self.window: Window | None = None

    async def run(self, seconds: float) -> None:
        began = monotonic()
        await asyncio.sleep(_HALF * seconds)
        killed = monotonic()
        await self._kill()
        await asyncio.sleep(began + _BACK * seconds - monotonic())
        self._mesh.start(self.victim)
        await self._until(self._is_back, f"broker {self.victim} did not come back")
        self._tell(f"broker {self.victim} is back, {monotonic() - killed:.1f} s after it was killed")

    async def _kill(self) -> None:
        moving = sum(client.broker == self.victim for client in self._load.subscribers)
        killed, slowest = monotonic_ns(), self._load.ledger.slowest(_OF_LATE)
        self._mesh.kill(self.victim)
        self._tell(f"broker {self.victim} is killed (SIGKILL); {counted(moving, 'subscriber')} lost it")
        await self._until(self._is_mended, f"the others do not get over the loss of broker {self.victim}")
        self.window = Window(killed - max(_IN_FLIGHT, 2 * slowest), monotonic_ns())
        took = (self.window.end - killed) / 1e9
        self._tell(
            f"after {took:.2f} s all subscribers are settled at other brokers, and routes go round broker {self.victim}"
        )

    async def _is_mended(self) -> bool:
        if not self._load.settled_away_from(self.victim):
            return False
        return await self._watch.all_see(self._others, self.victim, reachable=False)

    async def _is_back(self) -> bool:
        ready = await self._watch.is_ready(self.victim)
        return ready and await self._watch.all_see(self._others, self.victim, reachable=True)

    async def _until(self, condition: Callable[[], Awaitable[bool]], otherwise: str) -> None:
        given_up = monotonic() + _PATIENCE
        while not await condition():
            if monotonic() > given_up:
                raise NotReady(f"{otherwise} within {_PATIENCE:.0f} s; its log:\n{self._mesh[self.victim].tail()}")
            await asyncio.sleep(_LOOK)
