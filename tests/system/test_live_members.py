"""Who may take part: brokers that join by one seed address, and those that are refused."""

import signal
import socket

import pytest
from live import PATIENCE, Lone, agree, ask, end, linked, metrics, popen_python, until

from mercast import blocking
from mercast.overlay.construct import neighbours
from mercast.processes import free_addresses
from mercast.wire.frames import Framing, Kind
from mercast.wire.hello import VERSIONS, hello, read_json, refusal

SAME = ": give all brokers that shall be linked the same --"


@pytest.fixture
def lone(tmp_path, request):
    """Starts brokers that end with the test."""

    def start(id, *flags, **how):
        broker = Lone(tmp_path / f"broker-{id}-{len(list(tmp_path.iterdir()))}.log", id, *flags, **how)
        broker.__enter__()
        request.addfinalizer(lambda: broker.__exit__())
        return broker

    return start


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (["--strategy", "fbr"], "strategy", f"broker 1 has strategy 'ddbr', broker 2 has 'fbr'{SAME}strategy"),
        (["--cluster", "other"], "cluster", f"broker 1 has cluster 'default', broker 2 has 'other'{SAME}cluster"),
        (
            ["--cluster-number", "5"],
            "cluster",
            f"broker 1 has cluster number 0, broker 2 has 5{SAME}cluster-number, those that join it in --joins",
        ),
    ],
    ids=["strategy", "cluster", "cluster number"],
)
def test_peers_that_do_not_fit_refuse_each_other(lone, flags, code, reason):
    first = lone(1)
    second = lone(2, "--seeds", first.peer, *flags)
    first.says("peer cut off", code, reason)
    second.says("refused", f"{code}: {reason}")
    until(lambda: metrics(first).get(("mercast_connections_denied_total", code), 0) > 3, "it tries again and again")
    assert (first.told().count("peer cut off"), second.told().count('"refused"')) == (1, 1)
    assert not second.is_ready()
    assert ask(second, "readyz")["reason"] == f"the broker at {first.peer} refuses: {code}: {reason}"
    assert linked(first) == linked(second) == set()
    assert [len(ask(one, "overlay")["members"]) for one in (first, second)] == [0, 0]


def test_static_members_that_do_not_fit_refuse_each_other(lone):
    first = lone(1)
    second = lone(2, "--members", f"1={first.peer}", "--strategy", "unicast")
    for broker, words in ((first, "peer cut off"), (second, "refused")):
        broker.says(words, "strategy", "broker 1 has strategy 'ddbr', broker 2 has 'unicast'")
    assert linked(second) == set()
    assert not second.is_ready()


def test_a_peer_of_another_version_is_told_and_told_of(lone):
    """Whichever of them calls."""
    newer = hello(
        mercast=[7, 9], role="broker", broker=99, incarnation=1, cluster="default", strategy="ddbr",
        peer="127.0.0.1:1", clients="127.0.0.1:1", members=[],
    )  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listener:
        first = lone(1, "--seeds", "{}:{}".format(*listener.getsockname()))
        host, port = first.peer.split(":")
        called, _ = listener.accept()
        for connection in (called, socket.create_connection((host, int(port)), PATIENCE)):
            with connection:
                connection.settimeout(PATIENCE)
                connection.sendall(newer)
                answer, framing = [], Framing()
                while Kind.ERROR not in dict(answer):
                    answer += framing.feed(connection.recv(65536))
                told = read_json(dict(answer)[Kind.ERROR])
            assert told["code"] == "version"
            assert "who refuses speaks 1 to 1 of the wire, who is refused 7 to 9" in told["reason"]
        first.says("peer cut off", "version", "who is refused 7 to 9")
        until(lambda: "is refused: version: " in ask(first, "readyz")["reason"], lambda: ask(first, "readyz"))
        with listener.accept()[0] as connection:  # it tries again, and hears it from the other side
            connection.sendall(refusal("version", "no common version: this side speaks 7 to 9, the other 1 to 1"))
            first.says("refused", "version: no common version: this side speaks 7 to 9")


