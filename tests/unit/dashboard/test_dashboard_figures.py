"""Windows of the metrics topic: shown as they are, joined where several clusters are looked at."""

from datetime import UTC, datetime

import pytest
from orjson import loads

from mercast.dashboard.figures import KEPT, WINDOWS, Figures
from mercast.dashboard.load import MOST_POINTS, Choice, Load
from mercast_streaming.figures import Sum, as_json, figures


def rows(begin, cluster, receipts, interested, cell, brokers=(1,)):
    sums = []
    for id in brokers:
        head = (begin * 1_000_000, "ddbr", cluster, id)
        sums.append(Sum(*head, "received", 1, None, None, receipts, [receipts, 0, interested, interested, 0], None))
        sums.append(Sum(*head, "published", None, None, None, 10, [receipts, 0], None))
        sums.append(Sum(*head, "delivered", 1, None, cell, 5, [0], 1_000))
    return [loads(as_json(row)) for row in figures(sums, 5)]


def taken(*some):
    found = Figures()
    for row in some:
        found.take(row)
    return found


def test_the_newest_window_is_what_was_written():
    west, broker = rows(100, "west", 10, 8, 50)
    found = taken(*rows(95, "west", 4, 4, 10), west, broker)
    newest = found.newest(Choice("west", "ddbr"))
    assert {name: newest[name] for name in KEPT} == {name: west[name] for name in KEPT}
    assert (newest["begin"], newest["end"], newest["clusters"]) == (100_000, 105_000, 1)
    assert found.broker(1)["accuracy"] == broker["accuracy"]
    assert (found.newest(Choice("east")), found.broker(2)) == (None, None)


def test_several_clusters_are_joined_truthfully():
    west, east = rows(100, "west", 10, 8, 50)[0], rows(100, "east", 30, 30, 80)[0]
    joined = taken(west, east).newest(Choice())
    assert joined["accuracy"] == pytest.approx(38 / 40)
    assert (joined["receipts"], joined["deliveries"], joined["clusters"]) == (40, 10, 2)
    assert joined["latency_p99_us"] == max(west["latency_p99_us"], east["latency_p99_us"])


def test_history_has_each_window_once_and_not_too_many():
    found = Figures()
    for number in range(WINDOWS + 50):
        for _ in range(2):  # a batch that was run again writes the same
            found.take(rows(number * 5, "west", number + 1, 1, 50)[0])
    history = found.history(Choice(), 0)
    assert len(history["begin"]) <= MOST_POINTS
    assert (history["begin"][-1], history["receipts"][-1]) == ((WINDOWS + 49) * 5_000, WINDOWS + 50)
    short = found.history(Choice(), (WINDOWS + 40) * 5_000)
    assert short["receipts"] == list(range(WINDOWS + 41, WINDOWS + 51))


def test_what_spark_could_not_read_is_counted():
    row = {
        "window_start": datetime.fromtimestamp(1, UTC).isoformat(),
        "window_end": datetime.fromtimestamp(6, UTC).isoformat(),
    }
    assert taken(row | {"cluster": None, "strategy": None, "malformed": 3, "newer": 1}).unreadable == 4


class Up:
    def __init__(self, cluster, published):
        self.cluster, self.strategy, self.cpu, self.rates = cluster, "ddbr", 0.5, {"published": published}


def test_load_is_added_up_by_second_and_bounded():
    load = Load()
    for second in range(5_000):
        load.look([Up("west", 1.0), Up("west", 2.0), Up("east", float(second))], second * 1_000)
    assert load.newest(Choice("west"), 4_999_000)["published"] == 3.0
    assert load.newest(Choice(), 4_999_000)["cpu"] == 1.5
    hour = load.history(Choice("west"), 0)
    assert (len(hour["at"]), hour["at"][-1], set(hour["published"])) == (MOST_POINTS, 4_999_000, {3.0})
    assert load.history(Choice(), 4_998_000)["published"] == [5_001.0, 5_002.0]
    assert load.newest(Choice("north"), 4_999_000) is None
