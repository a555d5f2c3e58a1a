"""Both clients when their broker goes, falls silent or wants them to go. Each test holds for either."""

import threading
from time import monotonic, sleep

import pytest
from scripted_broker import PATIENCE, Broker, event

from mercast import (
    ConnectionLost,
    Receipt,
    Unacknowledged,
)
from mercast.client import aio, blocking, brokers
from mercast.wire import hello, replies
from mercast.wire.frames import Kind, frame

pytestmark = pytest.mark.usefixtures("no_trouble_unseen")

# -- other brokers -----------------------------------------------------------------------------------------------------


def test_a_lost_broker_is_replaced_by_one_that_it_told_of_and_all_is_restored(open_client):
    with Broker(2) as second, Broker(1, others=[second.address]) as first:
        with open_client(first.address) as c:
            c.declare("stock.quote", {"price": "float"})
            c.advertise("stock.quote")
            gone = c.subscribe("weather")
            quotes = c.subscribe("stock.quote", "price < 5")
            gone.cancel()
            first.stop()
            assert second.asked(Kind.HELLO)["role"] == "client"
            assert second.asked(Kind.DECLARE)["name"] == "stock.quote"
            assert second.asked(Kind.ADVERTISE)["type"] == "stock.quote"
            assert second.asked(Kind.SUBSCRIBE) == {
                "request": 3,
                "type": "stock.quote",
                "filter": "price < 5",
                "echo": True,
            }
            assert c.publish("stock.quote") == Receipt(1, 2)
            second.say(replies.event(event(1), [3]))
            assert quotes.get(PATIENCE).id.sequence == 1
        second.wait_for(Kind.LEAVE)


@pytest.mark.parametrize("nonsense", ["a..b:1", "x" * 64 + ":1", "broker:" + "9" * 5000, "a\0b:1"])
def test_a_broker_that_tells_nonsense_addresses_is_left_for_another(open_client, nonsense):
    """Those that it prefers are tried first."""
    with (
        Broker(2) as second,
        Broker(1, others=[nonsense, second.address]) as first,
        open_client(first.address) as c,
    ):
        c.subscribe("stock.quote")
        first.say(replies.drain([nonsense]))
        second.wait_for(Kind.SUBSCRIBE)
        first.wait_for(Kind.LEAVE)
        assert c.publish("stock.quote").broker == 2


def test_the_same_broker_is_taken_when_it_is_back(open_client, broker):
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote")
        broker.wait_for(Kind.SUBSCRIBE)
        broker.cut()
        broker.wait_for(Kind.SUBSCRIBE)
        broker.say(replies.event(event(1), [1]))
        assert quotes.get(PATIENCE).id.sequence == 1


def test_calls_without_a_connection_wait_and_then_say_why(open_client, broker):
    with open_client(broker.address, timeout=1.5) as c:
        broker.stop()
        until = monotonic() + PATIENCE
        while c.broker is not None:  # not yet known to be lost
            assert monotonic() < until
            sleep(0.01)
        with pytest.raises(ConnectionLost, match=r"no connection to a broker for 1\.5 s: "):
            c.subscribe("stock.quote")


def test_last_words_are_the_reason(open_client, broker):
    broker.answers[Kind.PUBLISH] = lambda *_: hello.refusal("slow", "too slow")
    with open_client(broker.address) as c:
        threading.Timer(0, lambda: (broker.wait_for(Kind.PUBLISH), broker.cut())).start()
        with pytest.raises(Unacknowledged, match="was lost: too slow"):
            c.publish("stock.quote")


def test_damage_ends_the_connection_and_another_is_made(open_client, broker):
    broker.answers[Kind.PUBLISH] = lambda *_: frame(Kind.ANSWER, b"not JSON")
    with open_client(broker.address) as c:
        with pytest.raises(Unacknowledged, match=r"was lost: it does not speak as a broker does"):
            c.publish("stock.quote")
        broker.answers[Kind.PUBLISH] = lambda request, _: replies.receipts(request, [1])
        assert c.publish("stock.quote") == Receipt(1, 1)


def test_drain_moves_without_a_gap_or_a_repeat(open_client):
    with Broker(2) as second, Broker(1) as first:
        unsettled = threading.Event()

        def answer(request, _):
            unsettled.set()
            return replies.answer(request)

        second.answers[Kind.SUBSCRIBE] = answer
        with open_client(first.address) as c:
            quotes = c.subscribe("stock.quote")
            first.say(replies.event(event(1), [1]), replies.drain([first.address, second.address]))
            assert unsettled.wait(PATIENCE)
            # Both have it for a while; publishes still go to the first.
            first.say(replies.event(event(2), [1]))
            assert [quotes.get(PATIENCE).id.sequence for _ in range(2)] == [1, 2]
            second.say(replies.event(event(2), [1]), replies.event(event(3), [1]))
            assert quotes.get(PATIENCE).id.sequence == 3
            assert c.publish("stock.quote").broker == 1
            second.say(replies.settled(1, []))
            first.wait_for(Kind.LEAVE)
            assert c.publish("stock.quote").broker == 2
            second.say(replies.event(event(3), [1]), replies.event(event(4), [1]))
            assert quotes.get(PATIENCE).id.sequence == 4


def test_subscribing_on_the_move_subscribes_at_both(open_client):
    with Broker(2) as second, Broker(1) as first:
        second.answers[Kind.SUBSCRIBE] = lambda request, _: replies.answer(request)
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            second.wait_for(Kind.SUBSCRIBE)
            weather = c.subscribe("weather")
            assert second.asked(Kind.SUBSCRIBE)["type"] == "weather"
            second.answers[Kind.UNSUBSCRIBE] = lambda request, _: replies.answer(request)
            weather.cancel()
            assert second.asked(Kind.UNSUBSCRIBE)["subscribed"] == 2


