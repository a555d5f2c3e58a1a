"""A real Kafka of one node on this machine, for those who have none: its jars are fetched on first use."""

from mercast.kafka.embedded import Kafka
from mercast.kafka.errors import KafkaError
from mercast.kafka.java import find_java

__all__ = ["Kafka", "KafkaError", "find_java"]
