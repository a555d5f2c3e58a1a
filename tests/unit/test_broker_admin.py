"""Admin HTTP of a broker, asked as others ask it."""

import asyncio
import json
import os
from contextlib import ExitStack
from socket import create_connection
from time import monotonic
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from observed import Link, Member, Pair, Session, StandIn, served
from prometheus_client.parser import text_string_to_metric_families

from mercast import __version__
from mercast.broker.addresses import Address
from mercast.broker.admin import Admin
from mercast.broker.admin_door import MOST_CONNECTIONS
from mercast.broker.config import BrokerConfig
from mercast.broker.lag import BOUNDS, LagProbe
from mercast.broker.tables import MOST_ROWS
from mercast.content import Filter
from mercast.content.types import AttributeType, Declaration
from mercast.protocol import stimuli
from mercast.protocol.messages import Record
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.strategies import STRATEGIES


def get(address, path, **headers):
    """Status, content type and text."""
    try:
        with urlopen(Request(f"http://{address}{path}", headers=headers), timeout=100) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def get_json(address, path):
    status, content_type, text = get(address, path)
    assert (status, content_type) == (200, "application/json")
    return json.loads(text)


def samples(text):
    """By name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name, *sorted(sample.labels.items())] = sample.value
    return found


def standing(pair, strategy="ddbr", **more):
    return StandIn(BrokerConfig(id=1, strategy=strategy), pair.cores[1], **more)


def test_lives_and_is_ready_or_says_why_not():
    broker = standing(Pair())
    with served(broker) as address:
        assert get(address, "/livez") == (200, "text/plain; charset=utf-8", "ok\n")
        assert get_json(address, "/readyz") == {"ready": True, "reason": ""}
        broker.not_ready = "no link yet"
        assert get(address, "/readyz")[::2] == (503, '{"ready":false,"reason":"no link yet"}\n')
        broker.not_ready, broker.draining = "", True
        assert get(address, "/readyz")[::2] == (503, '{"ready":false,"reason":"draining"}\n')
        assert get(address, "/livez")[0] == 200


def test_the_index_names_what_there_is_and_nothing_can_be_changed():
    with served(standing(Pair())) as address:
        status, _, text = get(address, "/")
        assert status == 200
        assert text.startswith(f"mercast {__version__}, broker 1 of cluster default\n")
        for path in [line.split()[0] for line in text.splitlines() if line.startswith("/")]:
            assert get(address, path)[0] == 200
        with pytest.raises(HTTPError, match="405") as refused:
            urlopen(Request(f"http://{address}/tables", data=b"x", method="POST"), timeout=100)
        refused.value.close()
        assert get(address, "/nowhere")[0] == 404


def test_counters_tell_what_was_done_and_how_it_is():
    broker = standing(Pair(), links={2: Link("h:9", 70, received=8)}, sessions={"a": Session("a", "h:3", 5)})
    broker.counters.published, broker.counters.received = 7, 8
    broker.counters.dropped["no route"] = 2
    with served(broker) as address:
        said = get_json(address, "/counters")
    assert said["counted"].pop("cpu_us") > 0
    assert said == {
        "broker": 1,
        "incarnation": 100,
        "cluster": "default",
        "strategy": "ddbr",
        "ready": True,
        "reason": "",
        "draining": False,
        "counted": {"published": 7, "received": 8} | dict.fromkeys(
            ("forwarded", "delivered", "bytes_in", "bytes_out", "bytes_to_clients"), 0
        ),
        "dropped": {"no route": 2},
        "clients": 1,
        "subscriptions": 0,
        "advertisements": 0,
        "types": 0,
        "queued_bytes": 75,
        "links": [{"neighbour": 2, "received": 8, "queued_bytes": 70}],
    }  # fmt: skip


def test_the_overlay_as_the_broker_sees_it():
    pair = Pair()
    pair.measure(rtt=0.00025, clock_offset=-0.0015)
    pair.hear_of(
        Record(2, 200, 7, (0,), ((1, 1), (3, 1), (4, 2))),  # 3 has died
        Record(3, 300, 2, (0,), ((8, 1),)),
        Record(4, 400, 3, (0,), ((2, 3), (5, 1))),  # 5 is about to come up
        Record(8, 800, 1, (0,), ((3, 1),)),
    )
    members = {1: Member("h:1", "h:2"), 6: Member("[fe80::1]:1", "h:3")}
    broker = standing(pair, links={2: Link("h:9", 70)}, members=(members,))
    with served(broker) as address:
        seen = get_json(address, "/overlay")
    assert seen["broker"].pop("uptime_seconds") >= 0
    assert seen["broker"].pop("pid") == os.getpid()
    assert seen == {
        "broker": {
            "id": 1,
            "incarnation": 100,
            "cluster": "default",
            "cluster_number": 0,
            "exports": ["*"],
            "imports": ["*"],
            "strategy": "ddbr",
            "version": __version__,
            "ready": True,
            "reason": "",
            "draining": False,
        },
        "members": [
            {"id": 1, "peer_address": "h:1", "client_address": "h:2", "also_in": []},
            {"id": 6, "peer_address": "[fe80::1]:1", "client_address": "h:3", "also_in": []},
        ],
        "links": [
            {
                "neighbour": 2,
                "address": "h:9",
                "wire_version": 1,
                "cost": 1,
                "rtt_ms": 0.25,
                "clock_offset_ms": -1.5,
                "queued_bytes": 70,
            }
        ],
        "overlay": {
            "brokers": [
                {"id": 1, "incarnation": 100, "sequence": 1, "reachable": True, "cost": 0, "next_hop": 1},
                {"id": 2, "incarnation": 200, "sequence": 7, "reachable": True, "cost": 1, "next_hop": 2},
                {"id": 3, "incarnation": 300, "sequence": 2, "reachable": False, "cost": None, "next_hop": None},
                {"id": 4, "incarnation": 400, "sequence": 3, "reachable": True, "cost": 4, "next_hop": 2},
                {"id": 8, "incarnation": 800, "sequence": 1, "reachable": False, "cost": None, "next_hop": None},
            ],
            "links": [
                {"between": [1, 2], "cost": 1, "state": "up"},
                {"between": [2, 3], "cost": 1, "state": "one end only"},
                {"between": [2, 4], "cost": 3, "state": "up"},
                {"between": [3, 8], "cost": 1, "state": "out of reach"},
                {"between": [4, 5], "cost": 1, "state": "one end only"},
            ],
        },
        "carried": [],
        "clashes": [],
        "others": [],
    }


def test_a_connection_and_its_neighbour_may_come_one_after_the_other():
    broker = standing(Pair(), links={7: Link("h:7", 1)})
    with served(broker) as address:
        links = get_json(address, "/overlay")["links"]
    none = {"rtt_ms": None, "clock_offset_ms": None}
    assert links == [
        {"neighbour": 2, "address": None, "wire_version": None, "cost": 1, **none, "queued_bytes": None},
        {"neighbour": 7, "address": "h:7", "wire_version": 1, "cost": None, **none, "queued_bytes": 1},
    ]


HELD = {
    "ddbr": {"R-SRT": 1, "R-PRT": 1},
    "merc": {"R-SRT": 1, "R-PRT": 1},
    "unicast": {"R-SRT": 1, "R-PRT": 1},
    "fbr": {"SRT": 2, "PRT": 1, "PRT distinct": 1},
    "static-hash": {"kept": 1},
    "flooding": {},
}
"""What broker 1 keeps of the clients of broker 2, which has one advertisement and one subscription."""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tables(strategy):
    pair = Pair(strategy)
    quote = Declaration("quote", None, {"price": AttributeType.FLOAT}, open=True)
    owned = next(type for type in "abcdefgh" if StaticHash.owner(pair.cores[1], type) == 1)
    pair.tell(1, stimuli.Declare("anna", 1, quote))
    pair.tell(1, stimuli.Advertise("anna", 2, owned, Filter.parse("price < 100")))
    pair.tell(2, stimuli.Advertise("bob", 1, "quote", Filter()))
    pair.tell(2, stimuli.Subscribe("bob", 2, owned, Filter.parse("price > 5")))
    pair.tell(1, stimuli.Subscribe("anna", 3, None, Filter()))
    broker = standing(pair, strategy, sessions={"anna": Session("anna", "h:5", 9)})
    with served(broker) as address:
        brief, full = get_json(address, "/tables"), get_json(address, "/tables?full=1")
        assert get(address, "/tables?full=yes")[::2] == (400, "full=yes: expected 0 or 1\n")
    counts = {"clients": 1, "advertisements": 1, "subscriptions": 1, "types": 1}
    kept = brief.pop("kept")
    assert brief == {"broker": 1, "strategy": strategy, "counts": counts, "tables": HELD[strategy]}
    assert kept == full.pop("kept")
    listed = full.pop("full")
    assert full == brief
    heard = listed.pop("heard")["rows"]
    mine = {"client": "anna", "type": owned, "filter": "price < 100"}
    declared = {"name": "quote", "parent": None, "open": True, "attributes": {"price": "float"}}
    assert {name: table["rows"] for name, table in listed.items()} == {
        "clients": [{"name": "anna", "address": "h:5", "queued_bytes": 9}],
        "advertisements": [{"request": 2, **mine}],
        "subscriptions": [{"client": "anna", "request": 3, "type": None, "filter": ""}],
        "types": [declared],
    }
    bobs = {"from": 2, "broker": 2, "client": "bob"}
    advertised = {"kind": "advertisement", "request": 1, **bobs, "type": "quote", "filter": ""}
    subscribed = {"kind": "subscription", "request": 2, **bobs, "type": owned, "filter": "price > 5"}
    expected = {"static-hash": [subscribed], "flooding": []}.get(strategy, [advertised, subscribed])
    assert sorted(heard, key=lambda row: row["request"]) == expected


def test_what_is_kept_of_others():
    pair = Pair()
    pair.tell(1, stimuli.Declare("anna", 1, Declaration("quote", None, {"price": AttributeType.FLOAT}, open=True)))
    pair.tell(1, stimuli.Advertise("anna", 2, "quote", Filter()))
    pair.tell(2, stimuli.Subscribe("bob", 1, "quote", Filter()))
    pair.hear_of(Record(9, 1, 1, (0,), ((8, 1),)))
    pair.tell(1, stimuli.Publish("anna", 3, "quote", {"price": 1.0}, 1))
    pair.tell(2, stimuli.Publish("bob", 2, "quote", {"price": 1.0}, 1))
    broker = standing(pair, members=({2: Member("h:1", "")},))
    with served(broker) as address:
        kept = get_json(address, "/tables")["kept"]
    # Both tell of the declaration; broker 2 has a subscription besides, and has advertised by publishing.
    assert kept == {
        "members": 1,
        "records": 3,
        "channels": 1,
        "told": 2,
        "heard": 3,
        "unsettled": 0,
        "statements": 1,
        "seen windows": 0,
        "splits": 1,
    }


def test_a_long_table_is_listed_up_to_a_bound():
    pair = Pair()
    for number in range(1, MOST_ROWS + 2):
        pair.tell(1, stimuli.Subscribe("anna", number, "quote", Filter()))
    with served(standing(pair)) as address:
        answer = get_json(address, "/tables?full=1")
    assert answer["counts"]["subscriptions"] == MOST_ROWS + 1
    assert len(answer["full"]["subscriptions"]["rows"]) == MOST_ROWS
    assert answer["full"]["subscriptions"]["more"]
    assert not answer["full"]["advertisements"]["more"]


def counted(broker):
    """A number of its own for each counter."""
    counters = broker.counters
    counters.published, counters.refused, counters.received = 11, 12, 13
    counters.forwarded, counters.delivered, counters.slow_clients = 14, 15, 16
    counters.dropped.update({"repeat": 3, "no route": 1})
    counters.denied["strategy"] = 2
    counters.slowed, counters.moved, counters.too_fast["client publish_events_per_second"] = 17, 18, 19
    broker.calls.add("a peer")
    broker.strangers.update({"one": broker.now() - 2, "other": broker.now() - 1})
    counters.bytes_from_clients, counters.bytes_to_clients = 101, 102
    counters.bytes_from_peers, counters.bytes_to_peers = 103, 104
    return broker


def test_metrics():
    pair = Pair()
    pair.measure(rtt=0.002, clock_offset=0.5)
    pair.tell(1, stimuli.Declare("anna", 1, Declaration("quote")))
    pair.tell(1, stimuli.Advertise("anna", 2, "quote", Filter()))
    pair.tell(1, stimuli.Subscribe("anna", 3, None, Filter()))
    sessions = {"anna": Session("anna", "h:5", 9), "bob": Session("bob", "h:6", 20)}
    links = {2: Link("h:9", 70), 3: Link("h:8", 30)}
    members = {who: Member("", "") for who in (1, 2, 3, 4)}
    broker = counted(standing(pair, sessions=sessions, links=links, members=(members,)))
    with served(broker) as address:
        status, content_type, text = get(address, "/metrics")
        modern = get(address, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert (status, content_type.partition(";")[0]) == (200, "text/plain")
    assert modern[1].startswith("application/openmetrics-text")
    assert modern[2].endswith("# EOF\n")
    found = samples(text)
    ours = {key: value for key, value in found.items() if key[0].startswith("mercast_") and "loop" not in key[0]}
    assert ours == {
        ("mercast_build_info", ("cluster", "default"), ("strategy", "ddbr"), ("version", __version__)): 1,
        ("mercast_events_published_total",): 11,
        ("mercast_requests_refused_total",): 12,
        ("mercast_events_matched_total",): 0,
        ("mercast_events_carried_total",): 0,
        ("mercast_defects_total",): 0,
        ("mercast_events_received_total",): 13,
        ("mercast_events_forwarded_total",): 14,
        ("mercast_events_delivered_total",): 15,
        ("mercast_events_dropped_total", ("reason", "repeat")): 3,
        ("mercast_events_dropped_total", ("reason", "no route")): 1,
        ("mercast_slow_clients_total",): 16,
        ("mercast_publishers_slowed_total",): 17,
        ("mercast_clients_moved_total",): 18,
        ("mercast_events_refused_total", ("reason", "client publish_events_per_second")): 19,
        ("mercast_control_refused_total",): 0,
        ("mercast_connections_denied_total", ("code", "strategy")): 2,
        ("mercast_client_bytes_total", ("direction", "in")): 101,
        ("mercast_client_bytes_total", ("direction", "out")): 102,
        ("mercast_peer_bytes_total", ("direction", "in")): 103,
        ("mercast_peer_bytes_total", ("direction", "out")): 104,
        ("mercast_clients",): 2,
        ("mercast_client_queued_bytes",): 29,
        ("mercast_link_queued_bytes",): 100,
        ("mercast_ready",): 1,
        ("mercast_links",): 2,
        ("mercast_members", ("cluster", "default")): 4,
        ("mercast_brokers_reachable", ("cluster", "default")): 2,
        ("mercast_link_rtt_seconds", ("cluster", "default"), ("neighbour", "2")): 0.002,
        ("mercast_link_clock_offset_seconds", ("cluster", "default"), ("neighbour", "2")): 0.5,
        ("mercast_subscriptions",): 1,
        ("mercast_advertisements",): 1,
        ("mercast_limit", ("name", "max_clients")): 15_000,
        ("mercast_limit", ("name", "max_peers")): 1_000,
        ("mercast_limit", ("name", "handshake_seconds")): 5,
        ("mercast_limit", ("name", "subscriptions")): 10_000,
        ("mercast_limit", ("name", "advertisements")): 1_000,
        ("mercast_limit", ("name", "client_bytes")): 32 * 1024 * 1024,
        ("mercast_limit", ("name", "brokers")): 4_096,
        ("mercast_limit", ("name", "hops")): 16,
        ("mercast_limit", ("name", "peer_items")): 1_000_000,
        ("mercast_limit", ("name", "peer_bytes")): 512 * 1024 * 1024,
        ("mercast_limit", ("name", "all_peer_items")): 2_000_000,
        ("mercast_limit", ("name", "all_peer_bytes")): 1024 * 1024 * 1024,
        ("mercast_limit", ("name", "parked")): 10_000,
        ("mercast_limit", ("name", "parked_bytes")): 64 * 1024 * 1024,
        ("mercast_limit", ("name", "client_queue_bytes")): 8 * 1024 * 1024,
        ("mercast_limit", ("name", "link_queue_bytes")): 32 * 1024 * 1024,
        ("mercast_limit", ("name", "types")): 10_000,
        ("mercast_limit", ("name", "declarations")): 20_000,
        ("mercast_limit_used", ("name", "max_clients")): 2,
        ("mercast_limit_used", ("name", "max_peers")): 1,
        ("mercast_limit_used", ("name", "handshake_seconds")): 2,
        ("mercast_limit_used", ("name", "subscriptions")): 1,
        ("mercast_limit_used", ("name", "advertisements")): 1,
        ("mercast_limit_used", ("name", "client_bytes")): 1_024,
        ("mercast_limit_used", ("name", "brokers")): 2,
        ("mercast_limit_used", ("name", "hops")): 0,
        ("mercast_limit_used", ("name", "peer_items")): 1,
        ("mercast_limit_used", ("name", "peer_bytes")): 512,
        ("mercast_limit_used", ("name", "all_peer_items")): 1,
        ("mercast_limit_used", ("name", "all_peer_bytes")): 512,
        ("mercast_limit_used", ("name", "parked")): 0,
        ("mercast_limit_used", ("name", "parked_bytes")): 0,
        ("mercast_limit_used", ("name", "client_queue_bytes")): 20,
        ("mercast_limit_used", ("name", "link_queue_bytes")): 70,
        ("mercast_limit_used", ("name", "types")): 1,
        ("mercast_limit_used", ("name", "declarations")): 1,
    }
    assert found["process_cpu_seconds_total",] > 0
    assert found["process_resident_memory_bytes",] > 0


def test_a_stalled_loop_shows_in_the_metrics():
    """Whatever else the machine does: the loop is at least as late as it was held up."""
    stalled = 0.3

    async def run():
        admin = Admin(standing(Pair()))
        address = await admin.start(Address("127.0.0.1", 0))
        until = monotonic() + 0.1 + stalled
        while monotonic() < until:
            pass
        asked = asyncio.to_thread(get, address, "/metrics")
        _, _, text = await asked
        await admin.stop()
        return samples(text)

    found = asyncio.run(run())
    assert found["mercast_loop_lag_max_seconds",] >= stalled * 0.9
    assert found["mercast_loop_lag_seconds_bucket", ("le", "+Inf")] >= 1
    assert found["mercast_loop_lag_seconds_bucket", ("le", "0.1")] < found["mercast_loop_lag_seconds_count",]
    assert found["mercast_loop_lag_seconds_sum",] >= stalled * 0.9


def test_lag_is_put_into_buckets_and_the_worst_is_told_once():
    probe = LagProbe()
    for lag in (0.0, BOUNDS[0], 0.002, 9.0):
        probe.saw(lag)
    assert probe.buckets == [2, 1, *[0] * (len(BOUNDS) - 2), 1]
    assert probe.total == pytest.approx(9.003)
    assert (probe.take_worst(), probe.take_worst()) == (9.0, 0.0)


def test_a_port_in_use_is_an_error_and_nothing_is_left_behind():
    async def run():
        first, second = Admin(standing(Pair())), Admin(standing(Pair()))
        address = await first.start(Address("127.0.0.1", 0))
        with pytest.raises(OSError, match="address already in use"):
            await second.start(address)
        await first.stop()
        third = Admin(standing(Pair()))
        assert await third.start(address) == address
        await third.stop()

    asyncio.run(run())


def gone(talk):
    """Whether the other side has hung up, as soon as it has."""
    talk.settimeout(30)
    try:
        return talk.recv(1) == b""
    except ConnectionError:
        return True


def test_who_does_not_ask_has_to_go():
    broker = StandIn(BrokerConfig(id=1, handshake_seconds=0.1), Pair().cores[1])
    with served(broker) as address:
        with create_connection(address, 30) as silent:
            assert gone(silent)
        with create_connection(address, 30) as half:
            half.sendall(b"GET /livez HT")
            assert gone(half)


def test_who_has_asked_does_not_stay():
    with served(standing(Pair())) as address, create_connection(address, 30) as talk:
        talk.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while data := talk.recv(4096):
            answer += data
        assert answer.endswith(b"ok\n")


def test_those_who_say_nothing_keep_nobody_out():
    broker = StandIn(BrokerConfig(id=1, handshake_seconds=1000), Pair().cores[1])
    with served(broker) as address, ExitStack() as stack:
        some = [stack.enter_context(create_connection(address, 30)) for _ in range(MOST_CONNECTIONS + 1)]
        for _ in range(10):
            assert get(address, "/livez")[0] == 200
        assert gone(some[0])
        some[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert some[-1].recv(100).startswith(b"HTTP/1.1 200")