def test_a_draining_broker_that_goes_early_is_replaced_at_once(open_client):
    with Broker(2) as second, Broker(1) as first:
        second.answers[Kind.SUBSCRIBE] = lambda request, _: replies.answer(request)  # never settled
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            second.wait_for(Kind.SUBSCRIBE)
            first.stop()
            while True:
                try:
                    assert c.publish("stock.quote").broker in (1, 2)
                except Unacknowledged:
                    continue
                if c.broker == 2:
                    break


def test_the_only_broker_is_taken_again_though_it_wanted_this_client_to_go(open_client, broker):
    with Broker(2) as other:
        elsewhere = other.address
    with open_client(broker.address) as c:
        broker.say(replies.drain([elsewhere]))
        for _ in range(2):  # one that is let go again, while the old connection will do
            broker.wait_for(Kind.HELLO)
        assert c.publish("stock.quote") == Receipt(1, 1)
        broker.cut()
        while True:
            try:
                assert c.publish("stock.quote") == Receipt(1, 1)
                break
            except Unacknowledged:
                continue


def test_a_broker_is_not_left_for_one_that_fails_before_all_is_settled(open_client):
    with Broker(2) as second, Broker(1) as first:
        second.answers[Kind.SUBSCRIBE] = lambda _request, _: second.cut()
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            for _ in range(3):
                second.wait_for(Kind.SUBSCRIBE)
            assert c.publish("stock.quote") == Receipt(1, 1)
            assert [kind for kind, _ in first.heard.queue].count(Kind.SUBSCRIBE) == 1
            second.answers[Kind.SUBSCRIBE] = first.answers[Kind.SUBSCRIBE]
            while c.publish("stock.quote").broker != 2:
                pass


@pytest.fixture
def attempts(monkeypatch):
    """Which attempt each dial was, counted from 0: pauses grow with that. Here there are none."""
    counted = []
    monkeypatch.setattr(brokers, "delay", lambda attempt: counted.append(attempt) or 0)
    return counted


def test_a_client_that_has_nowhere_to_go_waits_longer_each_time_and_stays(open_client, attempts):
    with Broker(2) as second, Broker(1) as first:
        second.answers[Kind.SUBSCRIBE] = lambda _request, _: second.cut()
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            for _ in range(5):
                second.wait_for(Kind.SUBSCRIBE)
            assert c.publish("stock.quote") == Receipt(1, 1)
            assert attempts[:5] == [0, 1, 2, 3, 4]


def test_a_broker_is_not_left_for_one_that_is_to_be_left_as_well(open_client, attempts):
    with Broker(2) as second, Broker(1) as first:
        settled = second.answers[Kind.SUBSCRIBE]
        second.answers[Kind.SUBSCRIBE] = lambda request, said: replies.drain([first.address]) + settled(request, said)
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            for _ in range(4):
                second.wait_for(Kind.LEAVE)
            assert c.publish("stock.quote") == Receipt(1, 1)
            assert attempts[:4] == [0, 1, 2, 3]
            second.answers[Kind.SUBSCRIBE] = settled
            while c.publish("stock.quote").broker != 2:
                pass


def test_after_a_while_of_calm_the_first_attempt_comes_soon_again(attempts):
    pace = brokers.Pace()
    for now in (100, 101, 105, 114, 125, 126):
        pace.wait(now)
        pace.tried(now)
    assert attempts == [0, 1, 2, 3, 0, 1]


# -- silence -----------------------------------------------------------------------------------------------------------


def test_a_broker_that_falls_silent_is_left(open_client, monkeypatch):
    for module in (aio, blocking):
        monkeypatch.setattr(module, "TICK", 0.02)
        monkeypatch.setattr(module, "BEAT", 0.05)
        monkeypatch.setattr(module, "SILENCE", 0.5)
    with Broker(2) as second, Broker(1, others=[second.address]) as first:
        second.answers[Kind.PING] = lambda *_: b""
        with open_client(first.address):
            first.wait_for(Kind.PING)
            second.wait_for(Kind.HELLO)
            second.wait_for(Kind.PING)
            assert first.heard.qsize() > 0


def test_connections_are_looked_after_on_the_move(open_client, attempts, monkeypatch):
    for module in (aio, blocking):
        monkeypatch.setattr(module, "TICK", 0.02)
        monkeypatch.setattr(module, "BEAT", 0.05)
        monkeypatch.setattr(module, "SILENCE", 0.5)
    with Broker(2) as second, Broker(1) as first:
        for one in (first, second):
            one.answers[Kind.PING] = lambda *_: b""
        settled = second.answers[Kind.SUBSCRIBE]
        second.answers[Kind.SUBSCRIBE] = lambda *_: b""
        with open_client(first.address) as c:
            c.subscribe("stock.quote")
            first.say(replies.drain([second.address]))
            second.wait_for(Kind.SUBSCRIBE)
            first.wait_for(Kind.PING)
            second.wait_for(Kind.PING)
            del second.answers[Kind.PING]  # it says nothing more: another connection is made
            second.wait_for(Kind.SUBSCRIBE)
            assert c.publish("stock.quote") == Receipt(1, 1)
            second.answers |= {Kind.SUBSCRIBE: settled, Kind.PING: first.answers[Kind.PING]}
            second.cut()
            while c.publish("stock.quote").broker != 2:
                pass
