"""Both clients against a broker of few words on a real socket. Each test holds for either."""

import asyncio
import threading

import pytest
from scripted_broker import PATIENCE, Broker, event

import mercast
from mercast import (
    Closed,
    MercastError,
    NoBroker,
    NotAnswered,
    NotSettled,
    Receipt,
    Refused,
    SubscriberTooSlow,
    Unacknowledged,
)
from mercast.content.event import EventId
from mercast.protocol.rows import Dropped
from mercast.wire import hello, replies
from mercast.wire.frames import Kind
from mercast.wire.requests import CONTENT_BYTES, read_publish

pytestmark = pytest.mark.usefixtures("no_trouble_unseen")


def test_handshake(open_client, broker):
    with open_client(broker.address, name="shop", token="secret") as c:
        assert (c.id, c.broker) == ("me.1", 1)
        said = broker.asked(Kind.HELLO)
        assert (said["name"], said["token"], said["role"]) == ("shop", "secret", "client")
    broker.wait_for(Kind.LEAVE)


def test_url_and_token_of_the_environment(open_client, broker, monkeypatch):
    monkeypatch.setenv("MERCAST_URL", f"mercast://{broker.address}")
    monkeypatch.setenv("MERCAST_TOKEN", "of the environment")
    with open_client():
        assert broker.asked(Kind.HELLO)["token"] == "of the environment"


def test_no_broker_there(open_client, broker):
    broker.stop()
    with pytest.raises(NoBroker, match=f"^no broker answers at {broker.address}: Connection refused$"):
        open_client(broker.address)


def test_the_first_that_answers_is_taken(open_client, broker):
    gone = Broker()
    gone.stop()
    with open_client([gone.address, broker.address]) as c:
        assert c.broker == 1


def test_a_broker_that_refuses_says_why(open_client, broker):
    broker.answers[Kind.HELLO] = lambda *_: hello.refusal("token", "the token is wrong")
    with pytest.raises(Refused, match="refuses: the token is wrong") as raised:
        open_client(broker.address)
    assert raised.value.code == "token"


def test_a_broker_that_says_nothing(open_client, broker):
    broker.answers[Kind.HELLO] = lambda *_: b""
    with pytest.raises(NoBroker, match=r"no answer within 0\.2 s"):
        open_client(broker.address, timeout=0.2)


def test_no_broker_at_all_but_somebody_else(open_client, broker):
    broker.answers[Kind.HELLO] = lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with pytest.raises(NoBroker, match=r"was lost: it does not speak as a broker does: "):
        open_client(broker.address)


def test_no_broker_at_all_but_somebody_who_hangs_up(open_client, broker):
    broker.answers[Kind.HELLO] = lambda *_: broker.cut()
    with pytest.raises(
        NoBroker, match=f": the connection to {broker.address} was lost, before it said anything: perhaps it speaks TLS"
    ):
        open_client(broker.address)


def test_no_broker_at_all_but_somebody_who_slams_the_door(open_client, broker):
    broker.answers[Kind.HELLO] = lambda *_: broker.reset()
    with pytest.raises(
        NoBroker, match=f": the connection to {broker.address} was lost: .*Connection reset by peer, before it"
    ):
        open_client(broker.address)


@pytest.mark.parametrize("url", ["a..b:1", "x" * 64 + ":1", "a\0b:1"])
def test_what_is_no_address_is_told_so(open_client, url):
    with pytest.raises(MercastError, match="is not the address of a broker: write mercast://host:port"):
        open_client(url)


# -- publish -----------------------------------------------------------------------------------------------------------


def test_publish(open_client, broker):
    with open_client(broker.address) as c:
        assert c.publish("stock.quote", {"price": 99, "at": {"place": "X"}}, b"pay", "text/plain", "00-1") == Receipt(
            1, 1
        )
        asked = read_publish("me", broker.wait_for(Kind.PUBLISH), 0)
    assert asked[2:4] == ("stock.quote", {"price": 99, "at.place": "X"})
    assert (asked.payload, asked.content_type, asked.trace, asked.traced) == (b"pay", "text/plain", "00-1", False)


def test_refused_publish(open_client, broker):
    broker.answers[Kind.PUBLISH] = lambda request, _: replies.answer(request, "outside of what is advertised")
    with open_client(broker.address) as c:
        with pytest.raises(Refused, match="outside of what is advertised"):
            c.publish("stock.quote")
        with pytest.raises(Refused, match="floats are finite"):
            c.publish("stock.quote", {"price": float("inf")})


