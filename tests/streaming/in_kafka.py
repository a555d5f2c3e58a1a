"""Taps put into a real Kafka, and figures got out of it."""

import asyncio
import json
from datetime import datetime

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from mercast_streaming.synthetic import key_of

PARTITIONS = 2


def make_topics(address, prefix):
    async def make():
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        compacted = {"cleanup.policy": "compact"}
        taps = NewTopic(f"{prefix}.taps", PARTITIONS, 1, topic_configs={"retention.ms": "-1"})
        await admin.create_topics([taps, NewTopic(f"{prefix}.metrics", 1, 1, topic_configs=compacted)])
        await admin.close()

    asyncio.run(make())


def put(address, prefix, messages):
    """With the times at which they would have been sent, each broker's into a partition of its own."""

    async def send():
        async with AIOKafkaProducer(bootstrap_servers=address, max_request_size=2_000_000) as producer:
            sent = [
                await producer.send(
                    f"{prefix}.taps", message.value, partition=message.broker % PARTITIONS,
                    timestamp_ms=message.at // 1000,
                )
                for message in messages
            ]  # fmt: skip
            await asyncio.gather(*sent)

    asyncio.run(send())


def got(address, prefix):
    """All that was ever written to the metrics topic: key and value."""

    async def read():
        place = TopicPartition(f"{prefix}.metrics", 0)
        consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            found = []
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [(record.key, record.value) for record in records]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


def figures_in(values):
    """By key, of JSON objects."""
    found = {}
    for value in values:
        row = json.loads(value)
        row["window_start"] = datetime.fromisoformat(row["window_start"])
        found[key_of(row)] = row
    return found
