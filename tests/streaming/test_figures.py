"""The live metrics as functions of tables: right on taps whose figures are known, and calm about what cannot be."""

import json
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import VERSION
from mercast.protocol.repeated import columns_of
from mercast_streaming import live, synthetic
from mercast_streaming.figures import Sum
from mercast_streaming.schema import laid_out, message_schema, too_much

SECOND = synthetic.SECOND
START = synthetic.Setting.start


def message(cluster, **parts):
    header = {"version": 1, "broker": 1, "incarnation": 1, "cluster": cluster, "strategy": "merc"}
    return json.dumps(header | parts).encode()


MOST = 2**63 - 1
GOOD = {"time": [START], "at": [START + 100], "copy": [1], "unheard_of": ["x"]}
BAD = [
    b"", b"{", b"[1]", b"\xff\xfe", b"null", b'{"version":1}', message("bad", broker=None),
    message("bad", version="one"), message("bad", delivered={"time": ["soon"], "at": [START]}), message("c" * 1_000),
    message("bad", tick={"at": [START] * 100_001}),
    message("bad", received={"runs": {"at": {"of": [1], "rows": [2**31 - 1]}}}),
]  # fmt: skip
KNOWN = synthetic.make(synthetic.Setting(seconds=10, clusters={"alpha": "merc", "beta": "fbr"}))

MESSAGES = [
    *((sent.at, sent.value) for sent in KNOWN.messages),
    (START, message("idle", tick={"at": [START], "published": [3], "dropped": [{}]})),
    (
        START + SECOND,
        message(
            "aside",
            delivered={"time": [START, START], "at": [START + 60 * SECOND, START + 7], "copy": [1, 1]},
            received={"time": [START, START - 6 * SECOND, START], "at": [START] * 3, "copy": [1, 1, 1]},
            published={"time": [None, -5, START], "at": [START] * 3, "destinations": [1, 1, MOST]},
            tick={
                "at": [START + 60 * SECOND, None, START, START],
                "published": [5, 5, 6, 1],
                "links": [7],
                "dropped": [{"stale": 9, "no route": 9}, {"stale": 9}, {"stale": 1}, None],
            },
        ),
    ),
    *((START, value) for value in BAD),
    (START, message("good", version=VERSION + 1, delivered=GOOD)),
    (START, message("good", delivered=GOOD, unheard_of={"at": [1]})),
    (
        START,
        message(
            "runs",
            version=2,
            delivered={
                "at": [START + 7, START + 8, START + 9],
                "runs": {
                    "time": {"of": [START, START + 1], "rows": [2, 1]},
                    "copy": {"of": [1], "rows": [3]},
                },
            },
        ),
    ),
    (
        START,
        message(
            "large",
            delivered={"time": [MOST, 0, -MOST], "at": [0, MOST, MOST], "copy": [MOST, 1, 1]},
            received={"time": [START] * 2, "at": [START] * 2, "copy": [1, 1], "hops": [MOST, MOST]},
        ),
    ),
]
"""As (Kafka's time, value). A cluster for each test: one run of Spark for all."""


@pytest.fixture(scope="module")
def found(spark):
    rows = [(bytearray(value), datetime.fromtimestamp(at / SECOND, UTC)) for at, value in MESSAGES]
    taps = spark.createDataFrame(rows, "value binary, timestamp timestamp")
    summed = live.sums(live.facts(live.timed(live.messages(taps), 5), 5, 10), 5).collect()
    return {synthetic.key_of(row): row for row in live.figures(map(Sum._make, summed), 5)}


def whole_of(found, cluster):
    assert {key for key in found if key[2] == cluster} == {(START, "merc", cluster, 1), (START, "merc", cluster, None)}
    return found[START, "merc", cluster, None]


def test_figures_are_those_that_are_known(found):
    mine = {key: row for key, row in found.items() if key[2] in ("alpha", "beta")}
    assert synthetic.differences(mine, KNOWN.known) == []
    whole = mine[START, "merc", "alpha", None]
    assert whole["negative_latencies"] > 0 < whole["doubled_deliveries"]
    assert 0 < whole["accuracy"] < 1 > whole["completeness"] > 0


def test_what_there_is_nothing_of_is_null(found):
    whole = whole_of(found, "idle")
    shares = ("accuracy", "completeness", "hops", "list_length", "latency_p50_us", "latency_max_us")
    assert [whole[name] for name in (*shares, "bytes_per_delivery")] == [None] * 7
    assert (whole["all_published"], whole["all_drops"], whole["ticks"]) == (3, {}, 1)


def test_rows_without_a_place_are_set_aside_and_counted(found):
    whole = whole_of(found, "aside")
    assert (whole["ahead"], whole["late"], whole["malformed"]) == (2, 1, 3)
    assert (whole["deliveries"], whole["receipts"], whole["published"]) == (1, 2, 1)
    assert (whole["latency_max_us"], whole["negative_latencies"], round(whole["latency_p99_us"])) == (7, 0, 7)
    assert (whole["ticks"], whole["all_published"], whole["links"], whole["all_drops"]) == (2, 7, None, {"stale": 1})


