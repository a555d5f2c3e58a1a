"""Figures of sums, the table of them, and what Kafka's clients are told. Without Spark."""

import random
import time
from datetime import UTC, datetime
from io import StringIO

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mercast.cli.with_spark import pairs
from mercast_streaming import live, synthetic
from mercast_streaming.figures import CELLS, SCHEMA, Sum, as_json, figures, key_json
from mercast_streaming.show import Newest

SECOND = synthetic.SECOND
START = synthetic.Setting.start


def one(kind, broker=1, many=1, numbers=(), *, copy=None, why=None, cell=None, cluster="alpha"):
    added = [*numbers, *[None] * (5 - len(numbers))]
    return Sum(START, "merc", cluster, broker, kind, copy, why, cell, many, added, added[0])


def ticked(broker, many, **numbers):
    return [one("tick", broker, many, [number], why=name) for name, number in numbers.items()]


SUMS = [
    one("published", 1, 4, [6, 400]),
    one("received", 2, 3, [6, 9, 2, 3, 0], copy=1),
    one("received", 2, 1, [2, 1, 1, 1, 0], copy=2),
    one("received", 3, 1, [1, 1, 0, 1, 2], copy=1),
    one("received", 3, 1, [1, 1, 0, 1, 3], copy=0),  # carried later than it came: no receipt, but a list of three
    one("delivered", 2, 2, [5, 4], copy=1, cell=69),
    one("delivered", 2, 1, [-9], copy=1, cell=-115),
    one("delivered", 3, 1, [900], copy=2, cell=340),
    one("dropped", 1, 1, why="stale"),
    *ticked(1, 2, published=8, delivered=3, forwarded=5, matches=16, bytes_in=100, bytes_out=900),
    *ticked(2, 2, published=0, delivered=1, forwarded=5, matches=0, bytes_in=100, bytes_out=300),
    *ticked(1, 2, clients=3, links=4, subscriptions=5, bytes_to_clients=60, cpu_us=70, tap_lost=0),
    *ticked(2, 3, clients=1, links=6, subscriptions=9, bytes_to_clients=1, cpu_us=2, tap_lost=3),
    *ticked(1, 2, queued_bytes=7, loop_lag_us=8, clock_offset_us=None),
    *ticked(2, 2, queued_bytes=6, loop_lag_us=9, clock_offset_us=5),
    one("drops", 1, 2, [3], why="stale"),
    one("drops", 2, 2, [4], why="stale"),
    one("drops", 2, 2, [1], why="no route"),
    one("late", 2, 5),
]


@pytest.mark.parametrize("seed", range(5))
def test_a_cluster_is_its_brokers_together_whatever_the_order(seed):
    shuffled = random.Random(seed).sample(SUMS, len(SUMS))
    found = figures(shuffled, 5)
    assert found == figures(SUMS, 5)
    assert [row["broker"] for row in found] == [None, 1, 2, 3]
    whole, first, second, third = found
    assert {name: whole[name] for name in ("window_start", "window_end", "strategy", "cluster")} == {
        "window_start": datetime.fromtimestamp(START / SECOND, UTC),
        "window_end": datetime.fromtimestamp(START / SECOND + 5, UTC),
        "strategy": "merc",
        "cluster": "alpha",
    }
    assert (whole["published"], whole["payload_bytes"], whole["dropped"], whole["late"]) == (4, 400, 1, 5)
    assert (whole["receipts"], whole["doubled_receipts"], whole["accuracy"]) == (4, 1, 0.5)
    assert (whole["hops"], whole["list_length"]) == (9 / 5, 11 / 5)
    assert (whole["entries_made"], whole["entries_reached"], whole["completeness"]) == (11, 4, 4 / 11)
    assert (whole["deliveries"], whole["doubled_deliveries"], whole["negative_latencies"]) == (3, 1, 1)
    assert (whole["latency_max_us"], second["latency_max_us"], first["latency_max_us"]) == (900, 5, None)
    assert (whole["all_published"], whole["matches_per_event"], whole["bytes_per_delivery"]) == (8, 2.0, 300.0)
    assert (first["clients"], second["clients"], whole["clients"], third["clients"]) == (1.5, 0.333, 1.833, None)
    assert [whole[name] for name in ("queued_bytes", "loop_lag_us", "clock_offset_us")] == [7, 9, 5]
    assert (whole["all_drops"], third["all_drops"]) == ({"no route": 1, "stale": 7}, {})
    assert (whole["ticks"], whole["cpu_us"], whole["tap_lost"], third["accuracy"]) == (4, 72, 3, 0.0)


