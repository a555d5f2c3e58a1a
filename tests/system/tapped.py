"""What the taps say, read as any reader would."""

import asyncio
from collections import defaultdict

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from mercast.protocol.columns import COLUMNS
from mercast.protocol.repeated import columns_of


class Said:
    """Messages, in the order of their partitions."""

    def __init__(self, messages):
        self.messages = messages

    def rows(self, kind, broker=None):
        """Of a kind, each a dict, with the header's broker as `by`."""
        return [
            dict(zip(columns, values, strict=True)) | {"by": said["broker"]}
            for _, said in self.messages
            if kind in said and broker in (None, said["broker"])
            for columns in [columns_of(said[kind])]
            for values in zip(*columns.values(), strict=True)
        ]

    def gaps(self):
        """How many rows are missing before others, by topic, partition and broker."""
        following, missing = defaultdict(int), defaultdict(int)
        for place, said in self.messages:
            key = (*place, said["broker"], said["incarnation"])
            assert said["first"] >= following[key], f"numbers run backwards: {key}"
            missing[key] += said["first"] - following[key]
            following[key] = said["first"] + said["count"]
            assert said["count"] == sum(len(columns_of(said[kind])["at"]) for kind in COLUMNS if kind in said)
        return {key: count for key, count in missing.items() if count}


def of_kafka(address, *topics):
    return Said(asyncio.run(_read(address, topics)))


async def _read(address, topics):
    """All that is there now."""
    consumer = AIOKafkaConsumer(bootstrap_servers=address)
    await consumer.start()
    try:
        messages = []
        for topic in topics:
            await consumer._client._wait_on_metadata(topic)  # which it does itself only where it subscribes
            places = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
            consumer.assign(places)
            for place, end in (await consumer.end_offsets(places)).items():
                consumer.seek(place, 0)
                while await consumer.position(place) < end:
                    message = await consumer.getone(place)
                    messages.append(((topic, place.partition), orjson.loads(message.value)))
        return messages
    finally:
        await consumer.stop()


def of_files(folder, *topics):
    lines = [
        ((topic, 0), orjson.loads(line))
        for topic in topics
        for file in sorted(
            folder.glob(f"{topic}-*.jsonl*"), key=lambda file: (file.name.split(".jsonl")[0], -_age(file))
        )
        for line in file.read_bytes().splitlines()
    ]
    return Said(lines)


def _age(file):
    return int(file.suffix[1:]) if file.suffix[1:].isdigit() else 0
