"""What comes by Kafka: ticks and rows about events from now on, control state since the last snapshots, windows of two
hours.

Whatever goes wrong is told, and tried again. Who cannot keep up goes on with the newest: the rest is counted.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from mercast.dashboard.missing import AWAY, EMPTY, THERE, Source
from mercast.dashboard.view import ASK_AFTER, State
from mercast.protocol.columns import VERSION
from mercast.taps.connecting import connection
from mercast.taps.settings import TapSettings

log = logging.getLogger(__name__)

_AGAIN = 2.0
"""Seconds until the next try."""
_LOOK = 5.0
"""Between looks whether topics have been made or have more partitions, and how far behind this reader is."""
_WITHIN = 10_000
"""Milliseconds for an answer."""
_SNAPSHOTS = 20 * 60
"""Seconds: brokers tell all control state every ten minutes; twice that, for clocks differ."""
_HISTORY = 2 * 3600
_BEHIND = 10_000
"""Milliseconds by Kafka's clock that taps may be late before they are left out."""
_NEWS = 60_000
_OF_BROKER = b'"broker":'
"""In the key of a window."""
_AT_ONCE = 200
"""Messages that are taken before others have their turn."""
_CONTROL_BACK, _WINDOWS_BACK = _SNAPSHOTS * 1_000, _HISTORY * 1_000


class KafkaSource:
    def __init__(self, settings: TapSettings, state: State) -> None:
        self._settings, self._state = settings, state
        self._where = settings.servers
        self._topics = {settings.taps: self._tap, settings.control: self._control, settings.metrics: self._metrics}

    async def run(self) -> None:
        self._state.told.kafka = Source(AWAY, self._where, "connecting")
        while True:
            with suppress(KafkaError, OSError, TimeoutError):
                await self._read()
            await asyncio.sleep(_AGAIN)

    def _tell_away(self, error: Exception) -> None:
        told, why = self._state.told, str(error) or type(error).__name__
        if told.kafka.state != AWAY or told.kafka.why == "connecting":
            log.warning("no Kafka at %s: %s", self._where, why)
        told.kafka = Source(AWAY, self._where, why)

    async def _read(self) -> None:
        shared = connection(self._settings)
        admin = AIOKafkaAdminClient(**shared, request_timeout_ms=_WITHIN)
        consumer = AIOKafkaConsumer(
            **shared, enable_auto_commit=False, request_timeout_ms=_WITHIN, max_partition_fetch_bytes=4 << 20
        )
        try:
            await admin.start()
            await consumer.start()
            read: set[TopicPartition] = set()
            while True:
                read = await self._follow(consumer, read, await self._partitions(admin))
                await self._take_for(consumer, _LOOK)
        except (KafkaError, OSError, TimeoutError) as error:
            self._tell_away(error)
            raise
        finally:
            closing = [asyncio.create_task(close()) for close in (consumer.stop, admin.close)]
            _, stuck = await asyncio.wait(closing, timeout=_AGAIN)
            for one in stuck:  # for ever, where Kafka is gone; nobody waits for them to give up
                one.cancel()

    async def _partitions(self, admin: AIOKafkaAdminClient) -> set[TopicPartition]:
        """Asked anew each time: that Kafka answers is known only by asking."""
        there = await asyncio.wait_for(admin.describe_topics(list(self._topics)), _LOOK * 2)
        found = {
            TopicPartition(one["topic"], part["partition"])
            for one in there
            if not one["error_code"]
            for part in one["partitions"]
        }
        told = self._state.told
        told.confirmed = time.monotonic()
        if told.kafka.state == AWAY and told.last_tap is not None:  # not at the first time
            told.connected = told.confirmed
        why = "" if found else f"it has no topics {self._settings.prefix}.*"
        told.kafka = Source(THERE if found else EMPTY, self._where, why)
        return found

    async def _follow(
        self, consumer: AIOKafkaConsumer, read: set[TopicPartition], there: set[TopicPartition]
    ) -> set[TopicPartition]:
        """Those that are read from now on."""
        if there <= read:
            return read
        positions = {place: await consumer.position(place) for place in read}
        consumer.assign(there | read)
        for place, position in positions.items():
            consumer.seek(place, position)
        await self._begin(consumer, there - read)
        return there | read

    async def _begin(self, consumer: AIOKafkaConsumer, places: set[TopicPartition]) -> None:
        """Each topic where it is of use: at its end, or some time back."""
        now = int(time.time() * 1_000)
        back = {self._settings.control: now - _CONTROL_BACK, self._settings.metrics: now - _WINDOWS_BACK}
        await consumer.seek_to_end(*places)
        wanted = {place: back[place.topic] for place in places if place.topic in back}
        found = await consumer.offsets_for_times(wanted) if wanted else {}
        for place, offset in found.items():
            if offset is not None:
                consumer.seek(place, offset.offset)

    async def _take_for(self, consumer: AIOKafkaConsumer, seconds: float) -> None:
        if not consumer.assignment():
            await asyncio.sleep(_AGAIN)
            return
        told, until = self._state.told, time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._is_silent():
            batches = await consumer.getmany(timeout_ms=max(1, int(min(left, ASK_AFTER) * 1_000)), max_records=_AT_ONCE)
            for place, messages in batches.items():
                take = self._topics[place.topic]
                for message in messages:
                    told.bytes += len(message.value or b"")
                    if not self._is_old_news(message):
                        self._take(take, message.value)
                if place.topic == self._settings.taps and time.time() * 1_000 - messages[-1].timestamp > _BEHIND:
                    await self._skip(consumer, place)
            await asyncio.sleep(0)

    def _is_silent(self) -> bool:
        """Whether nothing has come since Kafka was last asked: it is time to ask again."""
        told = self._state.told
        now = time.monotonic()
        return told.last_tap is not None and now - max(told.last_tap, told.confirmed) > ASK_AFTER

    def _is_old_news(self, message: Any) -> bool:
        """Of brokers only the newest window is kept: of an hour's, most need not even be read."""
        of_broker = message.topic == self._settings.metrics and _OF_BROKER in (message.key or b"")
        return of_broker and time.time() * 1_000 - message.timestamp > _NEWS

    async def _skip(self, consumer: AIOKafkaConsumer, place: TopicPartition) -> None:
        """To the newest, if this reader is what is late."""
        before = await consumer.position(place)
        await consumer.seek_to_end(place)
        self._state.told.skipped += max(0, await consumer.position(place) - before)

    def _take(self, take: Any, value: bytes | None) -> None:
        """Nonsense must not end the reading: it is counted."""
        if value is None:
            return
        try:
            message = orjson.loads(value)
            if message.get("version", VERSION) <= VERSION:
                take(value, message)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            self._state.told.unreadable += 1

    def _tap(self, value: bytes, message: Mapping[str, Any]) -> None:
        now = time.monotonic()
        self._state.told.last_tap = now
        self._state.recent.take(value, message)
        self._state.brokers.take_tap(message, now)

    def _control(self, _: bytes, message: Mapping[str, Any]) -> None:
        self._state.brokers.take_control(message, time.monotonic())

    def _metrics(self, _: bytes, message: Mapping[str, Any]) -> None:
        self._state.figures.take(message)