def test_publish_many(open_client, broker):
    broker.answers[Kind.PUBLISH] = lambda request, _: (
        replies.answer(request, "no") if request == 5 else replies.receipts(request, [request])
    )
    with open_client(broker.address) as c:
        first, refused, unsent, last = c.publish_many([("a",), ("b", {"x": 1}), ("c", {"x": None, "y": 1j}), ("d",)])
        assert (first, last) == (Receipt(4, 1), Receipt(6, 1))  # three types were advertised before
        assert isinstance(refused, Refused)
        assert isinstance(unsent, Refused)
        many = c.publish_many([("stock.quote", {"n": n}, b"x" * 100) for n in range(10_000)])
    assert [receipt.destinations for receipt in many] == list(range(8, 10_008))


def test_publishes_without_an_answer_are_told_so(open_client, broker):
    del broker.answers[Kind.PUBLISH]
    with open_client(broker.address, timeout=1.5) as c, pytest.raises(NotAnswered, match=r"no answer within 1\.5 s"):
        c.publish("stock.quote")


def test_unacknowledged_publishes_are_told_and_not_sent_again(open_client, broker):
    broker.answers[Kind.PUBLISH] = lambda *_: broker.cut()
    with open_client(broker.address) as c:
        with pytest.raises(Unacknowledged, match=r"not acknowledged: the connection to .* was lost"):
            c.publish("stock.quote", {"first": True})
        broker.wait_for(Kind.PUBLISH)
        broker.answers[Kind.PUBLISH] = lambda request, _: replies.receipts(request, [7])
        assert c.publish("stock.quote", {"first": False}).destinations == 7
        assert not read_publish("me", broker.wait_for(Kind.PUBLISH), 0).attributes["first"]


def test_drain_waits_for_what_was_published(open_client, broker):
    del broker.answers[Kind.PUBLISH]
    c = open_client(broker.address)
    receipts = []
    publishing = threading.Thread(target=lambda: receipts.append(c.publish("stock.quote")))
    publishing.start()
    broker.wait_for(Kind.PUBLISH)
    draining = threading.Thread(target=c.drain)
    draining.start()
    broker.say(replies.receipts(2, [1]))  # the first request has advertised the type
    broker.wait_for(Kind.LEAVE)
    draining.join(PATIENCE)
    publishing.join(PATIENCE)
    assert receipts == [Receipt(1, 1)]
    with pytest.raises(Closed):
        c.publish("stock.quote")


def test_what_is_not_acknowledged_when_the_client_is_closed_is_told_so(open_client, broker):
    del broker.answers[Kind.PUBLISH]
    c = open_client(broker.address)
    closing = threading.Thread(target=lambda: (broker.wait_for(Kind.PUBLISH), c.close()))
    closing.start()
    with pytest.raises(Unacknowledged, match="clos"):
        c.publish("stock.quote")
    closing.join(PATIENCE)


def test_trace(open_client, broker):
    row = Dropped(EventId(1, 1, 1), 5, "no route")
    broker.answers[Kind.PUBLISH] = lambda request, _: replies.receipts(request, [2]) + replies.reported(6, row)
    with open_client(broker.address) as c:
        trace = c.trace("stock.quote", {"price": 1})
        assert read_publish("me", broker.wait_for(Kind.PUBLISH), 0).traced
        assert trace.receipt.destinations == 2
        assert trace.get(PATIENCE) == (6, row)
        with pytest.raises(NotAnswered, match="no report within"):
            trace.get(0.01)


@pytest.mark.parametrize("event", [5, None, (), "abc", {"type": "a"}, ("a", {}, b"", "x", None, 7)])
def test_what_is_no_event_is_refused_alone(open_client, broker, event):
    with open_client(broker.address) as c:
        refused, receipt = c.publish_many([event, ("stock.quote",)])
        assert isinstance(refused, Refused)
        assert str(refused).startswith("an event is (type, attributes, payload, content_type, trace)")
        assert receipt == Receipt(1, 1)


@pytest.mark.parametrize("payload", ["text", 5, None, memoryview(b"abcd")[::2]])
def test_a_payload_is_bytes(open_client, broker, payload):
    with open_client(broker.address) as c, pytest.raises(Refused, match="a payload is bytes, not"):
        c.publish("stock.quote", {}, payload)


def test_what_a_broker_would_cut_the_connection_for_is_not_sent(open_client, broker):
    with open_client(broker.address) as c, pytest.raises(Refused, match=f"too large; it may have {CONTENT_BYTES}"):
        c.publish("stock.quote", {}, bytes(CONTENT_BYTES))


# -- subscribe ---------------------------------------------------------------------------------------------------------


