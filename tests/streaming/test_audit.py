"""The audit of invented taps: it finds what went wrong, and nothing else."""

import asyncio
import json

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from mercast.protocol.columns import VERSION
from mercast_streaming.audit import invented, reading
from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files, from_kafka
from mercast_streaming.audit.report import CLEAN, TOO_LITTLE, WRONG, steps


def put(auditing, messages):
    return auditing.createDataFrame(
        [(topic, 0, value.decode()) for topic, _, value in messages], "topic string, partition int, value string"
    )


def wrong(report):
    return {(one.what, one.event, one.broker, one.client) for one in report.named}


def test_a_run_without_faults_is_clean(auditing, tmp_path):
    """In Parquet; and with a prefix that looks like the topic of control rows."""
    taps = invented.make(invented.Setting())
    renamed = [one._replace(topic=one.topic.replace("mercast", "control")) for one in taps.messages]
    put(auditing, renamed).write.parquet(str(tmp_path / "taps.parquet"))
    report = audit(auditing, from_files(auditing, str(tmp_path / "taps.parquet")), Setting())
    assert (report.right, wrong(report), report.grey, report.unknown) == (taps.pairs, set(), {}, {})
    assert taps.pairs > 500
    assert report.exit_code(0) == CLEAN


def test_exactly_what_went_wrong_is_named(auditing):
    faults = {"drop": 3, "double": 2, "misroute": 3, "misdeliver": 2}
    taps = invented.make(invented.Setting(seed=2, faults=faults))
    report = audit(auditing, put(auditing, taps.messages), Setting())
    assert wrong(report) == taps.wrong
    assert len(taps.wrong) >= 12
    assert report.exit_code(1) == WRONG
    for one in report.named:
        if one.what == "missing" and one.why == "":
            assert one.last is not None
            assert steps(one)


# -- one of each -------------------------------------------------------------------------------------------------------

SECOND = 1_000_000
START = 1_767_225_600 * SECOND


def message(topic, broker, first, **kinds):
    """Rows as dicts, by kind."""
    columns = {kind: {name: [row[name] for row in rows] for name in rows[0]} for kind, rows in kinds.items()}
    head = {"version": 1, "broker": broker, "incarnation": 7, "cluster": "alpha", "strategy": "ddbr", "first": first}
    count = sum(map(len, kinds.values()))
    return invented.Message(f"mercast.{topic}", broker, json.dumps(head | {"count": count} | columns).encode())


def event(number, **more):
    """Published at second `number`."""
    id_ = {"event_broker": 1, "event_incarnation": 7, "event_sequence": number}
    return id_ | {"time": START + number * SECOND} | more


def published(number, attributes, type_="quote"):
    told = {"destinations": 1, "bytes": 1, "matches": 1, "publisher": "p", "at": START + number * SECOND + 1}
    return event(number, type=type_, attributes=attributes) | told


def delivered(number, client, request):
    at = START + number * SECOND + 1000
    return event(number, client=client, subscriptions=[request], hops=1, copy=1, at=at)


def tick(at):
    return {"interval_us": SECOND, "tap_lost": 0, "clock_offset_us": 10, "at": at}


def subscribed(client, where, echo=True, settled=True):
    row = {"client": client, "request": 1, "type": "quote", "filter": where, "echo": echo, "at": START - 9}
    return row | {"settled_at": START - 8 if settled else None}


def one_of_each():
    snapshot = [{"ends": ends, "rows": 0, "at": START - 10} for ends in (False, True)]
    first = message(
        "control", 1, 0, snapshot=snapshot,
        advertised=[{"client": "p", "request": 2, "type": "quote", "filter": "", "at": START - 9}],
        settled=[{"client": "p", "request": 2, "missing": [], "at": START - 9}],
        subscribed=[subscribed("p", "x >= 3 AND x <= 4", echo=False)],
        declared=[{"type": "stock", "parent": "quote", "attributes": "{}", "at": START - 9}],
        linked=[{"neighbour": 2, "cost": 1, "at": START - 9}],
    )  # fmt: skip
    second = message(
        "control", 2, 0, snapshot=snapshot,
        subscribed=[
            subscribed("all", "x > 0"), subscribed("late", "x > 0", settled=False), subscribed("ends", "x > 0"),
            subscribed("bad", "x ~ 1"),
        ],
        unsubscribed=[{"client": "ends", "request": 1, "at": START + 4 * SECOND + 200_000}],
    )  # fmt: skip
    events = [
        published(1, '{"x": 1}'), published(2, '{"x": 1.5}', "stock"), published(3, '{"x": 3}'),
        published(4, '{"x": 4}'), published(5, '{"x": 5}'), published(6, None), published(7, '{"x": "7"}'),
        published(8, '{"x": 8}'), published(9, '{"x": 9}'), published(10, '{"x": 10}', "other"),
        published(11, '{"x": 11}'),
    ]  # fmt: skip
    here = [delivered(3, "p", 1)]  # its own
    there = [delivered(number, "all", 1) for number in (1, 2, 3, 4, 5, 6, 7)]  # not 7, which is a string
    there += [delivered(number, "ends", 1) for number in (1, 2, 3, 5)]  # not 5: it has left
    there += [delivered(1, "late", 1)]
    after = [delivered(9, "all", 1), delivered(99, "all", 1)]
    last = [tick(START + 200 * SECOND)]
    taps = [
        message("taps", 1, 0, published=events, delivered=here, tick=last),
        message("taps", 2, 0, delivered=there),
        message("taps", 2, len(there) + 3, delivered=after, tick=last),  # what was between is lost
        message("taps", 2, 0, delivered=there),  # said twice
    ]
    unread = b'{"version":%d,"broker":3,"incarnation":1,"first":0,"count":0}' % (VERSION + 1)
    newer = invented.Message("mercast.taps", 3, unread)
    return [first, second, *taps, newer]


