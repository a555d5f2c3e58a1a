"""Limits of running brokers: how fast may be published, how old connections become, what peers may have kept."""

import asyncio
from threading import Thread
from time import monotonic

import pytest
from live import PATIENCE, Lone, Mesh, metrics, until

import mercast
from mercast.blocking import connect
from mercast.client.errors import NotSettled, Refused
from mercast.client.event import Receipt
from mercast.security.tokens import new_token, with_token

EVERY = {"publish": ["*"], "subscribe": ["*"]}


def lone(tmp_path, *flags):
    return Lone(tmp_path / "broker.log", 1, *flags)


# -- rates -----------------------------------------------------------------------------------------------------------


def test_a_flood_is_slowed_then_refused_by_name_and_harms_nobody(tmp_path):
    with (
        lone(tmp_path, "--publish-events-per-second", 50) as broker,
        connect(broker.client, timeout=PATIENCE) as floods,
        connect(broker.client) as other,
        connect(broker.client) as reads,
    ):
        events = reads.subscribe("quote")
        outcomes = []
        flood = Thread(target=lambda: outcomes.extend(floods.publish_many([("quote", {"by": 1})] * 2_000)))
        flood.start()
        until(lambda: metrics(broker)["mercast_publishers_slowed_total"], "it is slowed")
        assert other.publish("quote", {"by": 2}).destinations == 1
        flood.join(PATIENCE)
        accepted = [one for one in outcomes if isinstance(one, Receipt)]
        refused = [one for one in outcomes if isinstance(one, Refused)]
        assert len(outcomes) == len(accepted) + len(refused) == 2_000
        assert len(accepted) > 250, "slowed for five seconds before the first is refused"
        assert refused
        assert "publishes more than 50 events a second (publish_events_per_second)" in str(refused[0])
        told = metrics(broker)
        assert told["mercast_events_refused_total", "client publish_events_per_second"] == len(refused)
        assert told["mercast_requests_refused_total"] == len(refused)
        assert floods.publish("quote", {"by": 3}).destinations == 1
        got = [events.get(timeout=PATIENCE).attributes["by"] for _ in range(len(accepted) + 2)]
        assert sorted(got) == [1] * len(accepted) + [2, 3]


def test_one_that_waits_for_its_receipts_is_slowed_to_the_rate_and_never_refused(tmp_path):
    size = len(b"x" * 1_000)
    with lone(tmp_path, "--publish-bytes-per-second", "20kB") as broker, connect(broker.client) as client:
        client.publish("quote")
        begin = monotonic()
        for _ in range(80):
            client.publish("quote", {}, b"x" * size)
        assert monotonic() - begin > (79 * size - 20_000) / 20_000
        assert metrics(broker)["mercast_publishers_slowed_total"] > 1


def test_clients_of_a_token_share_its_rate_and_it_can_change(tmp_path):
    slow, fast, file = new_token(), new_token(), tmp_path / "tokens.yaml"

    def allow(rate):
        text = with_token("", "slow", slow, EVERY, {"publish_events_per_second": rate})
        file.write_text(with_token(text, "fast", fast, EVERY))

    def publish(clients, count):
        threads = [Thread(target=lambda one=one: [one.publish("quote") for _ in range(count)]) for one in clients]
        begin = monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        return monotonic() - begin

    allow(50)
    with (
        lone(tmp_path, "--tokens", file) as broker,
        connect(broker.client, token=slow) as one,
        connect(broker.client, token=slow) as two,
        connect(broker.client, token=fast) as free,
    ):
        publish([free], 200)
        assert metrics(broker)["mercast_publishers_slowed_total"] == 0
        assert publish([one, two], 75) > (2 * 75 - 1 - 50) / 50
        slowed = metrics(broker)["mercast_publishers_slowed_total"]
        assert slowed > 0
        allow(0)
        until(lambda: metrics(broker).get(("mercast_reloads_total", "done")), "the tokens are read again")
        publish([one, two], 200)
        assert metrics(broker)["mercast_publishers_slowed_total"] == slowed


# -- age -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_clients_move_on_in_time_and_nothing_is_lost_or_doubled():
    with Mesh(3, options=["--max-connection-seconds", "2"]) as mesh:
        asyncio.run(moved(mesh, 10))


async def moved(mesh, moves):
    """Clients publish and subscribe while they are sent from broker to broker."""
    over, sent, been = False, 0, set()

    def so_far():
        return sum(metrics(broker)["mercast_clients_moved_total"] for broker in mesh.brokers.values())

    async def publish(client):
        nonlocal sent
        await client.advertise("tick")
        while not over:
            await client.publish("tick", {"n": sent})
            sent += 1
            been.add(("publisher", client.broker))

    async def read(client, stream, got):
        async for event in stream:
            got.append(event.attributes["n"])
            been.add(("subscriber", client.broker))

    async with asyncio.timeout(3 * PATIENCE):
        clients = [await mercast.connect(broker.client) for broker in mesh.brokers.values()]
        publisher, *subscribers = clients
        all_got = [[] for _ in subscribers]
        reading = [
            asyncio.create_task(read(client, await client.subscribe("tick"), got))
            for client, got in zip(subscribers, all_got, strict=True)
        ]
        publishing = asyncio.create_task(publish(publisher))
        await asyncio.to_thread(until, lambda: so_far() >= moves, "clients are told to move")
        over = True
        await publishing
        await asyncio.to_thread(until, lambda: all(len(got) >= sent for got in all_got), "all of it")
        for client in clients:
            await client.close()
        await asyncio.gather(*reading)
    for got in all_got:
        assert sorted(got) == list(range(sent))
    for who in ("publisher", "subscriber"):
        assert len([broker for what, broker in been if what == who]) > 1


# -- control state ---------------------------------------------------------------------------------------------------


def test_what_a_peer_may_not_have_kept_is_not_settled_and_told_of(tmp_path):
    options = ["--peer-items", "20", "--settle-within", "2"]
    with (
        Mesh(2, [(1, 2)], options=options, folder=tmp_path) as mesh,
        connect(mesh[1].client) as publisher,
        connect(mesh[2].client) as subscriber,
    ):
        publisher.advertise("quote")
        kept = [subscriber.subscribe("quote", f"price = {price}") for price in range(20)]
        with pytest.raises(NotSettled, match="1"):
            subscriber.subscribe("quote", "price = 20")
        told = metrics(mesh[1])
        assert told["mercast_control_refused_total"] > 0
        assert told["mercast_limit", "peer_items"] == told["mercast_limit_used", "peer_items"] == 20
        until(lambda: "peer refused" in mesh[1].tail() and "peer_items" in mesh[1].tail(), mesh[1].tail)
        for price in range(20):
            publisher.publish("quote", {"price": price})
        for price, events in enumerate(kept):
            assert events.get(timeout=PATIENCE).attributes == {"price": price}
        assert publisher.publish("quote", {"price": 20}).destinations == 0