def test_subscribe_and_events(open_client, broker):
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote", "price < 100", echo=False)
        assert broker.asked(Kind.SUBSCRIBE) == {
            "request": 1,
            "type": "stock.quote",
            "filter": "price < 100",
            "echo": False,
        }
        everything = c.subscribe()
        broker.say(*(replies.event(event(n, price=n, payload=b"p"), [1, 2]) for n in range(500)))
        got = [next(quotes) for _ in range(500)]
        assert [one.attributes["price"] for one in got] == list(range(500))
        assert (got[0].type, got[0].payload, got[0].publisher, got[0].time) == ("stock.quote", b"p", "someone.1", 123)
        assert len(got[0].subscriptions) == 2
        assert everything.get(PATIENCE) is got[0]
        quotes.cancel()
        assert broker.asked(Kind.UNSUBSCRIBE)["subscribed"] == 1
        assert list(quotes) == []
        with pytest.raises(Closed, match=r"the subscription to stock\.quote where price < 100 has ended"):
            quotes.get()
    assert len(list(everything)) == 499  # what had come in before


def test_waiting_for_an_event(open_client, broker):
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote")
        with pytest.raises(NotAnswered, match="no event within"):
            quotes.get(0.01)
        said = threading.Timer(0, lambda: broker.say(replies.event(event(1), [1])))
        said.start()
        assert next(quotes).id.sequence == 1
        threading.Timer(0, c.close).start()
        assert list(quotes) == []


def test_refused_subscription(open_client, broker):
    broker.answers[Kind.SUBSCRIBE] = lambda request, _: replies.answer(request, "line 1, column 9: found the end")
    with open_client(broker.address) as c, pytest.raises(Refused, match="line 1, column 9"):
        c.subscribe("stock.quote", "price < ")


def test_not_settled_leaves_nothing_behind(open_client, broker):
    broker.answers[Kind.SUBSCRIBE] = lambda request, _: replies.answer(request) + replies.settled(request, [4, 7])
    with open_client(broker.address) as c:
        with pytest.raises(NotSettled, match="no word from broker 4, 7") as raised:
            c.subscribe("stock.quote")
        assert raised.value.missing == (4, 7)
        assert broker.asked(Kind.UNSUBSCRIBE)["subscribed"] == 1
        assert c.subscribe("stock.quote", settled=False).over is False


def test_advertise_and_declare(open_client, broker):
    with open_client(broker.address) as c:
        c.declare("stock.quote", {"price": "float"}, parent="stock")
        assert broker.asked(Kind.DECLARE)["attributes"] == {"price": "float"}
        advertisement = c.advertise("stock.quote", "price > 0")
        assert broker.asked(Kind.ADVERTISE)["filter"] == "price > 0"
        advertisement.cancel()
        assert broker.asked(Kind.UNADVERTISE)["advertised"] == 2
        broker.answers[Kind.DECLARE] = lambda request, _: replies.answer(request, "it is declared otherwise")
        with pytest.raises(Refused, match="declared otherwise"):
            c.declare("stock.quote", {"price": "int"})


def test_a_type_may_be_open(open_client, broker):
    with open_client(broker.address) as c:
        c.declare("stock.quote", {"price": "float"})
        assert broker.asked(Kind.DECLARE)["open"] is False
        c.declare("stock.trade", {"price": "float"}, open=True)
        assert broker.asked(Kind.DECLARE)["open"] is True


@pytest.mark.parametrize(
    ("call", "given", "named", "says"),
    [
        *(
            ("subscribe", ("a",), {"buffer": buffer}, r"a buffer of .*: give a whole number of bytes, at least 1")
            for buffer in ("x", 0, -5, 1.5, True, None)
        ),
        *((call, (5,), {}, "a type is text, not int") for call in ("subscribe", "advertise")),
        *((call, ("a", 5), {}, "a condition is text, not int") for call in ("subscribe", "advertise")),
        *((call, ("a", "\ud800"), {}, "a condition: character 1") for call in ("subscribe", "advertise")),
        ("advertise", (None,), {}, "a type is text, not None"),
        ("declare", (5, {}), {}, "a type is text, not int"),
        ("declare", ("a", {}, 5), {}, "a parent is text, not int"),
        ("declare", ("a", ["price"]), {}, "names with types, not list: write {'price': 'float'}"),
        ("declare", ("a", {5: "int"}), {}, "the name of an attribute is text, not int"),
        (
            "declare",
            ("a", {"x": int}),
            {},
            r"the type of attribute 'x' \(int, float, bool or string\) is text, not type",
        ),
    ],
)
def test_what_cannot_be_asked_for(open_client, broker, call, given, named, says):
    with open_client(broker.address) as c:
        with pytest.raises(MercastError, match=says):
            getattr(c, call)(*given, **named)
        broker.cut()  # nothing of it is asked for again
        c.subscribe("stock.quote")
        assert broker.asked(Kind.SUBSCRIBE)["type"] == "stock.quote"


def test_none_is_no_condition_and_echo_is_yes_or_no(open_client, broker):
    with open_client(broker.address) as c:
        c.advertise("stock.quote", None)
        assert broker.asked(Kind.ADVERTISE)["filter"] == ""
        c.subscribe("stock.quote", None, echo=0)
        said = broker.asked(Kind.SUBSCRIBE)
        assert (said["filter"], said["echo"]) == ("", False)


