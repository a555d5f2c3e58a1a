"""Tap rows as messages: one definition, and nothing lost on the way."""

import gc
import sys
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content.event import EventId
from mercast.protocol.columns import COLUMNS, CONTROL_ROWS, EVENT_ROWS, HEADER, TAP_ROWS
from mercast.protocol.repeated import MOST_ROWS, Repeated, Rising, columns_of, in_one, in_row, in_runs, in_words
from mercast.protocol.rows import Copied, Delivered, Dropped, Published, Run, Subscribed
from mercast.protocol.tap_messages import Head, Held, Stream, by_partition, encode, partition_of
from mercast.taps.document import document

HEAD = Head(3, 1_763_380_000_000, "alpha", "merc")
EVENT = EventId(1, 1_763_380_000_001, 7)
QUOTE = Published(EVENT, 5_000_999, "quote", {"price": 1.5, "symbol": "ACME"}, 2, 10, 1, "pub.1")

ids = st.builds(EventId, st.integers(0, 3), st.integers(0, 2**40), st.integers(0, 2**14))
times = st.integers(0, 2**62)
texts = st.text(max_size=20)


@st.composite
def _taken(draw):
    """Rows, each with a time of its own."""
    found = []
    for row in (Delivered, Dropped, Published):
        rest = {
            Delivered: (texts, st.lists(st.integers(1, 9), max_size=3).map(tuple), st.integers(0, 9), st.just(1)),
            Dropped: (texts,),
            Published: (texts, st.dictionaries(texts, texts, max_size=3), *[st.integers(0, 99)] * 3, texts),
        }[row]
        found += at(enumerate(draw(st.lists(st.builds(row, ids, times, *rest), max_size=12))))
    return draw(st.permutations(found))


def at(rows):
    """Runs of one row each, with their times."""
    return [(when, Run.of(row)) for when, row in rows]


def read(message):
    """The rows of a message, by kind, as dicts; what a reader would do."""
    said = orjson.loads(message.value)
    rows = {kind: columns_of(said[kind]) for kind in COLUMNS if kind in said}
    return {
        kind: [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for kind, columns in rows.items()
    }


def test_a_message_as_it_is_documented():
    (message,) = encode(HEAD, 120, at([(6_000, QUOTE), (8, Dropped(EVENT, 7_000, "no route"))]))
    event = {"event_broker": [1], "event_incarnation": [1_763_380_000_001], "event_sequence": [7]}
    assert orjson.loads(message.value) == {
        "version": 3,
        "broker": 3,
        "incarnation": 1_763_380_000_000,
        "cluster": "alpha",
        "strategy": "merc",
        "first": 120,
        "count": 2,
        "published": {
            **event,
            "time": [5_000],
            "type": ["quote"],
            "attributes": [{"price": 1.5, "symbol": "ACME"}],
            "destinations": [2],
            "bytes": [10],
            "matches": [1],
            "publisher": ["pub.1"],
            "at": [6_000],
        },
        "dropped": {**event, "time": [7], "why": ["no route"], "at": [8]},
    }


def test_what_follows_itself_is_written_as_runs():
    """And as text where something else comes in between, or little is won."""
    whys = ["stale", "no route", "stale", "no route", "hop limit", "stale"] + ["no route"] * 2
    rows = [Dropped(EventId(1, 5, 7 + n), 7_000, why) for n, why in enumerate(whys)]
    (message,) = encode(HEAD, 0, at(zip([8, 8, 8, 8, 9, 9, 9, 9], rows, strict=True)))
    assert orjson.loads(message.value)["dropped"] == {
        "why": whys,
        "runs": {
            "event_broker": {"of": [1], "rows": [8]},
            "event_incarnation": {"of": [5], "rows": [8]},
            "event_sequence": {"from": [7], "rows": [8]},
            "time": {"of": [7], "rows": [8]},
            "at": {"of": [8, 9], "rows": [4, 4]},
        },
    }
    first = Run(Dropped, 4, 1, 5, range(7, 11), 7_000, whys[:4])
    runs = [(8, first), (9, Run(Dropped, 4, 1, 5, range(11, 15), 7_000, whys[4:]))]
    (together,) = encode(HEAD, 0, runs)
    assert read(together) == read(message)


ANY = st.one_of(st.just(None), texts, st.integers(0, 2**64 - 1))


@given(st.data())
def test_turns_are_the_rows_that_they_stand_for(data):
    """However their columns come: as one value, as a row, as a list, in numbers that are too large for anybody."""
    numbers = st.one_of(st.integers(0, 2), st.integers(0, 2**64 - 1))
    rows, turns = [], []
    for when in range(data.draw(st.integers(1, 6))):
        count, first = data.draw(st.integers(1, 9)), data.draw(numbers)
        kinds = (st.one_of(one, st.lists(one, min_size=count, max_size=count)) for one in (numbers, numbers, times))
        broker, life, time = map(data.draw, kinds)
        row = st.just(range(first, first + count))
        sequence = data.draw(row if first < 2**60 else st.lists(numbers, min_size=count, max_size=count))
        why = data.draw(st.one_of(texts, st.lists(texts, min_size=count, max_size=count)))
        turns.append((when, Run(Dropped, count, broker, life, sequence, time, why)))
        rows += at((when, one) for one in turns[-1][1])
    (one_by_one,), (together,) = encode(HEAD, 0, rows), encode(HEAD, 0, turns)
    assert read(one_by_one) == read(together)
    assert [row["why"] for row in read(together)["dropped"]] == [row.why for _, run in rows for row in run]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=4))
