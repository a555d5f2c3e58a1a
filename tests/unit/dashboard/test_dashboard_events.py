"""The path of an event, from memory, files and Parquet."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from orjson import loads

from mercast.content.event import EventId
from mercast.dashboard.events import Recent, parse_id, path
from mercast.dashboard.older import Older
from mercast.protocol import rows
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Head, encode

EVENT, OTHER = EventId(1, 100, 7), EventId(1, 100, 8)


def said(broker, at, *some):
    (message,) = encode(Head(broker, 1, "west", "ddbr"), 0, [(at, Run.of(one)) for one in some])
    return message.value


MESSAGES = [
    said(3, 900, rows.Copied(EVENT, 100_000, 2, 2, 1, 1, True, True), rows.Delivered(EVENT, 100_000, "c", (1,), 2)),
    said(2, 500, rows.Copied(EVENT, 100_000, (1 << 16) + 1, 1, 2, 1, False), rows.Copied(OTHER, 1, 1, 1, 1, 1, True)),
    said(1, 950, rows.Published(EVENT, 100_000, "stock.quote", {"price": 7}, 2, 9, 0, "writer")),
    b"no JSON 7",
]
PATH = [
    {"kind": "published", "broker": 1, "at": 100, "time": 100, "type": "stock.quote", "destinations": 2, "matches": 0},
    {"kind": "received", "broker": 2, "at": 500, "time": 100, "hops": 1, "list_length": 2, "copy": 1,
     "interested": False, "made": 0, "neighbour": 1},
    {"kind": "received", "broker": 3, "at": 900, "time": 100, "hops": 2, "list_length": 1, "copy": 1,
     "interested": True, "made": 0, "neighbour": 2},
    {"kind": "delivered", "broker": 3, "at": 900, "time": 100, "hops": 2, "copy": 1, "client": "c"},
]  # fmt: skip


@pytest.mark.parametrize("text", ["1.100.7", "1/100/7", "[1, 100, 7]", " 1 100 7 "])
def test_ids_as_people_write_them(text):
    assert parse_id(text) == EVENT


@pytest.mark.parametrize("text", ["", "7", "1.100", "1.2.3.4"])
def test_what_is_no_id_is_told_what_would_be_right(text):
    with pytest.raises(ValueError, match="broker, incarnation, sequence"):
        parse_id(text)


def test_a_path_is_in_the_order_of_time_and_each_row_once():
    assert path(EVENT, MESSAGES + MESSAGES) == PATH
    assert path(EventId(2, 100, 7), MESSAGES) == []


def test_recent_messages_are_bounded_and_the_newest_event_is_known():
    recent = Recent(most=len(MESSAGES[2]) + len(MESSAGES[1]))
    for message in MESSAGES[:3]:
        recent.take(message, loads(message))
    assert (list(recent), recent.last) == (MESSAGES[1:3], EVENT)


def test_older_rows_come_from_the_files_of_brokers(tmp_path):
    for number, message in enumerate(MESSAGES):
        (tmp_path / f"mercast.taps-{number}.jsonl").write_bytes(message + b"\n")
    (tmp_path / "mercast.control-1.jsonl").write_bytes(MESSAGES[0])
    older = Older(tmp_path, "mercast")
    assert (path(EVENT, older), older.whole) == (PATH, True)
    hasty = Older(tmp_path, "mercast", within=-1)
    assert (path(EVENT, hasty), hasty.whole) == ([], False)


def test_older_rows_come_from_parquet_as_the_audit_reads_it(tmp_path):
    folder = tmp_path / "taps.parquet"
    folder.mkdir()
    topics = ["mercast.taps"] * len(MESSAGES)
    table = pa.table({"topic": topics, "partition": [0] * len(MESSAGES), "value": pa.array(MESSAGES, pa.binary())})
    pq.write_table(table, folder / "part-0.parquet")
    assert path(EVENT, Older(folder, "mercast")) == PATH
    assert path(EVENT, Older(folder, "other")) == []
