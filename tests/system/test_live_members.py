"""Who may take part: brokers that join by one seed address, and those that are refused."""

import pytest
from live import PATIENCE, Lone, agree, ask, linked, until

from mercast import blocking


@pytest.fixture
def lone(tmp_path, request):
    """Starts brokers that end with the test."""

    def start(id, *flags):
        broker = Lone(tmp_path / f"broker-{id}-{len(list(tmp_path.iterdir()))}.log", id, *flags)
        broker.__enter__()
        request.addfinalizer(lambda: broker.__exit__())
        return broker

    return start


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (["--strategy", "fbr"], "strategy", "broker 1 has strategy 'ddbr', broker 2 has 'fbr'"),
        (["--cluster", "elsewhere"], "cluster", "broker 1 has cluster 'default', broker 2 has 'elsewhere'"),
    ],
    ids=["strategy", "cluster"],
)
def test_peers_that_do_not_fit_refuse_each_other(lone, flags, code, reason):
    first = lone(1)
    second = lone(2, "--seeds", first.peer, *flags)
    first.says("peer cut off", code, reason)
    second.says("refused", f"{code}: {reason}")
    assert not second.is_ready()
    assert ask(second, "readyz")["reason"] == "no seed has answered yet"
    assert linked(first) == linked(second) == set()
    assert [len(ask(one, "overlay")["members"]) for one in (first, second)] == [0, 0]


def test_static_members_that_do_not_fit_refuse_each_other(lone):
    first = lone(1)
    second = lone(2, "--members", f"1={first.peer}", "--strategy", "unicast")
    second.says("refused", "strategy: broker 1 has strategy 'ddbr', broker 2 has 'unicast'")
    assert linked(second) == set()


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