def test_runs_are_the_values_that_they_stand_for(parts):
    whole = [value for part in parts for value in part]
    assert list(in_runs(whole)) == list(in_row(tuple(whole))) == whole
    assert in_one(whole) == (whole if len({*whole}) > 1 else whole[0])
    runs = Repeated(whole, [1] * len(whole)).joined()
    assert columns_of({"runs": {"x": {"of": runs.values, "rows": runs.counts}}}) == {"x": whole}
    assert list(runs[1:3]) == whole[1:3]
    assert len(runs) == len(whole)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5), st.integers(0, 50))
def test_so_are_runs_that_rise(parts, cut):
    whole = [number for first, count in parts for number in range(first, first + count)]
    rising = Rising(*zip(*parts, strict=True)).joined()
    assert list(rising) == whole
    assert columns_of({"runs": {"x": in_words(rising)}}) == {"x": whole}
    assert [*rising[:cut], *rising[cut:]] == whole
    assert len(rising.values) == 1 + sum(one > before + 1 or one <= before for before, one in pairwise(whole))


def test_a_message_cannot_say_that_it_has_more_rows_than_fit_in_memory():
    with pytest.raises(ValueError, match="that cannot be"):
        columns_of({"runs": {"x": {"of": [1, 2], "rows": [MOST_ROWS, 1]}}})
    with pytest.raises(ValueError, match="that cannot be"):
        columns_of({"runs": {"x": {"of": [1, 2], "rows": [2**31, -(2**31)]}}})


def test_columns_are_the_fields():
    for kind, row in (TAP_ROWS | CONTROL_ROWS).items():
        names = [column.name for column in COLUMNS[kind]]
        fields = [name for name in row._fields if kind not in EVENT_ROWS or name not in ("event", "time")]
        event = ["event_broker", "event_incarnation", "event_sequence", "time"] if kind in EVENT_ROWS else []
        assert names == [*event, *fields, "at"]


def test_every_column_has_a_meaning():
    for column in (*HEADER, *(column for columns in COLUMNS.values() for column in columns)):
        assert not column.meaning[0].islower()
        assert column.meaning.endswith(".")


@given(_taken(), st.integers(400, 3_000))
def test_messages_stay_small_and_lose_nothing(rows, most):
    messages = list(encode(HEAD, 5, rows, most=most))
    whole = list(encode(HEAD, 5, rows))
    assert [message.first for message in messages] == [
        5 + sum(message.rows for message in messages[:at]) for at in range(len(messages))
    ]
    assert all(len(message.value) <= most for message in messages)
    told = [read(message) for message in messages if message.value]
    for kind, expected in (read(whole[0]) if whole else {}).items():
        found = [row for some in told for row in some.get(kind, [])]
        if all(message.value for message in messages):
            assert [_bare(row) for row in found] == [_bare(row) for row in expected]
    assert sum(message.rows for message in messages) == len(rows)


def _bare(row):
    return {name: value for name, value in row.items() if name != "attributes"}


def test_a_row_that_is_too_large_is_told_without_its_attributes():
    large = QUOTE._replace(attributes={"text": "x" * 2_000})
    messages = list(encode(HEAD, 0, at([(1, QUOTE), (2, large), (3, QUOTE)]), most=1_000))
    assert [row["attributes"] for message in messages for row in read(message)["published"]] == [
        {"price": 1.5, "symbol": "ACME"},
        None,
        {"price": 1.5, "symbol": "ACME"},
    ]
    client = Delivered(EVENT, 0, "c" * 2_000, (), 1)
    assert [message.value for message in encode(HEAD, 0, at([(1, client)]), most=1_000)] == [b""]