def test_messages_that_cannot_be_read_are_counted_and_harm_nobody(found):
    unread = found[START, None, None, None]
    assert (unread["malformed"], unread["newer"], unread["deliveries"]) == (len(BAD), 1, 0)
    assert whole_of(found, "good")["deliveries"] == 1


def test_a_message_larger_than_numbers_can_be(found):
    assert found[START, "merc", "large", 1]["ahead"] == 2


def test_a_window_closes_when_the_watermark_passes_its_end(spark, tmp_path):
    taps, closed = tmp_path / "taps", []
    taps.mkdir()
    stream = spark.readStream.schema("value string, timestamp timestamp").json(str(taps))
    summed = live.sums(live.facts(live.timed(live.messages(stream), 3), 3, 10), 5)
    query = summed.writeStream.foreachBatch(lambda batch, _: closed.extend(batch.collect()))
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def after(row, kafka):
        """The windows that have closed, by their beginning, and how many rows they had, when this row has come."""
        value = message("closing", tick={"at": [round(START + row * SECOND)]}).decode() if row is not None else "{"
        line = {"value": value, "timestamp": datetime.fromtimestamp(START / SECOND + kafka, UTC).isoformat()}
        file = tmp_path / "coming"
        file.write_text(json.dumps(line))
        file.rename(taps / f"{len(list(taps.iterdir()))}.json")
        query.processAllAvailable()
        ticks = [one for one in map(Sum._make, closed) if (one.kind, one.why) == ("tick", "published")]
        return {(one.window - START) / SECOND: one.many for one in ticks}

    try:
        assert after(row=1, kafka=1) == {}
        assert after(row=7.999999, kafka=8) == {}
        assert after(row=9, kafka=7) == {}  # by a clock that is fast
        assert after(row=None, kafka=60) == {}  # no message
        assert after(row=4, kafka=8) == {}  # later than others, but not too late
        assert after(row=8, kafka=8) == {0: 2}
        assert after(row=4, kafka=8) == {0: 2}  # too late
        assert after(row=13, kafka=13) == {0: 2, 5: 3}
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("said", "excess"),
    [
        ({"why": ["x"] * 100_000}, False),
        ({"why": ["x"] * 100_001}, True),
        ({"runs": {"why": {"of": ["x"], "rows": [100_000]}}}, False),
        ({"runs": {"why": {"of": ["x", "y"], "rows": [100_000, 1]}}}, True),
        ({"runs": {"why": {"of": ["x", "y"], "rows": [2**31 - 1, -(2**31)]}}}, True),
        ({"runs": {"why": {"of": ["x", "y"], "rows": [2, -1]}}}, True),
        ({"runs": {"why": {"of": ["x" * 2_600], "rows": [100_000]}}}, False),
        ({"runs": {"why": {"of": ["x" * 2_700], "rows": [100_000]}}}, True),
    ],
)
def test_what_would_fill_the_memory_is_not_laid_out(spark, said, excess):
    """A text of a thousand characters is short, until it stands for all rows of a message."""
    read = {"dropped": ["why"]}
    text = spark.createDataFrame([(message("x", dropped=said).decode(),)], "value string")
    read_as = text.select(F.from_json("value", message_schema(read)).alias("message"))
    ((found,),) = read_as.select(too_much("message", read)).collect()
    assert found is excess


def test_columns_in_runs_are_laid_out(found):
    row = found[START, "merc", "runs", None]
    assert (row["deliveries"], row["latency_max_us"]) == (3, 8)


def test_numbers_that_rise_are_laid_out(spark):
    said = {"from": [7, 12, 3], "rows": [4, 1, 0]}
    text = spark.createDataFrame([(message("x", dropped={"runs": {"event_sequence": said}}).decode(),)], "value string")
    read = text.select(F.from_json("value", message_schema({"dropped": ["event_sequence"]})).alias("message"))
    ((found,),) = read.select(laid_out("message", "dropped", ["event_sequence"])).collect()
    assert found.event_sequence == [7, 8, 9, 10, 12] == columns_of({"runs": {"x": said}})["x"]


def test_the_schema_is_made_from_the_definition():
    named = message_schema({"delivered": ["at", "subscriptions"]})
    runs = ("struct<of:array<array<bigint>>,rows:array<int>>", "struct<of:array<bigint>,rows:array<int>>")
    runs = f"struct<subscriptions:{runs[0]},at:{runs[1]}>"
    assert named["delivered"].dataType.simpleString() == (
        f"struct<subscriptions:array<array<bigint>>,at:array<bigint>,runs:{runs}>"
    )
    with pytest.raises(ValueError, match="delivered have no column weight"):
        message_schema({"delivered": ["at", "weight"]})
