"""`mercast overlay`, run as a user runs it."""

import json
import os
import socket
import threading

import pytest
from commands import run
from observed import Link, Member, Pair, Session, StandIn, answering, served
from sim.clusters import backbone, start

from mercast.broker.config import BrokerConfig
from mercast.broker.overview import overview
from mercast.cli.overlay import duration
from mercast.content import Filter
from mercast.protocol import stimuli
from mercast.protocol.messages import Record


def overlay(*arguments, **environment):
    return run("overlay", *arguments, env=os.environ | environment)


def lines(text):
    """Without the spaces that only align."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def broker():
    pair = Pair()
    pair.measure(rtt=0.00031, clock_offset=-0.0125)
    pair.tell(1, stimuli.Advertise("anna", 2, "quote", Filter()))
    pair.tell(2, stimuli.Subscribe("bob", 1, "quote", Filter()))
    pair.hear_of(Record(2, 200, 7, (0,), ((1, 1), (3, 1), (4, 2))), Record(3, 300, 2, (0,), ()))
    pair.hear_of(Record(4, 400, 3, (0,), ((2, 3),)))
    members = {1: Member("h:71", "h:70"), 2: Member("[fe80::2]:71", "[fe80::2]:70"), 6: Member("h:61", "h:60")}
    links, sessions = {2: Link("h:9", 7000), 6: Link("h:8", 0)}, {"anna": Session("anna", "h:5")}
    return StandIn(BrokerConfig(id=1), pair.cores[1], links=links, members=(members,), sessions=sessions)


def test_the_overlay_as_a_table(broker):
    with served(broker) as address:
        done = overlay("--admin", str(address), http_proxy="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    head, *rest = lines(done.stdout)
    assert head.startswith("broker 1 of cluster default: ddbr, version ")
    assert head.endswith(" s, ready")
    assert rest == [
        "",
        "brokers",
        "id clients peers cost next hop state",
        "1 h:70 h:71 – – this broker",
        "2 [fe80::2]:70 [fe80::2]:71 1 2 reachable",
        "3 – – – – out of reach",
        "4 – – 4 2 reachable",
        "6 h:60 h:61 – – no word of it",
        "",
        "links",
        "between cost rtt clock offset queued state",
        "1 – 2 1 0.31 ms -12.50 ms 7,000 B up",
        "1 – 6 – – – 0 B coming up",
        "2 – 3 1 – – – one end only",
        "2 – 4 3 – – – up",
        "",
        "held by this broker",
        "clients advertisements subscriptions types R-SRT R-PRT",
        "1 1 0 0 0 1",
    ]


def test_a_broker_that_is_not_ready_says_why(broker):
    broker.not_ready = "2 of 3 members [missing]"
    with served(broker) as address:
        done = overlay("--admin", str(address))
    assert done.stdout.splitlines()[0].endswith(", not ready: 2 of 3 members [missing]")


def test_as_json(broker):
    with served(broker) as address:
        done = overlay("--admin", str(address), "--json")
    answer = json.loads(done.stdout)
    assert answer["overlay"]["links"][0]["rtt_ms"] == 0.31
    assert answer["tables"]["tables"] == {"R-SRT": 0, "R-PRT": 1}


def test_nobody_answers():
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = overlay("--admin", address)
    told = f"no broker answers at {address}; is its admin port open? (mercast broker --admin-listen …)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


@pytest.mark.parametrize(
    ("status", "body"), [(404, b"{}"), (200, b"<html>"), (200, b"[]"), (200, b"{}"), (200, b"\xff")]
)
def test_somebody_else_answers(status, body):
    with answering({}, (status, {}, body)) as (address, _):
        done = overlay("--admin", str(address))
    assert done.returncode == 1
    assert done.stderr.startswith(f"what answers at {address} is not the admin port of a broker")


def test_something_answers_that_is_no_http():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"\0\0\0\1\2")

        thread = threading.Thread(target=answer)
        thread.start()
        done = overlay("--admin", address)
        thread.join()
    assert done.returncode == 1
    assert done.stderr.startswith(f"what answers at {address} is not the admin port of a broker")


def test_an_address_that_is_none():
    done = overlay("--admin", "::1")
    told = "'::1' is not an address: IPv6 goes in brackets; write host:port, such as [::1]:7472"
    assert (done.returncode, done.stderr) == (1, f"mercast overlay: --admin: {told}\n")


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7325, "2 h 2 min")])
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_what_a_dead_edge_brought_counts_for_nothing():
    homes, links = backbone(clusters=2, internal=1)
    simulator = start(homes, links)
    simulator.do(102, stimuli.Advertise("p", 1, "quote", Filter()))
    simulator.do(202, stimuli.Subscribe("s", 1, "quote", Filter()))
    simulator.run(8)
    simulator.crash(101)
    simulator.run(9)
    inside = StandIn(BrokerConfig(id=102, cluster_number=1), simulator.brokers[102])
    assert overview(inside)["carried"] == [
        {"edge": 100, "also_in": [], "reachable": True, "advertisements": 0, "subscriptions": 1},
        {"edge": 101, "also_in": [], "reachable": False, "advertisements": 0, "subscriptions": 0},
    ]
    with served(inside) as address:
        told = lines(overlay("--admin", str(address)).stdout)
    assert told[told.index("edges") :][1:4] == [
        "id also in advertisements brought subscriptions brought state",
        "100 – 0 1 reachable",
        "101 – 0 0 out of reach",
    ]