@given(st.lists(st.integers(-(10**10), 10**10), min_size=1, max_size=50))
def test_percentiles_are_known_to_half_a_cell(latencies):
    cells = [int(np.sign(us) * np.floor(np.log1p(abs(us)) * CELLS)) for us in latencies]
    whole = figures([one("delivered", copy=1, cell=cell) for cell in cells], 5)[0]
    for name, rank in (("latency_p50_us", 50), ("latency_p95_us", 95), ("latency_p99_us", 99)):
        # Between two latencies far apart, half a cell of the farther one.
        farther = max(abs(np.percentile(latencies, rank, method=method)) for method in ("lower", "higher"))
        assert abs(whole[name] - np.percentile(latencies, rank)) <= synthetic.STATED * (farther + 1) + 0.1


def test_nonsense_is_bounded_to_what_a_table_can_hold():
    most = 2**63 - 1
    sums = [one("published", broker, 1, [most, -most]) for broker in (1, 2)]
    sums += [one("drops", broker, 1, [most], why="stale") for broker in (1, 2)]
    whole = figures(sums, 5)[0]
    assert (whole["entries_made"], whole["payload_bytes"], whole["all_drops"]) == (most, -most - 1, {"stale": most})
    assert orjson.loads(as_json(whole))["entries_made"] == most


def test_what_is_written_has_the_columns_of_the_table():
    kinds = {"bigint": int, "double": float, "timestamp": datetime, "string": str, "map<string,bigint>": dict}
    columns = [column.split(" ") for column in SCHEMA.split(", ")]
    for row in figures(SUMS, 5):
        assert list(row) == [name for name, _ in columns]
        assert [name for name, kind in columns if not isinstance(row[name], kinds[kind] | None)] == []


def test_a_key_names_the_broker_or_the_cluster(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        whole, broker = figures([one("late")], 5)
    finally:
        monkeypatch.undo()
        time.tzset()
    window = '"window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:00:05Z"'
    head = f'{{{window},"strategy":"merc","cluster":"alpha"'
    assert (key_json(whole), key_json(broker)) == (head + "}", head + ',"broker":1}')
    assert orjson.loads(as_json(whole))["broker"] is None


def test_messages_that_cannot_be_read_are_of_no_broker_and_no_cluster():
    (row,) = figures([Sum(START, None, None, None, "malformed", None, None, None, 3, [None] * 5, None)], 5)
    assert (row["strategy"], row["cluster"], row["broker"], row["malformed"], row["newer"]) == (None, None, None, 3, 0)


def test_settings_of_kafkas_clients_reach_sparks_reader_and_writer():
    given = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", 'sasl.jaas.config=Login required user="a=b";']
    setting = live.Setting("kafka:9093", "/tmp/none", kafka_options=pairs("--kafka-conf", given, pytest.fail))
    assert live.kafka_options(setting) == {
        "kafka.bootstrap.servers": "kafka:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'Login required user="a=b";',
    }


def test_the_table_shows_the_newest_window():
    taps = synthetic.make(synthetic.Setting(seconds=10))
    newest = Newest()
    assert newest.table().title == "no window has closed yet"
    newest.see(_row(key, known) for key, known in taps.known.items())
    table = newest.table()
    assert table.title == "2026-01-01 00:00:05 to 00:00:10 UTC"
    known = taps.known[START + 5 * SECOND, "merc", "alpha", None]
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["[bold]alpha[/] merc", *(f"  broker {number}" for number in range(1, 6))]
    assert cells[1][0] == f"{known['all_published'] / 5:,.0f}"
    assert cells[7][0] == f"{known['accuracy']:,.3f}"


@pytest.mark.parametrize(("width", "last"), [(60, "p99"), (80, "routing accuracy"), (140, "bytes /delivery")])
def test_a_narrow_terminal_has_fewer_columns_and_all_of_each(width, last):
    newest = Newest()
    for _ in range(2):  # empty, and with rows
        shown = StringIO()
        Console(file=shown, width=width).print(newest.table(width=width))
        assert "…" not in shown.getvalue()
        newest.see(figures(SUMS, 5))
    assert " ".join(newest.table(width=width).columns[-1].header.split()) == last


def test_rows_of_an_older_window_are_dim_and_clusters_in_order():
    newest = Newest()
    later = [one("late", cluster="beta")._replace(window=START + 5 * SECOND)]
    newest.see(figures([one("late", cluster="[x]"), one("late", cluster="alpha"), *later], 5))
    table = newest.table()
    assert list(table.columns[0].cells)[::2] == [r"[bold]\[x][/] merc", "[bold]alpha[/] merc", "[bold]beta[/] merc"]
    assert [row.style for row in table.rows] == ["dim"] * 4 + [""] * 2


def _row(key, known):
    start, strategy, cluster, broker = key
    begins, ends = (datetime.fromtimestamp(at / SECOND, UTC) for at in (start, start + 5 * SECOND))
    head = {"window_start": begins, "window_end": ends, "strategy": strategy, "cluster": cluster, "broker": broker}
    return head | known