def test_one_of_each(auditing):
    report = audit(auditing, put(auditing, one_of_each()), Setting(grace=0.5))
    assert {(one.what, one.why, one.event[2], one.broker, one.client) for one in report.named} == {
        ("undue", "the client's own event, not wanted back", 3, 1, "p"),
        ("undue", "the subscription had ended", 5, 2, "ends"),
        ("undue", "the filter does not match", 7, 2, "all"),
        ("undue", "nobody published it", 99, 2, "all"),
        ("missing", "", 11, 2, "all"),
    }
    assert report.grey == {"subscription not settled": 7, "subscription about to end": 1}
    assert report.unknown == {"attributes not recorded": 1, "rows lost": 1}
    # Events 1 to 5 and 9 for all, 1 to 3 for the one that ends, 1 for the late one.
    assert report.right == 6 + 3 + 1
    assert (report.events, report.untold_events, report.unjudged_subscriptions, report.lost_rows) == (11, 1, 1, 3)
    assert (report.repeated_messages, report.unreadable_messages, report.doubled) == (1, 1, 0)
    assert report.unreadable_filters == ["WHERE x ~ 1: not a part of a filter, at character 3: '~ 1'"]
    (missing,) = [one for one in report.named if one.what == "missing"]
    assert (missing.last, [step.what for step in missing.path]) == (1, ["published"])


def test_the_time_asked_for(auditing):
    report = audit(auditing, put(auditing, one_of_each()), Setting(grace=0.5, until=START + 3 * SECOND))
    assert (report.events, report.right, report.exit_code(0)) == (2, 5, TOO_LITTLE)  # a filter could not be read
    assert report.exit_code(0.2) == CLEAN


def test_clocks_are_known_as_well_as_they_were_measured_near_in_time(auditing):
    """A busy machine makes a measurement wide; a good one soon after it says more, one much later does not."""

    def ticked(broker, *measured):
        ticks = [tick(START + second * SECOND) | {"clock_offset_us": bound} for second, bound in measured]
        return [message("taps", broker, number, tick=[one]) for number, one in enumerate(ticks)]

    messages = [
        *ticked(1, (0, None)),
        *ticked(2, (0, None), (1, 900_000), (2, 40), (3, 70)),
        *ticked(3, (1, 800_000), (2, 60)),
        *ticked(4, (1, 40), (1_000, 900_000)),
    ]
    found = reading.extents(reading.parsed(put(auditing, messages))).collect()
    assert {row["broker"]: row["skew"] for row in found} == {1: 0, 2: 40, 3: 60, 4: 900_000}


def test_without_control_rows_nothing_is_undue(auditing):
    """Somebody kept the one topic, and not the other."""
    taps = [one for one in one_of_each() if one.topic == "mercast.taps"]
    report = audit(auditing, put(auditing, taps), Setting(grace=0.5))
    assert (report.named, report.unknown) == ([], {"control rows lost": 15})
    assert report.exit_code(0.5) == TOO_LITTLE


def test_taps_in_kafka(auditing, kafka):
    taps = invented.make(invented.Setting(events=100, faults={"drop": 1, "misdeliver": 1}))
    asyncio.run(_send(kafka, taps.messages))
    report = audit(auditing, from_kafka(auditing, kafka, "mercast", {}), Setting())
    assert wrong(report) == taps.wrong


async def _send(address, messages):
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic("mercast.taps", 2, 1), NewTopic("mercast.control", 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        for topic, broker, value in messages:
            await producer.send_and_wait(topic, value, partition=broker % 2 if topic == "mercast.taps" else 0)
