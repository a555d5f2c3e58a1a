"""The live metrics as functions of tables: right on taps whose figures are known, and calm about what cannot be."""

import json
from datetime import UTC, datetime

import pytest

from mercast_streaming import live, synthetic
from mercast_streaming.figures import Sum
from mercast_streaming.schema import message_schema

SECOND = synthetic.SECOND
START = synthetic.Setting.start


def figures(spark, messages):
    """Of messages as (Kafka's time, value)."""
    rows = [(bytearray(value), datetime.fromtimestamp(at / SECOND, UTC)) for at, value in messages]
    taps = spark.createDataFrame(rows, "value binary, timestamp timestamp")
    summed = live.sums(live.facts(live.messages(taps), 5, 10), 5, 5).collect()
    return {synthetic.key_of(row): row for row in live.figures(map(Sum._make, summed), 5)}


def message(**parts):
    header = {"version": 1, "broker": 1, "incarnation": 1, "cluster": "alpha", "strategy": "merc"}
    return json.dumps(header | parts).encode()


def test_figures_are_those_that_are_known(spark):
    taps = synthetic.make(synthetic.Setting(seconds=10, clusters={"alpha": "merc", "beta": "fbr"}))
    found = figures(spark, [(sent.at, sent.value) for sent in taps.messages])
    assert synthetic.differences(found, taps.known) == []
    whole = found[START, "merc", "alpha", None]
    assert whole["negative_latencies"] > 0 < whole["doubled_deliveries"]
    assert 0 < whole["accuracy"] < 1 > whole["completeness"] > 0


def test_what_there_is_nothing_of_is_null(spark):
    tick = {"at": [START], "published": [3], "dropped": [{}]}
    found = figures(spark, [(START, message(tick=tick))])
    assert found.keys() == {(START, "merc", "alpha", 1), (START, "merc", "alpha", None)}
    whole = found[START, "merc", "alpha", None]
    shares = ("accuracy", "completeness", "hops", "list_length", "latency_p50_us", "latency_max_us")
    assert [whole[name] for name in (*shares, "bytes_per_delivery")] == [None] * 7
    assert (whole["all_published"], whole["all_drops"], whole["ticks"]) == (3, {}, 1)


def test_rows_without_a_place_are_set_aside_and_counted(spark):
    delivered = {"time": [START, START], "at": [START + 60 * SECOND, START + 7], "copy": [1, 1]}
    received = {"time": [START, START - 6 * SECOND, START], "at": [START, START, START], "copy": [1, 1, 1]}
    published = {"time": [None, -5, START], "at": [START] * 3, "destinations": [1, 1, 2**63 - 1]}
    sent = START + SECOND
    found = figures(spark, [(sent, message(delivered=delivered, received=received, published=published))])
    assert found.keys() == {(START, "merc", "alpha", 1), (START, "merc", "alpha", None)}
    whole = found[START, "merc", "alpha", None]
    assert (whole["ahead"], whole["late"], whole["malformed"]) == (1, 1, 2)
    assert (whole["deliveries"], whole["receipts"], whole["published"]) == (1, 2, 1)
    assert whole["latency_max_us"] == 7


def test_messages_that_cannot_be_read_are_counted_and_harm_nobody(spark):
    good = {"time": [START], "at": [START + 100], "copy": [1], "unheard_of": ["x"]}
    bad = [
        b"", b"{", b"[1]", b"\xff\xfe", b"null", b'{"version":1}',
        message(delivered={"time": ["soon"], "at": [START]}), message(broker=None), message(version="one"),
    ]  # fmt: skip
    messages = [*bad, message(version=2, delivered=good), message(delivered=good, unheard_of={"at": [1]})]
    found = figures(spark, [(START, value) for value in messages])
    unread = found[START, None, None, None]
    assert (unread["malformed"], unread["newer"], unread["deliveries"]) == (len(bad), 1, 0)
    assert found[START, "merc", "alpha", 1]["deliveries"] == 1


def test_a_message_larger_than_numbers_can_be(spark):
    most = 2**63 - 1
    delivered = {"time": [most, 0, -most], "at": [0, most, most], "copy": [most, 1, 1]}
    received = {"time": [START] * 2, "at": [START] * 2, "copy": [1, 1], "hops": [most, most]}
    found = figures(spark, [(START, message(delivered=delivered, received=received))])
    assert found[START, "merc", "alpha", 1]["ahead"] == 2


def test_the_schema_is_made_from_the_definition():
    named = message_schema({"delivered": ["at", "subscriptions"]})
    assert named["delivered"].dataType.simpleString() == "struct<subscriptions:array<array<bigint>>,at:array<bigint>>"
    with pytest.raises(ValueError, match="delivered have no column weight"):
        message_schema({"delivered": ["at", "weight"]})
