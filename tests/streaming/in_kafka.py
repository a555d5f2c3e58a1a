"""Taps put into a real Kafka, the job that reads them there, and figures got out of it."""

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from mercast.processes import end_with_parent
from mercast_streaming.synthetic import key_of

PARTITIONS = 2
PARTS = 10


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


def parts(messages):
    """Ten, to be put one by one. Those of 40 s are shorter than the watermark: whichever partition is read first,
    nothing is late."""
    size = len(messages) // PARTS
    return [messages[start : start + size] for start in range(0, len(messages), size)]


def ends(address, prefix):
    """How much was ever put into each partition."""

    async def ask():
        places = [TopicPartition(f"{prefix}.taps", number) for number in range(PARTITIONS)]
        async with AIOKafkaConsumer(bootstrap_servers=address) as consumer:
            return {place.partition: end for place, end in (await consumer.end_offsets(places)).items()}

    return asyncio.run(ask())


def job(address, prefix, folder):
    """The command; checkpoint and history are in the folder."""
    return [
        sys.executable, "-m", "mercast", "metrics", "--kafka", address, "--prefix", prefix, "--from", "earliest",
        "--every", "0.1", "--checkpoint", str(folder / "checkpoint"), "--history", str(folder / "history"),
        "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    ]  # fmt: skip


@contextmanager
def started(command, log):
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, preexec_fn=end_with_parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lines(*logs):
    """Whole ones, of figures."""
    return [line for log in logs for line in log.read_text().splitlines(keepends=True) if line[0] + line[-1] == "{\n"]


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
