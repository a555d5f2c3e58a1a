"""What brokers tell of themselves, after traffic that is known; both clients see the same events."""

import asyncio
import threading

import pytest
from live import PATIENCE, Mesh, ask, metrics, until

import mercast
from mercast import Refused, blocking

LINE = [(1, 2), (2, 3)]
THREADS, EACH = 8, 50


@pytest.fixture(scope="module")
def mesh():
    with Mesh(3, LINE) as brokers:
        yield brokers


def counted(mesh):
    """Events by broker: published, received, forwarded, delivered."""
    names = [f"mercast_events_{what}_total" for what in ("published", "received", "forwarded", "delivered")]
    return {id: [metrics(broker)[name] for name in names] for id, broker in mesh.brokers.items()}


def test_counters_equal_the_traffic(mesh):
    before = counted(mesh)
    refused = metrics(mesh[1])["mercast_requests_refused_total"]
    with (
        blocking.connect(mesh[1].client) as one,
        blocking.connect(mesh[2].client) as two,
        blocking.connect(mesh[3].client) as three,
    ):
        streams = {
            two: [two.subscribe("even", "n < 10")],
            three: [three.subscribe("even"), three.subscribe("even", "n > 5")],
        }
        for n in range(20):
            one.publish("even", {"n": n})
        for n in range(5):
            assert three.publish("even", {"n": n}).destinations == 2
        with pytest.raises(Refused):
            one.publish("even", {"n": []})  # the client says so itself
        one.advertise("odd", "n = 1")
        with pytest.raises(Refused, match="outside what"):
            one.publish("odd", {"n": 2})
        assert [streams[two][0].get(PATIENCE).attributes["n"] for _ in range(15)] == [*range(10), *range(5)]
        assert len([streams[three][0].get(PATIENCE) for _ in range(25)]) == 25
        assert len([streams[three][1].get(PATIENCE) for _ in range(14)]) == 14
        now = counted(mesh)
        assert {id: [b - a for a, b in zip(before[id], now[id], strict=True)] for id in now} == {
            1: [20, 0, 20, 0],
            2: [0, 25, 20, 15],  # passes all of the 20 on; delivers 10 of those, and 5 from the other side
            3: [5, 20, 5, 25],
        }
        assert metrics(mesh[1])["mercast_requests_refused_total"] == refused + 1


def test_gauges_and_tables_follow_clients(mesh):
    def clients_and_subscriptions(id):
        told = metrics(mesh[id])
        return told["mercast_clients"], told["mercast_subscriptions"], told["mercast_advertisements"]

    until(lambda: clients_and_subscriptions(2) == (0, 0, 0), "all clients of other tests are gone")
    with blocking.connect(mesh[2].client, name="teller") as client, blocking.connect(mesh[1].client) as publisher:
        publisher.advertise("tale")
        first, second = client.subscribe("tale", "a = 1"), client.subscribe(None, "b LIKE 'x%'", echo=False)
        advertisement = client.advertise("tale", "a > 0")
        assert clients_and_subscriptions(2) == (1, 2, 1)
        told = ask(mesh[2], "tables?full=1")
        assert told["counts"] == {"clients": 1, "advertisements": 1, "subscriptions": 2, "types": 0}
        assert [row["name"] for row in told["full"]["clients"]["rows"]] == [client.id]
        listed = {(row["type"], row["filter"]) for row in told["full"]["subscriptions"]["rows"]}
        assert listed == {("tale", "a = 1"), (None, "b LIKE 'x%'")}
        heard = [row for row in ask(mesh[1], "tables?full=1")["full"]["heard"]["rows"] if row["kind"] == "subscription"]
        assert {(row["broker"], row["client"], row["filter"]) for row in heard} == {
            (2, client.id, filter) for _, filter in listed
        }
        first.cancel()
        second.cancel()
        advertisement.cancel()
        assert clients_and_subscriptions(2) == (1, 0, 0)
    until(lambda: clients_and_subscriptions(2) == (0, 0, 0), "the client is gone")


