"""Who is there and how, from tap rows and from admin ports, on a clock of our own."""

from orjson import loads

from mercast.dashboard.brokers import DEAD, FORGET, MOST, SILENT, TAPS, UNKNOWN, UP, Brokers
from mercast.overlay.cluster import NUMBER
from mercast.protocol import rows
from mercast.protocol.rows import Run
from mercast.protocol.tap_messages import Head, encode


def said(broker, *some, incarnation=1, at=5):
    """A message, as a broker writes it."""
    head = Head(broker, incarnation, "west", "ddbr")
    (message,) = encode(head, 0, [(at, one if isinstance(one, Run) else Run.of(one)) for one in some])
    return loads(message.value)


def tick(**changed):
    names = dict.fromkeys(rows.Ticked._fields, 0) | {"interval_us": 2_000_000, "dropped": {}}
    return rows.Ticked(**names | changed)


def state(brokers, id, now, away=frozenset()):
    return brokers.state(brokers.get(id), now, away)


def counters(broker, incarnation=1, links=(), dropped=None, **counted):
    names = ("published", "received", "forwarded", "delivered", "bytes_in", "bytes_out", "bytes_to_clients", "cpu_us")
    return {
        "broker": broker, "incarnation": incarnation, "cluster": "west", "strategy": "ddbr", "ready": True,
        "reason": "", "draining": False, "counted": dict.fromkeys(names, 0) | counted, "dropped": dropped or {},
        "clients": 2, "subscriptions": 3, "advertisements": 4, "types": 5, "queued_bytes": 6,
        "links": [{"neighbour": one, "received": many, "queued_bytes": 7} for one, many in links],
    }  # fmt: skip


def test_a_broker_is_up_while_it_ticks_dead_when_silent_and_unknown_without_a_source():
    brokers = Brokers()
    brokers.take_tap(said(1, tick(published=10, cpu_us=500_000, dropped={"no route": 4}, clients=3)), 10.0)
    assert (state(brokers, 1, 10.0), state(brokers, 1, 10.0 + SILENT)) == (UP, UP)
    assert state(brokers, 1, 10.1 + SILENT) == DEAD
    assert state(brokers, 1, 10.1 + SILENT, frozenset([TAPS])) == UNKNOWN
    one = brokers.get(1)
    assert (one.rates["published"], one.drops, one.rates["dropped"], one.cpu) == (5.0, {"no route": 2.0}, 2.0, 0.25)
    assert one.states["clients"] == 3
    brokers.look(11.0 + SILENT)
    assert (one.rates, one.drops, one.cpu) == ({}, {}, None)  # nothing is known of what it does
    brokers.look(12.0 + FORGET)
    assert len(brokers) == 0


def test_one_that_is_known_by_control_rows_only_is_dead_when_no_tick_comes():
    brokers = Brokers()
    brokers.take_control(said(1, rows.Linked(2, 1)), 10.0)
    assert (state(brokers, 1, 11.0), state(brokers, 1, 20.0)) == (UNKNOWN, DEAD)
    assert state(brokers, 1, 20.0, frozenset([TAPS])) == UNKNOWN


def test_a_snapshot_replaces_what_was_linked_and_links_come_and_go_after_it():
    brokers = Brokers()
    brokers.take_control(said(1, rows.Linked(2, 1), rows.Linked(3, 1)), 1.0)
    advertised = rows.Advertised("c", 1, "t", None)
    brokers.take_control(
        said(1, rows.Snapshot(False, 2), rows.Linked(3, 5), advertised, rows.Snapshot(True, 2), at=6), 2.0
    )
    assert {id: link.cost for id, link in brokers.get(1).links.items()} == {3: 5}
    assert brokers.get(1).states["advertisements"] == 1
    brokers.take_control(said(1, rows.Linked(4, 1), rows.Unlinked(3), rows.Unadvertised("c", 1), at=7), 3.0)
    assert (set(brokers.get(1).links), brokers.get(1).states["advertisements"]) == ({4}, 0)
    brokers.take_control(said(1, rows.Linked((1 << 16) + 9, 1), at=8), 4.0)  # in its other cluster
    assert (set(brokers.get(1).links), brokers.get(1).edge) == ({4, 9}, True)
    assert 9 & NUMBER == 9


