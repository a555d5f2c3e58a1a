"""What the page cannot show, why, and the command that changes it."""

from typing import NamedTuple

AWAY, EMPTY, THERE, OFF = "away", "empty", "there", "off"
"""States of a source: it does not answer; it does, and has nothing; it has something; it is not wanted."""


class Source(NamedTuple):
    state: str
    where: str = ""
    why: str = ""


class Missing(NamedTuple):
    what: str
    why: str
    commands: tuple[str, ...]


def missing(kafka: Source, taps: str, metrics: str, admin: Source) -> list[Missing]:
    """`taps` and `metrics` are states of what comes by Kafka."""
    if THERE not in (taps, admin.state):
        return [_brokers(kafka, admin)]
    if taps != THERE:
        what = "Paths of events, percentiles, duplication, accuracy, completeness and their history"
        return [Missing(what, _no_taps(kafka), _tapping(kafka))]
    if metrics != THERE:
        why = f"They are made by Spark, and no window has come from it in {kafka.where or 'Kafka'} for a while."
        what = "Latency percentiles, duplication, routing accuracy, completeness and their history"
        return [Missing(what, why, (f"mercast metrics --kafka {kafka.where}",))]
    return []


def _brokers(kafka: Source, admin: Source) -> Missing:
    looked = [f"no admin port answers at {admin.where}"] if admin.state != OFF else []
    if kafka.state == AWAY:
        looked.append(f"no Kafka at {kafka.where}")
    elif kafka.state != OFF:
        looked.append(f"no taps come by Kafka at {kafka.where}")
    why = " and ".join(looked) or "neither admin ports nor Kafka are named"
    return Missing("Brokers", f"{why[0].upper()}{why[1:]}.", ("mercast local",))


def _no_taps(kafka: Source) -> str:
    if kafka.state == OFF:
        return "No Kafka is named: start the dashboard with --kafka."
    if kafka.state == AWAY:
        return f"No Kafka answers at {kafka.where}. Without taps the overlay is shown from admin ports."
    return f"Kafka answers at {kafka.where}, but no broker writes taps to it."


def _tapping(kafka: Source) -> tuple[str, ...]:
    where = kafka.where or "127.0.0.1:9092"
    start = () if kafka.state == EMPTY else ("mercast kafka",)
    return (*start, f"mercast local --taps kafka://{where}", f"mercast metrics --kafka {where}")
