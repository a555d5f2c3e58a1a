"""A broker's taps from start to end: ticks, snapshots of control state, and whoever ships them."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

from mercast.broker.broker import Broker
from mercast.broker.lag import LagProbe
from mercast.protocol.rows import Run, Ticked
from mercast.protocol.tap_messages import Head
from mercast.routing.control_rows import snapshot
from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Shipper
from mercast.taps.taps import Taps

_TICK = 1.0
_LEAST = 0.5
"""Seconds between two ticks, for a loop that is late."""
_SNAPSHOT = 600.0
_LAST_WORDS = 2.0
"""Seconds that what waits has to be shipped when the broker stops."""


@asynccontextmanager
async def tapping(broker: Broker) -> AsyncIterator[None]:
    """Rows of the broker are shipped inside the block."""
    settings = broker.config.tap_settings()
    config = broker.config
    shipper = make_shipper(settings, config.id)
    head = Head(config.id, broker.core.incarnation, config.cluster, config.strategy)
    broker.taps = Taps(head, settings, shipper)
    lag = LagProbe()
    lag.start()
    ticker = _Ticker(broker, broker.taps, lag)
    shipping, ticking = asyncio.create_task(shipper.run()), asyncio.create_task(ticker.run())
    try:
        yield
    finally:
        await _ended(ticking)
        ticker.tick()  # what was counted since the last one
        broker.taps.flush()
        await shipper.finish(_LAST_WORDS)
        lag.stop()
        await _ended(shipping)
        broker.taps = None


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def make_shipper(settings: TapSettings, broker: int) -> Shipper:
    if settings.in_files:
        from mercast.taps.files import FileShipper

        return FileShipper(settings, broker)
    from mercast.taps.kafka import KafkaShipper  # of an extra of its own

    return KafkaShipper(settings)


class _Ticker:
    """What was counted, and snapshots, as rows."""

    def __init__(self, broker: Broker, taps: Taps, lag: LagProbe) -> None:
        self._broker, self._taps, self._lag = broker, taps, lag
        self._before, self._last = _counted(broker, taps), time.monotonic()

    async def run(self) -> None:
        due = self._last
        told: tuple[float, int] | None = None
        """When there was a snapshot, and of which incarnation."""
        while True:
            now, due = time.monotonic(), due + _TICK
            incarnation = self._broker.core.incarnation
            if told is None or told[1] != incarnation or now - told[0] >= _SNAPSHOT:
                told = now, incarnation
                self._taps.take(_micros(), map(Run.of, snapshot(self._broker.core)))
            await asyncio.sleep(max(_LEAST, due - now))
            self.tick()

    def tick(self) -> None:
        interval, self._last = time.monotonic() - self._last, time.monotonic()
        counted = _counted(self._broker, self._taps)
        since = Counter({key: counted[key] - self._before[key] for key in counted})
        self._before = counted
        self._taps.take(_micros(), [Run.of(_ticked(self._broker, since, interval, self._lag.take_worst()))])


_DROPPED = "dropped: "


def _counted(broker: Broker, taps: Taps) -> Counter[str]:
    """All that only grows."""
    counters = broker.counters
    return Counter(
        {
            "published": counters.published,
            "delivered": counters.delivered,
            "forwarded": counters.forwarded,
            "bytes_in": counters.bytes_from_peers,
            "bytes_out": counters.bytes_to_peers,
            "bytes_to_clients": counters.bytes_to_clients,
            "matches": broker.core.work.matches,
            "tap_lost": taps.shipper.lost,
            "cpu_us": int(time.process_time() * 1e6),
        }
        | {_DROPPED + why: count for why, count in counters.dropped.items()}
    )


def _ticked(broker: Broker, since: Counter[str], interval: float, lag: float) -> Ticked:
    drops = {key.removeprefix(_DROPPED): count for key, count in since.items() if key.startswith(_DROPPED) and count}
    queued = sum(one.queued for one in (*broker.sessions.values(), *broker.links.values()))
    return Ticked(
        interval_us=int(interval * 1e6),
        dropped=drops,
        clients=len(broker.sessions),
        links=len(broker.links),
        subscriptions=len(broker.core.clients.subscriptions),
        queued_bytes=queued,
        loop_lag_us=int(lag * 1e6),
        clock_offset_us=max((int(one * 1e6) for one in _offsets(broker)), default=None),
        **{name: since[name] for name in _SINCE},
    )


_SINCE = (
    "published",
    "delivered",
    "forwarded",
    "bytes_in",
    "bytes_out",
    "bytes_to_clients",
    "matches",
    "tap_lost",
    "cpu_us",
)


def _offsets(broker: Broker) -> Iterator[float]:
    """By how much the clocks of neighbours may differ from ours."""
    for cluster in broker.core.clusters:
        for neighbour in cluster.neighbourhood.neighbours.values():
            if neighbour.rtt is not None and neighbour.clock_offset is not None:
                yield abs(neighbour.clock_offset) + neighbour.rtt / 2


def _micros() -> int:
    return time.time_ns() // 1_000