def test_hearsay_changes_nothing(lone):
    """Somebody calls, and tells of many who are not there."""
    first = lone(1)
    second = lone(2, "--seeds", first.peer)
    agree([first, second])
    crowd = [[1000 + number, "127.0.0.1:1", "127.0.0.1:1", 1] for number in range(900)]
    said = hello(
        mercast=VERSIONS, role="asking", broker=99, incarnation=1, cluster="default", strategy="ddbr",
        peer="127.0.0.1:1", clients="127.0.0.1:1", members=[[99, "127.0.0.1:1", "127.0.0.1:1", 1], *crowd],
    )  # fmt: skip
    host, port = first.peer.split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(said)
        while connection.recv(65536):
            pass  # it is answered, and that is all
    assert linked(first) == linked(second) == {(1, 2)}
    assert {one["id"] for one in ask(first, "overlay")["members"]} == {2, 99}


@pytest.mark.slow
def test_the_living_find_together_without_the_dead(lone):
    """On a ring, with its neighbours on both sides dead; and of many members that never were."""
    addresses = free_addresses(20)
    members = ",".join(f"{id}={address}" for id, address in enumerate(addresses, 1))
    ring = [1]
    while len(ring) < 6:
        ring.append(min(neighbours(set(range(1, 7)), ring[-1], 2) - set(ring)))

    def start(id):
        return lone(id, "--members", members, "--degree", 2, peer=addresses[id - 1])

    brokers = {id: start(id) for id in range(1, 7)}
    agree(brokers.values())
    for dead in (ring[1], ring[4]):
        end(brokers.pop(dead).process, signal.SIGKILL)
    agree(brokers.values())
    brokers[ring[1]] = start(ring[1])
    agree(brokers.values())


@pytest.mark.slow
def test_a_broker_returns_with_its_clock_set_back(lone):
    first = lone(1)
    second = lone(2, "--seeds", first.peer)
    agree([first, second])
    end(second.process, signal.SIGKILL)
    behind = "import time, sys\nnow = time.time\ntime.time = lambda: now() - 3600\nfrom mercast.cli import app\napp()"
    with second.log.open("ab") as log:
        second.process = popen_python("-c", behind, "broker", *second.flags, stdout=log, stderr=log)
    second.says("the clock is behind an earlier life of this broker")
    until(second.is_ready, "ready")
    agree([first, second])
    with blocking.connect(first.client) as publisher, blocking.connect(second.client) as subscriber:
        events = subscriber.subscribe("tick")
        assert publisher.publish("tick", {"n": 1}).destinations == 1
        assert events.get(PATIENCE).attributes == {"n": 1}


@pytest.mark.slow
def test_joining_by_one_seed_address(lone):
    brokers = [lone(1)]
    for id in (2, 3):
        brokers.append(lone(id, "--seeds", brokers[0].peer))
        agree(brokers)
    for broker in brokers:
        until(broker.is_ready, f"broker {broker.id} is ready")
        assert {one["id"] for one in ask(broker, "overlay")["members"]} == {1, 2, 3} - {broker.id}

    clients = [blocking.connect(broker.client) for broker in brokers]
    streams = [client.subscribe("tick") for client in clients]
    for client in clients:
        assert client.publish("tick", {"n": client.broker}).destinations == 3
    for stream in streams:
        assert sorted(stream.get(PATIENCE).attributes["n"] for _ in brokers) == [1, 2, 3]

    # A fourth with a number that is taken is refused, and disturbs nobody.
    double = lone(2, "--seeds", brokers[0].peer)
    double.says("refused", f"identity: broker 2 is at {brokers[1].peer} already: give each broker an id of its own")
    brokers[0].says("peer cut off", "identity")
    assert not double.is_ready()
    agree(brokers)
    for client in clients:
        assert client.publish("tick", {"n": client.broker}).destinations == 3
    for stream in streams:
        assert sorted(stream.get(PATIENCE).attributes["n"] for _ in brokers) == [1, 2, 3]
    for client in clients:
        client.close()
