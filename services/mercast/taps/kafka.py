"""Taps to Kafka. That it is not there yet, goes away and comes back is normal life."""

import asyncio
from functools import partial
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaProducer

from mercast.taps.connecting import connection
from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Parcel, Shipper
from mercast.taps.topics import make_topics

_AGAIN = 1.0
"""Seconds between two tries to connect."""
_GIVE_UP_MS = 15_000
"""Milliseconds until a message that Kafka does not take is lost."""
_BATCH_BYTES = 1_000_000
_TOGETHER_MS = 500
"""Milliseconds between two requests: each takes Kafka and its client their time, however little is in it."""
_SILENT = 3.0
"""Seconds without a word from Kafka, while messages are on their way, after which it is away."""
_CLOSE_WITHIN = 2.0


class KafkaShipper(Shipper):
    def __init__(self, settings: TapSettings) -> None:
        super().__init__(settings.where, settings.buffer_bytes)
        self._settings = settings
        self._sent: dict[asyncio.Future[Any], float] = {}
        """Messages on their way, and since when, the oldest first."""
        self._broken: asyncio.Event = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                await self._connect_and_ship()
            except Exception as error:  # Kafka's, the network's, or of a kind that nobody foresaw: it may pass
                self.tell(False, str(error) or type(error).__name__)
            await asyncio.sleep(_AGAIN)

    async def _connect_and_ship(self) -> None:
        await make_topics(self._settings)
        compression = self._settings.compression
        producer = AIOKafkaProducer(
            **connection(self._settings),
            enable_idempotence=True,  # no row twice: readers need not look for that
            max_batch_size=_BATCH_BYTES,
            linger_ms=_TOGETHER_MS,
            request_timeout_ms=_GIVE_UP_MS,
            compression_type=None if compression == "none" else compression,
        )
        self._broken.clear()
        try:
            await producer.start()
            self.tell(True)
            shipping = asyncio.create_task(self._ship(producer))
            watching = asyncio.create_task(self._watch())
            broken = asyncio.create_task(self._broken.wait())
            tasks = {shipping, watching, broken}
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
            for task in done:
                task.result()
        finally:
            await self._close(producer)

    async def _close(self, producer: AIOKafkaProducer) -> None:
        closing = asyncio.create_task(producer.stop())
        await asyncio.wait({closing}, timeout=_CLOSE_WITHIN)
        if not closing.done():
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
        for one in list(self._sent):
            one.cancel()

    async def _ship(self, producer: AIOKafkaProducer) -> None:
        while True:
            parcel = await self.next()
            try:
                sent = await producer.send(parcel.topic, parcel.value, parcel.key, parcel.partition)
            except BaseException as error:
                self.failed(str(error) or type(error).__name__, parcel)
                raise
            self._sent[sent] = monotonic()
            sent.add_done_callback(partial(self._done, parcel))

    def _done(self, parcel: Parcel, sent: "asyncio.Future[Any]") -> None:
        del self._sent[sent]
        if sent.cancelled():
            self.failed("the connection was given up", parcel)
        elif (error := sent.exception()) is not None:
            self.failed(str(error) or type(error).__name__, parcel)
            self._broken.set()
        else:
            self.arrived(parcel)

    async def _watch(self) -> None:
        """The library waits in silence for a Kafka that is away."""
        while True:
            await asyncio.sleep(_AGAIN)
            oldest = next(iter(self._sent.values()), None)
            if oldest is not None and monotonic() - oldest > _SILENT:
                self.tell(False, "it does not answer")
