"""Brokers that are only rows, and windows that no Spark has made: in the words of those who write the real ones."""

import time
from itertools import pairwise

from aiokafka import AIOKafkaProducer

from mercast.protocol import rows
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Head, encode
from mercast.taps.settings import TapSettings
from mercast.taps.topics import make_topics
from mercast_streaming.figures import Sum, as_json, figures, key_json

WINDOW = 5
"""Seconds."""
_TICKED = {"published": 500, "delivered": 600, "forwarded": 590, "matches": 500, "clients": 10, "links": 10}
_TICKED |= {"subscriptions": 50, "cpu_us": 400_000}
_TICKED |= {"bytes_in": 90_000, "bytes_out": 90_000, "bytes_to_clients": 70_000}


class Pretended:
    """Brokers with links, of one cluster, in the topics of a prefix."""

    def __init__(self, kafka, prefix, links, cluster="default", strategy="ddbr", incarnation=1_000):
        self.settings = TapSettings(f"kafka://{kafka}", prefix=prefix, partitions=2)
        self.links, self.ids = links, sorted({end for link in links for end in link})
        self._heads = {id: Head(id, incarnation, cluster, strategy) for id in self.ids}
        self._cluster, self._strategy = cluster, strategy

    async def __aenter__(self):
        await make_topics(self.settings)
        self._producer = AIOKafkaProducer(bootstrap_servers=self.settings.servers, linger_ms=5)
        await self._producer.start()
        return self

    async def __aexit__(self, *_):
        await self._producer.stop()

    async def say_links(self):
        """A snapshot of each broker."""
        for id in self.ids:
            neighbours = [other for link in self.links if id in link for other in link if other != id]
            said = [rows.Snapshot(False, len(neighbours)), *(rows.Linked(other, 1) for other in neighbours)]
            await self._write(self.settings.control, id, [*said, rows.Snapshot(True, len(neighbours))])

    async def tick(self, ids=None, published=100, receipts=(), dropped=None):
        """A second of these brokers; `receipts` are (broker, neighbour, events)."""
        for id in ids or self.ids:
            await self._write(self.settings.taps, id, [_ticked(published, dropped or {})])
        for id, neighbour, many in receipts:
            run = Run(
                rows.Copied, many, neighbour, 1_000, [1] * many, time.time_ns(), neighbour, 1, 1, 1, True, True, 0
            )
            await self._write(self.settings.taps, id, [run])

    async def publish(self, event, way, client="reader"):
        """An event that goes from broker to broker along this way, and is delivered at its end."""
        at = time.time_ns()
        await self._write(
            self.settings.taps, way[0], [rows.Published(event, at, "stock.quote", None, 1, 10, 0, "writer")]
        )
        for hops, (before, broker) in enumerate(pairwise(way), 1):
            last = broker == way[-1]
            said = [rows.Copied(event, at, before, hops, 1, 1, last, last)]
            said += [rows.Delivered(event, at, client, (1,), hops)] if last else []
            await self._write(self.settings.taps, broker, said)

    async def windows(self, many, end=None, brokers=False, latency=7.0):
        """The newest of these windows ends now, or then; gives the figures as they were written."""
        last = int((end or time.time()) // WINDOW) * WINDOW
        written = []
        for number in range(many):
            begin = (last - (many - number) * WINDOW) * 1_000_000
            sums = [one for id in self.ids for one in self._sums(begin, id, number, latency)]
            found = figures(sums, WINDOW)
            for row in found if brokers else found[:1]:
                sent = await self._producer.send(
                    self.settings.metrics, as_json(row).encode(), key_json(row).encode(), partition=0
                )
            written.append(found[0])
        await sent
        return written

    def _sums(self, begin, id, number, latency):
        head = (begin, self._strategy, self._cluster, id)
        wave = number % 12
        yield Sum(*head, "published", None, None, None, 500, [600, 5_000], None)
        yield Sum(*head, "received", 1, None, None, 590, [900, 1_200, 560, 585, 0], None)
        if number % 9 == 0:
            yield Sum(*head, "received", 2, None, None, 2, [4, 4, 2, 0, 0], None)
        for share, cell in ((300, 0.8), (240, 1.0), (50, 1.25), (10, 1.4)):
            yield Sum(*head, "delivered", 1, None, int(50 * (latency + wave / 40) * cell), share, [0], 30_000)
        for name, number in _TICKED.items():
            yield Sum(*head, "tick", None, name, None, WINDOW, [number], number)

    async def _write(self, topic, id, said):
        at = time.time_ns() // 1_000
        runs = [(at, one if isinstance(one, Run) else Run.of(one)) for one in said]
        for message in encode(self._heads[id], 0, runs):
            await self._producer.send(topic, message.value, partition=0)


def _ticked(published, dropped):
    return rows.Ticked(
        interval_us=1_000_000, published=published, delivered=published * 2, forwarded=published, bytes_in=9_000,
        bytes_out=9_500, bytes_to_clients=20_000, matches=published, dropped=dropped, clients=3, links=2,
        subscriptions=12, queued_bytes=0, loop_lag_us=900, tap_lost=0, clock_offset_us=40, cpu_us=31_000,
    )  # fmt: skip