def test_without_time_left_what_is_there_will_do(open_client, broker):
    row = Dropped(EventId(1, 1, 1), 5, "no route")
    broker.answers[Kind.PUBLISH] = lambda request, _: (
        replies.event(event(1), [1]) + replies.reported(6, row) + replies.receipts(request, [1])
    )
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote")
        trace = c.trace("stock.quote")
        assert quotes.get(-1).id == event(1).id
        assert trace.get(-1) == (6, row)
        for one in (quotes, trace):
            with pytest.raises(NotAnswered):
                one.get(-1)
            with pytest.raises(MercastError, match="None to wait for ever"):
                one.get(float("nan"))


# -- slow subscribers --------------------------------------------------------------------------------------------------

EVENTS = 300
PAYLOAD = b"x" * 65_536


def fill(broker, done):
    """More than sockets hold."""
    broker.say(*(replies.event(event(n, payload=PAYLOAD), [1]) for n in range(1, EVENTS + 1)))
    done.set()


def test_a_full_buffer_stops_reading_until_events_are_taken(open_client, broker):
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote", buffer=100_000)
        done = threading.Event()
        threading.Thread(target=fill, args=(broker, done), daemon=True).start()
        assert quotes.get(PATIENCE).id.sequence == 1
        raw = getattr(quotes, "thing", quotes)
        got = []
        while not done.is_set() or len(got) < EVENTS - 1:
            got.append(quotes.get(PATIENCE))
            assert raw._bytes < 100_000 + 2 * 300_000  # the buffer and what a read brings
        assert [one.id.sequence for one in got] == list(range(2, EVENTS + 1))


def test_calls_are_answered_though_a_buffer_is_full(open_client, broker):
    """The answer lies behind the events."""
    with open_client(broker.address) as c:
        quotes = c.subscribe("stock.quote", buffer=100_000)
        fill_half = b"".join(replies.event(event(n, payload=PAYLOAD), [1]) for n in range(1, 101))
        broker.answers[Kind.PUBLISH] = lambda request, _: fill_half + replies.receipts(request, [1])
        assert c.publish("stock.quote") == Receipt(1, 1)
        assert [quotes.get(PATIENCE).id.sequence for _ in range(100)] == list(range(1, 101))


def test_a_subscription_that_is_left_full_ends_and_the_others_go_on(open_client, broker):
    with open_client(broker.address, timeout=1.5) as c:
        left = c.subscribe("stock.quote", buffer=1)
        other = c.subscribe("weather")
        broker.say(replies.event(event(1), [1]))
        assert broker.asked(Kind.UNSUBSCRIBE)["subscribed"] == 1
        broker.say(replies.event(event(2), [2]))
        assert other.get(PATIENCE).id.sequence == 2
        assert left.get(PATIENCE).id.sequence == 1
        with pytest.raises(SubscriberTooSlow):
            left.get(PATIENCE)


# -- asyncio alone -----------------------------------------------------------------------------------------------------


def test_as_readme_writes_it(broker):
    async def main():
        got = []
        async with mercast.connect(f"mercast://{broker.address}") as c:
            quotes = await c.subscribe("stock.quote", "price < 100")
            broker.say(*(replies.event(event(n, price=n), [1]) for n in range(3)))
            async for quote in quotes:
                got.append(quote.attributes["price"])
                if len(got) == 3:
                    break
            receipts = await asyncio.gather(*(c.publish("stock.quote", {"n": n}) for n in range(50)))
        return got, receipts

    got, receipts = asyncio.run(main())
    assert got == [0, 1, 2]
    assert receipts == [Receipt(1, 1)] * 50


def test_calls_may_be_cancelled(broker):
    del broker.answers[Kind.PUBLISH], broker.answers[Kind.SUBSCRIBE]

    async def main():
        async with mercast.connect(broker.address) as c:
            calls = [asyncio.create_task(call) for call in (c.publish("stock.quote"), c.subscribe("stock.quote"))]
            await asyncio.to_thread(broker.wait_for, Kind.SUBSCRIBE)
            for call in calls:
                call.cancel()
            assert [type(end) for end in await asyncio.gather(*calls, return_exceptions=True)] == [
                asyncio.CancelledError
            ] * 2
            assert (await asyncio.to_thread(broker.asked, Kind.UNSUBSCRIBE))["subscribed"] == 1
            broker.say(replies.receipts(3, [1]))  # nobody waits for it now
            await c.advertise("stock.quote")

    asyncio.run(main())


def test_a_client_that_was_never_opened(broker):
    async def main():
        with pytest.raises(Closed, match="async with"):
            await mercast.connect(broker.address).publish("stock.quote")

    asyncio.run(main())