def test_the_overlay_is_told_as_it_is(mesh):
    for id, neighbours, costs in ((1, [2], {1: 0, 2: 1, 3: 2}), (2, [1, 3], {1: 1, 2: 0, 3: 1})):
        told = ask(mesh[id], "overlay")
        assert (told["broker"]["id"], told["broker"]["strategy"], told["broker"]["ready"]) == (id, "ddbr", True)
        assert [link["neighbour"] for link in told["links"]] == neighbours
        assert {one["id"]: one["cost"] for one in told["overlay"]["brokers"]} == costs
        assert {tuple(link["between"]): link["state"] for link in told["overlay"]["links"]} == dict.fromkeys(LINE, "up")
        addresses = {one.id: (one.peer, one.client) for one in mesh.brokers.values() if one.id != id}
        assert {one["id"]: (one["peer_address"], one["client_address"]) for one in told["members"]} == addresses
        values = metrics(mesh[id])
        assert values["mercast_links"] == len(neighbours)
        assert (
            values["mercast_members", "default"],
            values["mercast_brokers_reachable", "default"],
            values["mercast_ready"],
        ) == (2, 3, 1)
        until(
            lambda id=id: ("mercast_link_rtt_seconds", "default", "2" if id == 1 else "1") in metrics(mesh[id]),
            "heart-beats",
        )


def test_no_echo_is_about_the_client_not_its_name(mesh):
    """Each broker counts its clients from 1, so clients of two brokers may go by one name."""
    with blocking.connect(mesh[1].client) as here, blocking.connect(mesh[3].client) as there:
        numbers = [int(client.id.rpartition(".")[2]) for client in (here, there)]
        behind, ahead = (mesh[1], here) if numbers[0] < numbers[1] else (mesh[3], there), max(numbers)
        fillers = []
        while int(behind[1].id.rpartition(".")[2]) < ahead:
            fillers.append(behind[1])
            behind = behind[0], blocking.connect(behind[0].client)
        here, there = (behind[1], there) if behind[0] is mesh[1] else (here, behind[1])
        assert here.id == there.id
        events = there.subscribe("mine", echo=False)
        here.publish("mine", {"n": 1})
        there.publish("mine", {"n": 2})
        here.publish("mine", {"n": 3})
        assert [events.get(PATIENCE).attributes["n"] for _ in range(2)] == [1, 3]
        for client in (*fillers, here, there):
            client.close()


def test_the_blocking_client_under_threads(mesh):
    """Many threads publish by one client, others subscribe and take; the asyncio client sees the same."""
    with blocking.connect(mesh[1].client) as publisher, blocking.connect(mesh[3].client) as subscriber:
        shared = subscriber.subscribe("threads")
        got, lock = [], threading.Lock()

        def publish(thread):
            for n in range(EACH):
                assert publisher.publish("threads", {"thread": thread, "n": n}, b"%d" % n).destinations >= 1

        def take():
            for _ in range(EACH):
                event = shared.get(PATIENCE)
                with lock:
                    got.append(event)

        def own(thread, found):
            stream = subscriber.subscribe("threads", f"thread = {thread}")
            ready.wait(PATIENCE)
            found[thread] = [stream.get(PATIENCE).attributes["n"] for _ in range(EACH)]
            stream.cancel()

        found = {}
        ready = threading.Barrier(THREADS + 1)
        owners = [threading.Thread(target=own, args=(number, found)) for number in range(THREADS)]
        for thread in owners:
            thread.start()

        async def by_asyncio():
            async with mercast.connect(mesh[2].client) as client:
                stream = await client.subscribe("threads")
                await asyncio.to_thread(ready.wait, PATIENCE)
                workers = [threading.Thread(target=publish, args=(number,)) for number in range(THREADS)]
                workers += [threading.Thread(target=take) for _ in range(THREADS)]
                for thread in workers:
                    thread.start()
                events = [await stream.get(PATIENCE) for _ in range(THREADS * EACH)]
                for thread in (*workers, *owners):
                    await asyncio.to_thread(thread.join, PATIENCE)
                return events

        seen = asyncio.run(by_asyncio())
        assert found == {number: list(range(EACH)) for number in range(THREADS)}
        assert sorted(map(_plain, got)) == sorted(map(_plain, seen))
        for number in range(THREADS):  # in order, as each thread published them
            assert [event.attributes["n"] for event in seen if event.attributes["thread"] == number] == list(
                range(EACH)
            )


def _plain(event):
    return event.id, event.type, sorted(event.attributes.items()), event.payload, event.time, event.publisher
