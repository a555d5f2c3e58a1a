"""How a broker leaves: its clients go elsewhere, and what it has acknowledged arrives before it is gone."""

import asyncio
from collections.abc import Callable

import structlog

from mercast.broker.broker import Broker
from mercast.broker.links import Link
from mercast.broker.sessions import STOPPED, Session
from mercast.overlay.cluster import Cluster
from mercast.protocol.stimuli import Retire
from mercast.wire import replies

log = structlog.get_logger()

_LOOK = 0.02
"""Seconds between two looks whether all is done."""

_FOR_CLIENTS = 0.8
"""Of the time that there is: the rest is for what they have published."""

_TO_HANG_UP = 2.0
"""Seconds that clients which were told everything have to hang up by themselves."""


class Draining:
    def __init__(self, broker: Broker, live: set[Session]) -> None:
        self._broker, self._live = broker, live

    async def run(self) -> None:
        """Have clients go elsewhere and events go around; then see that everything arrives. All in the time given."""
        broker = self._broker
        broker.draining = True
        broker.take(Retire())
        retired, others = broker.now(), broker.other_brokers()
        log.info("draining", clients=len(self._live), others=others)
        for session in list(self._live):
            session.out.append(replies.drain(others))
            session.flush()
        seconds = broker.config.drain_seconds
        until = retired + seconds
        await self._wait(self._all_gone if others else self._all_told, retired + _FOR_CLIENTS * seconds)
        for session in list(self._live):
            session.end(*STOPPED)
        await self._wait(self._all_gone, min(until, broker.now() + _TO_HANG_UP))
        if others:
            await self._wait(self._others_hold_together, retired + _FOR_CLIENTS * seconds)
            # Once the neighbours see the overlay as this broker does, nothing more comes by here.
            await self._wait(lambda: all(_knows(one, retired) for one in broker.core.clusters), until)
        if not await self._wait(self._arrived, until):
            log.warning("some events may be lost: neighbours have not taken all in drain_seconds", seconds=seconds)

    async def _wait(self, done: Callable[[], bool], until: float) -> bool:
        while not done():
            if self._broker.now() >= until:
                return False
            await asyncio.sleep(_LOOK)
        return True

    def _all_gone(self) -> bool:
        return not self._live

    def _all_told(self) -> bool:
        return not any(session.queued for session in self._live)

    def _others_hold_together(self) -> bool:
        """Whether they reach each other without those who leave. Where links are given, they can make no others."""
        core, config = self._broker.core, self._broker.config
        made = [one.state for one, given in zip(core.clusters, config.clusters(), strict=True) if not given.links]
        return all(state.holds_together_without(state.retiring | {core.me}) for state in made)

    def _arrived(self) -> bool:
        """Whether every neighbour has taken all."""
        answers = [link.has_all() for link in self._broker.links.values() if isinstance(link, Link)]  # each is asked
        return all(answers)


def _knows(cluster: Cluster, since: float) -> bool:
    return cluster.neighbourhood.is_known_since(since)