def test_a_new_life_begins_with_nothing_and_an_old_one_is_not_heard():
    brokers = Brokers()
    brokers.take_control(said(1, rows.Linked(2, 1)), 1.0)
    brokers.take_control(said(1, rows.Linked(3, 1), incarnation=2), 2.0)
    brokers.take_control(said(1, rows.Linked(4, 1)), 3.0)
    assert (set(brokers.get(1).links), brokers.get(1).incarnation) == ({3}, 2)


def test_receipts_give_the_rate_of_a_link():
    brokers = Brokers()
    brokers.take_control(said(1, rows.Linked(2, 1)), 0.0)
    copies = Run(rows.Copied, 30, 2, 1, 1, 0, 2, 1, 1, 1, True, True, 0)
    for second in range(1, 40):
        brokers.take_tap(said(1, tick(), copies), float(second))
        brokers.look(float(second))
    assert 29 < brokers.get(1).links[2].rate <= 30
    brokers.look(60.0)
    assert brokers.get(1).links[2].rate is None


def test_counters_of_an_admin_port_become_rates_of_broker_and_links():
    brokers = Brokers()
    brokers.take_counters(counters(1, links=[(2, 100), (2, 50), (3, 0)], published=10), 1.0)
    one = brokers.get(1)
    assert (one.rates, one.links[2].rate, state(brokers, 1, 1.0)) == ({}, None, UP)
    brokers.take_counters(counters(1, links=[(2, 110), (2, 60)], published=30, cpu_us=10**6, dropped={"stale": 4}), 3.0)
    one = brokers.get(1)
    assert (one.rates["published"], one.cpu, one.drops) == (10.0, 0.5, {"stale": 2.0})
    assert {id: (link.rate, link.queued) for id, link in one.links.items()} == {2: (10.0, 14)}
    brokers.take_counters(counters(1, incarnation=2, links=[(2, 1)]), 4.0)  # it counts anew
    assert (brokers.get(1).rates, brokers.get(1).links[2].rate) == ({}, None)


def test_of_those_who_say_nothing_others_word_counts():
    brokers = Brokers()
    view = {
        "members": [{"id": 1, "also_in": []}, {"id": 2, "also_in": ["backbone"]}, {"id": 3, "also_in": []}],
        "links": [{"neighbour": 2, "rtt_ms": 0.5}],
        "overlay": {
            "brokers": [{"id": 1, "reachable": True}, {"id": 2, "reachable": True}, {"id": 3, "reachable": False}],
            "links": [
                {"between": [1, 2], "cost": 4, "state": "up"},
                {"between": [2, 3], "cost": 1, "state": "one end only"},
            ],
        },
    }
    brokers.take_counters(counters(1, links=[(2, 0)]), 1.0)
    brokers.take_overlay({"broker": {"id": 1, "cluster": "west", "strategy": "ddbr"}, **view}, 1.0)
    assert [state(brokers, id, 1.0) for id in (1, 2, 3)] == [UP, UP, DEAD]
    assert [state(brokers, id, 9.0) for id in (1, 2, 3)] == [DEAD, UNKNOWN, UNKNOWN]
    assert (brokers.get(1).links[2].rtt_ms, brokers.get(1).links[2].cost, brokers.get(2).edge) == (0.5, 4, True)
    assert {id: set(brokers.get(id).links) for id in (1, 2, 3)} == {1: {2}, 2: {1, 3}, 3: {2}}


def test_memory_is_bounded_whatever_is_said():
    brokers = Brokers()
    for id in range(MOST + 10):
        brokers.take_tap(said(id, tick()), 1.0)
    assert len(brokers) == MOST
    brokers.take_control(said(1, *(rows.Linked(id, 1) for id in range(5_000))), 1.0)
    assert len(brokers.get(1).links) <= 512
