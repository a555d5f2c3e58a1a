"""The embedded Kafka: a child process that keeps its port and data, and leaves nothing behind."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from live import until

from mercast.cli.kafka import kafka as command
from mercast.kafka import Kafka, KafkaError
from mercast.processes import end_with_parent, free_addresses

pytestmark = pytest.mark.slow


async def _put(address, value):
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic("kept", num_partitions=1, replication_factor=1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait("kept", value)


async def _get(address):
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition("kept", 0)])
        return (await consumer.getone()).value
    finally:
        await consumer.stop()


def test_stopped_killed_and_started_again_it_is_the_same():
    with Kafka() as kafka:
        address = kafka.address
        asyncio.run(_put(address, b"value"))
        kafka.stop()
        kafka.start()
        assert asyncio.run(_get(address)) == b"value"
        kafka.kill()
        kafka.start()
        assert kafka.address == address
        assert asyncio.run(_get(address)) == b"value"
        pid = kafka.pid
    assert not Path(f"/proc/{pid}").exists()


def test_it_says_why_it_does_not_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KafkaError, match="data cannot be kept in"), Kafka(data=tmp_path / "file" / "data"):
        pass


def test_clients_come_to_the_address_that_they_are_told():
    port = int(free_addresses(1)[0].rpartition(":")[2])
    with Kafka(port, advertise=f"localhost:{port}") as kafka:
        assert kafka.address == f"localhost:{port}"
        assert asyncio.run(_nodes(f"127.0.0.1:{port}")) == {("localhost", port)}


async def _nodes(address):
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        return {(node.host, node.port) for node in producer.client.cluster.brokers()}


def test_everywhere_is_no_address_to_come_to():
    with pytest.raises(SystemExit, match=r"0\.0\.0\.0 is no address to come to: name one with --advertise"):
        command(host="0.0.0.0")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_with_its_kafka(tmp_path, how):
    words = [sys.executable, "-m", "mercast", "kafka", "--port", "0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent) as process:
        assert process.stdout.readline().startswith("Kafka at 127.0.0.1:")
        (child,) = _children(process.pid)
        process.send_signal(how)
        rest = process.stdout.read()
    assert (rest, process.returncode) == (("stopped\n", 0) if how == signal.SIGINT else ("", -how))
    until(lambda: not _is_alive(child), "Kafka is gone too")
    assert (tmp_path / "data/kafka.log").exists()


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False