def test_a_stream_goes_on_after_it_was_told():
    """Nothing of a message is in the next one, and numbers go on."""
    stream = Stream(HEAD)
    for first in (0, 3, 6):
        row = range(first, first + 3)
        assert not stream.add(Run(Dropped, 3, 1, 5, row, 7_000, ["a", "b", "c"] if first != 3 else "same"), 1)
        (message,) = stream.end()
        assert [one["event_sequence"] for one in read(message)["dropped"]] == list(row)
        assert (message.first, message.rows, stream.next) == (first, 3, first + 3)
    assert stream.end() == []


def test_a_turn_leaves_nothing_behind():
    """It would lie between the events of later turns: see gathered.py."""
    stream = Stream(HEAD)

    def write(turns):
        for turn in turns:
            row, text = range(turn * 50, turn * 50 + 50), [{"price": turn + at / 2} for at in range(50)]
            run = Run(Published, 50, 1, 1_763_380_000_000 + turn, row, turn, "quote", text, 2, 300 + turn, 1, "pub.1")
            for _, part in by_partition(run, 4):
                assert not stream.add(part, 1_763_380_000_000_000 + turn)

    write(range(100))
    assert len(stream.end()) == 1
    gc.collect()
    before = sys.getallocatedblocks()
    write(range(1_000, 1_090))
    gc.collect()
    assert sys.getallocatedblocks() - before < 10  # of 90 turns
    (message,) = stream.end()
    assert message.rows == 90 * 50


@pytest.mark.parametrize(
    ("held", "attributes", "publisher"),
    [
        (Held(), {"price": 1.5, "symbol": "ACME"}, "pub.1"),
        (Held(frozenset(["price"]), None, frozenset(["pub.1"])), {"price": 1.5}, "pub.1"),
        (Held(frozenset(), None, frozenset(["sub.1"])), None, None),
    ],
)
def test_what_taps_may_hold_of_events(held, attributes, publisher):
    (message,) = encode(HEAD, 0, at([(1, QUOTE)]), held)
    (row,) = read(message)["published"]
    assert (row["attributes"], row["publisher"]) == (attributes, publisher)


def test_what_taps_may_hold_of_filters():
    rows = [Subscribed("c", 1, type, "price > 1", True) for type in ("quote", "trade", None)]
    (message,) = encode(HEAD, 0, at(enumerate(rows)), Held(filters=frozenset(["quote"])))
    assert [row["filter"] for row in read(message)["subscribed"]] == ["price > 1", None, None]


@given(st.lists(ids, min_size=1, max_size=50), st.integers(1, 12), st.sampled_from([0, 1, 50, 9_000]))
def test_all_rows_of_an_event_lie_in_one_partition(events, partitions, in_row):
    """Whether they follow each other, so many of them, or not."""
    brokers, lives, sequences = map(list, zip(*events, strict=True))
    count = in_row or len(events)
    row = range(sequences[0], sequences[0] + in_row)
    columns = (brokers[0], lives[0], row) if in_row else (brokers, lives, sequences)
    run = Run(Dropped, count, *columns, list(range(count)), "why")
    found = []
    for partition, part in by_partition(run, partitions):
        assert 0 <= partition < partitions
        assert {partition_of(row.event, partitions) for row in part} == {partition}
        found += part
    assert found == list(run)


def test_partitions_are_used_alike():
    """And for ever in the same way: readers and brokers of different versions agree."""
    found = [partition_of(EventId(1, 1_763_380_000_000, block << 12), 4) for block in range(4_000)]
    assert all(900 < found.count(partition) < 1_100 for partition in range(4))
    assert found[:12] == [partition_of(EventId(1, 1_763_380_000_000, (block << 12) + 4095), 4) for block in range(12)]
    assert partition_of(EventId(1, 2, 3), 1_000_003) == 60_234


def test_the_rows_are_documented():
    assert (Path(__file__).parents[2] / "docs/taps.md").read_text() == document(), "make docs"


def test_copies_hold_what_they_held_before():
    """Rows travel between brokers of different versions: what is new has a default."""
    assert Copied(EVENT, 0, 1, 1, 1, 1, True) == Copied(EVENT, 0, 1, 1, 1, 1, True, False, 0)
    assert Published(EVENT, 0, "quote", {}, 1, 2, 3).publisher is None
