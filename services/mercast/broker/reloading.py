"""Tokens, rules and certificates are read again when their files change, or on SIGHUP. Connections stay.

What is wrong changes nothing: it is logged and counted, and what was read before goes on to count. Files are read in a
thread, for there may be thousands of tokens; one change after the other, and it counts from a moment in the loop.
"""

import asyncio
from collections.abc import Callable

import structlog

from mercast.broker.admission import forget_paces
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.config_security import exposed
from mercast.broker.config_sources import ConfigError
from mercast.broker.seeking import until
from mercast.broker.sessions import Session
from mercast.security.reload import LOOK, Watch
from mercast.security.state import Files

log = structlog.get_logger()

Reread = Callable[[], BrokerConfig]
"""The configuration as its sources give it now."""


class Reloading:
    def __init__(self, broker: Broker, reread: Reread | None = None) -> None:
        """Reads everything for the first time: ConfigError, if it is not right."""
        self._broker, self._reread = broker, reread
        self._config = broker.config
        """With the files that count now."""
        broker.types_changed = self._review
        self._watch = Watch(self._config.security_files())
        broker.security = self._config.security()
        self._hung_up = asyncio.Event()

    async def watch(self) -> None:
        while True:
            await until(self._hung_up, LOOK)
            if self._hung_up.is_set():
                self._hung_up.clear()
                await self.read_all()
            elif self._watch.changed():
                await self._read(self._config)

    def hang_up(self) -> None:
        """SIGHUP: everything is to be read again, as soon as what is being read has been."""
        self._hung_up.set()

    async def read_all(self) -> None:
        """The configuration too."""
        try:
            config = await asyncio.to_thread(self._reread) if self._reread is not None else self._config
        except ConfigError as error:
            self._failed(error)
            return
        now = {key: getattr(config, key) for key in BrokerConfig.model_fields}
        changed = [key for key, value in now.items() if value != getattr(self._config, key)]
        for key in changed:
            if key not in Files._fields:
                log.warning(f"{key} cannot change at run time: restart the broker", key=key)
        config = self._config.model_copy(update={key: now[key] for key in changed if key in Files._fields})
        if mistakes := [f"{key}: {what}" for key, what in exposed(config)]:  # with what could not change
            self._failed(ConfigError("; ".join(mistakes)))
            return
        await self._read(config)

    async def _read(self, config: BrokerConfig) -> None:
        self._watch.see(config.security_files())
        try:
            security = await asyncio.to_thread(config.security)
        except ConfigError as error:
            self._watch.go_back_to(self._config.security_files())
            self._failed(error)
            return
        self._config, self._broker.security = config, security
        forget_paces(self._broker)
        self._broker.config = config  # with other files at most
        self._broker.counters.reloads["done"] += 1
        tokens = None if security.tokens is None else len(security.tokens)
        log.info("read again", tokens=tokens, certificates=list(security.expiry))
        self._review()

    def _failed(self, error: ConfigError) -> None:
        self._broker.counters.reloads["failed"] += 1
        log.error("not read again: all stays as it was", reason=str(error))

    def _review(self) -> None:
        """New requests are judged by what counts now; what stands already, as soon as what was asked for stands."""
        sessions = [one for one in self._broker.sessions.values() if isinstance(one, Session)]
        for session in sessions:
            session.judge_anew()
        asyncio.get_running_loop().call_soon(_review_standing, sessions)


def _review_standing(sessions: list[Session]) -> None:
    for session in sessions:
        session.review_standing()
