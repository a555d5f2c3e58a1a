"""The topics of taps: made where they are missing, and never changed."""

from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaConnectionError, KafkaError, for_code

from mercast.taps.connecting import connection
from mercast.taps.settings import TapSettings

_UNKNOWN, _EXISTS = 3, 36
"""Kafka's codes: there is no such topic; there is one already (another broker was faster)."""
_HOUR = 3_600_000


class TopicError(Exception):
    """A topic cannot be used or made as it is wanted."""


async def make_topics(settings: TapSettings) -> list[str]:
    """The names of those that were made now."""
    admin = AIOKafkaAdminClient(**connection(settings))
    await admin.start()
    try:
        wanted = {topic.name: topic for topic in _wanted(settings)}
        there = await admin.describe_topics(list(wanted))
        missing = [one["topic"] for one in there if one["error_code"] == _UNKNOWN]
        for one in there:
            if one["error_code"] not in (0, _UNKNOWN):
                raise TopicError(f"topic {one['topic']}: {for_code(one['error_code']).__name__}")
            if one["error_code"] == 0:
                _check(one, wanted[one["topic"]], by_setting=one["topic"] == settings.taps)
        if missing:
            answer = await admin.create_topics([wanted[name] for name in missing])
            for name, code, *reason in answer.topic_errors:
                if code not in (0, _EXISTS):
                    why = reason[0] if reason and reason[0] else for_code(code).__name__
                    raise TopicError(f"topic {name} cannot be made: {why}")
        return missing
    finally:
        await admin.close()


def _check(there: dict[str, Any], wanted: NewTopic, *, by_setting: bool) -> None:
    """`by_setting`: whether taps_partitions is about this one."""
    found = len(there["partitions"])
    if found != wanted.num_partitions:
        change = f"set taps_partitions to {found}, or " if by_setting else ""
        told = f"topic {wanted.name} has {found} partitions and not {wanted.num_partitions}"
        raise TopicError(f"{told}: {change}choose another taps_prefix")


def _wanted(settings: TapSettings) -> list[NewTopic]:
    keep = {"retention.ms": str(int(settings.retention_hours * _HOUR))}
    # By Kafka's own clock: a broker's that is fast shows in its rows.
    clocked = keep | {"message.timestamp.type": "LogAppendTime"}
    return [
        NewTopic(settings.taps, settings.partitions, settings.replication, topic_configs=clocked),
        NewTopic(settings.control, 1, settings.replication, topic_configs=keep),
        NewTopic(settings.metrics, 1, settings.replication, topic_configs={"cleanup.policy": "compact"}),
    ]


__all__ = ["KafkaConnectionError", "KafkaError", "TopicError", "make_topics"]
