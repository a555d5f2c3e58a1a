"""The conversation of a client with its broker, both sides by the wire's own functions, without sockets."""

from concurrent.futures import Future

import orjson
import pytest
from scripted_broker import event

from mercast.client.errors import Closed, Refused, SubscriberTooSlow, Unacknowledged
from mercast.client.event import Receipt, ToPublish, encode
from mercast.client.seen import Handed
from mercast.client.session import LAST_REQUEST, Session
from mercast.client.standing import SLACK_BYTES, Advertised, Declared, Standing, Wanted
from mercast.content.event import EventId
from mercast.protocol.rows import Copied
from mercast.protocol.stimuli import Publish
from mercast.wire import hello, replies
from mercast.wire.frames import FRAME_BYTES, HELLO_BYTES, Framing, Kind, ProtocolError, frame
from mercast.wire.requests import read_publish

QUOTE = encode(ToPublish("stock.quote", {"price": 99}))


class Side:
    """A session, and what a broker reads of it."""

    def __init__(self, handed=None, **named):
        self.session = Session(named.get("name", "me"), named.get("token"), Future, handed or Handed())
        self._framing = Framing(limit=1 << 26)

    def said(self):
        return self._framing.feed(self.session.take())

    def hears(self, *frames):
        self.session.receive(b"".join(frames))


def welcomed(handed=None, broker=3):
    side = Side(handed)
    side.said()
    side.hears(hello.hello(mercast=1, broker=broker, incarnation=5, client="me.7", brokers=["b:1"], version="0.1.0"))
    return side


def wanted(full=None, type="stock.quote", buffer=1 << 20, settled=True):
    return Wanted(type, "", True, buffer, set() if full is None else full, Future(), settled)


def taken(subscription):
    events = []
    while (one := subscription.take()) is not None:
        events.append(one)
    return events


# -- hello -------------------------------------------------------------------------------------------------------------


def test_hello_says_who_speaks():
    [(kind, body)] = Side(name="shop", token="secret").said()
    assert kind == Kind.HELLO
    assert orjson.loads(body) == {"mercast": [1, 1], "role": "client", "name": "shop", "token": "secret"}
    [(_, body)] = Side().said()
    assert "token" not in orjson.loads(body)


def test_the_brokers_hello_is_kept_and_larger_frames_are_taken_from_then_on():
    side = welcomed()
    assert side.session.welcome == (3, 5, "me.7", ("b:1",))
    subscription = wanted()
    side.session.ask([subscription])
    side.hears(replies.event(event(payload=b"x" * (2 * HELLO_BYTES)), [1]))
    assert [len(one.payload) for one in taken(subscription)] == [2 * HELLO_BYTES]


def test_before_hello_no_large_frame_is_taken():
    with pytest.raises(ProtocolError, match="may have 1 to"):
        Side().hears(frame(Kind.HELLO, b"x" * HELLO_BYTES))


def test_a_version_that_was_not_offered_is_refused():
    with pytest.raises(ProtocolError, match="version 2"):
        Side().hears(hello.hello(mercast=2, broker=1, incarnation=1, client="x"))


def test_an_error_is_the_brokers_last_word():
    side = Side()
    side.hears(hello.refusal("token", "the token is wrong"))
    assert str(side.session.last_words) == "the token is wrong"
    assert side.session.last_words.code == "token"


# -- publish -----------------------------------------------------------------------------------------------------------


def test_publishes_are_numbered_and_acknowledged_in_runs():
    side = welcomed()
    first, second = side.session.publish([QUOTE, QUOTE]), side.session.publish([QUOTE])
    asked = [read_publish("me.7", body, 0) for kind, body in side.said() if kind == Kind.PUBLISH]
    assert [(one.request, one.type, one.attributes) for one in asked] == [
        (number, "stock.quote", {"price": 99}) for number in (1, 2, 3)
    ]
    side.hears(replies.receipts(1, [4, 0, 2]))
    assert first.future.result(0) == [Receipt(4, 3), Receipt(0, 3)]
    assert second.future.result(0) == [Receipt(2, 3)]
    assert not side.session.waiting


def test_a_refused_one_stands_among_the_others():
    side = welcomed()
    batch = side.session.publish([QUOTE, Refused("not even sent"), QUOTE])
    side.hears(replies.answer(1, "outside of what is advertised"), replies.receipts(2, [1]))
    refused, unsent, receipt = batch.future.result(0)
    assert (str(refused), str(unsent), receipt) == ("outside of what is advertised", "not even sent", Receipt(1, 3))


def test_what_fits_no_frame_is_refused_here_since_the_broker_would_hang_up():
    side = welcomed()
    [outcome] = side.session.publish([encode(ToPublish("big", {}, b"x" * FRAME_BYTES))]).future.result(0)
    assert isinstance(outcome, Refused)
    assert side.said() == []


def test_nothing_published_is_nothing_to_wait_for():
    assert welcomed().session.publish([]).future.result(0) == []


def test_what_is_not_acknowledged_when_the_connection_is_lost_is_told_so():
    side = welcomed()
    batch = side.session.publish([QUOTE, QUOTE])
    side.hears(replies.receipts(1, [1]))
    side.session.lost("the connection was lost")
    acknowledged, lost = batch.future.result(0)
    assert acknowledged == Receipt(1, 3)
    assert isinstance(lost, Unacknowledged)
    assert "may have been delivered or not" in str(lost)


def test_idle_is_when_all_is_acknowledged():
    side = welcomed()
    assert side.session.idle().done()
    side.session.publish([QUOTE, QUOTE])
    idle = side.session.idle()
    side.hears(replies.receipts(1, [1]))
    assert not idle.done()
    side.hears(replies.answer(2, "no"))
    assert idle.done()


def test_traced_publishes_say_so_and_reports_come_back():
    side, hops = welcomed(), []
    side.session.hops = hops.append
    side.session.publish([QUOTE], traced=True)
    asked: Publish = read_publish("me.7", side.said()[0][1], 0)
    assert asked.traced
    row = Copied(EventId(1, 2, 3), 5, 2, 1, 1, 1, True)
    side.hears(replies.reported(8, row))
    assert hops == [(8, row)]


def test_numbers_near_their_end_ask_for_another_connection():
    side = welcomed()
    side.session._next = LAST_REQUEST
    side.session.publish([QUOTE])
    assert side.session.moving == ()
    assert not side.session.drained


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (ToPublish("t", {"x": float("nan")}), "floats are finite"),
        (ToPublish("t", {"x": 2**70}), "64 bits"),
        (ToPublish("t", {"x": [1]}), "list cannot be an attribute"),
        (ToPublish("t", {}, "text"), "a payload is bytes, not str"),
        (ToPublish("t" * 70_000), "longer than"),
        (ToPublish(5), "type 5 is not a name"),
    ],
)
def test_bad_events_are_refused_before_they_are_sent(asked, says):
    with pytest.raises(Refused, match=says):
        encode(asked)


# -- what stands -------------------------------------------------------------------------------------------------------


def test_a_subscription_is_answered_and_settled():
    side, subscription = welcomed(), wanted()
    side.session.ask([subscription])
    [(kind, body)] = side.said()
    assert kind == Kind.SUBSCRIBE
    assert orjson.loads(body) == {"request": 1, "type": "stock.quote", "filter": "", "echo": True}
    settled = side.session.settled()
    side.hears(replies.answer(1))
    assert not subscription.first.done()
    assert not settled.done()
    side.hears(replies.settled(1, []))
    assert subscription.first.result(0) == ()
    assert settled.done()


def test_who_does_not_wait_for_settled_is_told_of_the_missing_later():
    side, subscription = welcomed(), wanted(settled=False)
    side.session.ask([subscription])
    side.hears(replies.answer(1))
    assert subscription.first.done()
    assert subscription.missing is None
    side.hears(replies.settled(1, [4]))
    assert subscription.missing == (4,)


def test_what_is_asked_anew_is_not_settled_before_the_new_broker_says_so():
    subscription = wanted()
    for broker in (3, 4):
        side = welcomed(broker=broker)
        side.session.ask([subscription])
        assert subscription.missing is None
        side.hears(replies.settled(1, ()))
        assert subscription.missing == ()


def test_refused_it_does_not_stand():
    side, standing, subscription = welcomed(), Standing(), wanted()
    standing.add(subscription)
    side.session.ask([subscription])
    side.hears(replies.answer(1, "there is no such attribute"))
    with pytest.raises(Refused, match="no such attribute"):
        subscription.first.result(0)
    assert standing.all() == []
    assert not side.session.waiting


def test_events_go_to_all_subscriptions_that_match():
    side, a, b = welcomed(), wanted(), wanted(type=None)
    side.session.ask([a, b])
    quote = event(price=5)
    side.hears(replies.event(quote, [1, 2]), replies.event(event(2), [2]), replies.event(event(3), [77]))
    [one] = taken(a)
    assert (one.type, one.attributes, one.time, one.publisher, one.id) == quote[1:2] + quote[2:5] + quote[:1]
    assert one.subscriptions == (a, b)
    assert [got.id.sequence for got in taken(b)] == [1, 2]


def test_taking_back_ends_the_events():
    side, a = welcomed(), wanted()
    side.session.ask([a])
    side.hears(replies.event(event(1), [1]))
    side.said()
    answered = side.session.undo(a)
    [(kind, body)] = side.said()
    assert (kind, orjson.loads(body)) == (Kind.UNSUBSCRIBE, {"request": 2, "subscribed": 1})
    side.hears(replies.event(event(2), [1]), replies.answer(2), replies.settled(2, []))
    assert answered.done()
    assert [one.id.sequence for one in taken(a)] == [1]
    assert not side.session.waiting


def test_what_was_never_asked_here_is_taken_back_at_once():
    assert welcomed().session.undo(wanted()).done()


def test_declarations_are_never_taken_back():
    side, declared = welcomed(), Declared("quote", {"price": "float"}, None, False, Future())
    side.session.ask([declared])
    assert side.said()[0][0] == Kind.DECLARE
    assert side.session.undo(declared).done()
    assert side.said() == []


def test_all_that_stands_is_asked_for_again_in_its_order():
    standing = Standing()
    for handle in (
        Declared("q", {}, None, False, Future()),
        Advertised("q", "x > 1", Future(), True),
        wanted(),
        wanted(),
    ):
        standing.add(handle)
    standing.remove(standing.all()[2])
    side = welcomed()
    side.session.ask(standing.all())
    assert [kind for kind, _ in side.said()] == [Kind.DECLARE, Kind.ADVERTISE, Kind.SUBSCRIBE]


def test_what_another_broker_refuses_later_ends_with_the_reason():
    subscription = wanted()
    for refused in ("", "unknown here"):
        side = welcomed()
        side.session.ask([subscription])
        side.hears(replies.answer(1, refused), *([] if refused else [replies.settled(1, [])]))
    with pytest.raises(Refused, match="unknown here"):
        subscription.take()


def test_closing_ends_what_stands():
    standing, ready, waiting = Standing(), wanted(), wanted()
    ready.settled(())
    for one in (ready, waiting):
        standing.add(one)
    standing.end(Closed("closed"))
    with pytest.raises(StopIteration):
        ready.take()
    with pytest.raises(Closed):
        waiting.first.result(0)


# -- no event twice ----------------------------------------------------------------------------------------------------


def test_of_two_brokers_copies_each_subscription_gets_one():
    handed = Handed()
    old, new = welcomed(handed, 1), welcomed(handed, 2)
    a, b = wanted(), wanted()
    for side in (old, new):
        side.session.ask([a, b])
    new.hears(replies.event(event(1), [1]))  # the second was not known there yet
    old.hears(replies.event(event(1), [1, 2]), replies.event(event(2), [1]))
    new.hears(replies.event(event(2), [1]), replies.event(event(1), [1, 2]))
    assert [one.id.sequence for one in taken(a)] == [1, 2]
    assert [one.id.sequence for one in taken(b)] == [1]


def test_only_the_last_events_are_remembered():
    handed = Handed(remembered=10)
    for number in range(100):
        assert handed.hand(EventId(1, 1, number), ("a",)) == ("a",)
    assert handed.hand(EventId(1, 1, 95), ("a", "b")) == ("b",)
    assert handed.hand(EventId(1, 1, 5), ("a",)) == ("a",)
    assert len(handed._new) + len(handed._old) <= 20


# -- buffers -----------------------------------------------------------------------------------------------------------


def test_a_full_buffer_is_told_until_half_of_it_is_taken():
    full = set()
    side, subscription = welcomed(), wanted(full, buffer=8000)
    side.session.ask([subscription])
    number = 0
    while not full:
        number += 1
        side.hears(replies.event(event(number), [1]))
    assert 6 <= number <= 8
    subscription.take()
    assert full
    while full:
        subscription.take()
        number -= 1
    assert 3 <= number <= 5


def test_a_buffer_that_runs_over_ends_its_subscription_alone():
    full = set()
    side, slow, quick = welcomed(), wanted(full, buffer=1000), wanted(full)
    side.session.ask([slow, quick])
    megabyte, count = b"x" * (1 << 20), SLACK_BYTES // (1 << 20) + 5
    for number in range(count):
        side.hears(replies.event(event(number, payload=megabyte), [1, 2]))
        quick.take()
    assert full == set()
    for _ in range(count - 5):
        assert slow.take() is not None
    with pytest.raises(SubscriberTooSlow, match="ran over"):
        taken(slow)
    assert quick.take() is None


def test_a_buffer_that_is_left_full_ends_its_subscription():
    standing = Standing()
    side, slow = welcomed(), wanted(standing.full, buffer=1)
    standing.add(slow)
    side.session.ask([slow])
    side.hears(replies.event(event(), [1]))
    assert standing.tick(100.0, 10.0) == []
    assert standing.tick(109.0, 10.0) == []
    assert standing.tick(111.0, 10.0) == [slow]
    assert slow.take() is not None
    with pytest.raises(SubscriberTooSlow, match="left full for 10 s"):
        slow.take()


# -- other words -------------------------------------------------------------------------------------------------------


def test_ping_is_answered_with_the_same_words():
    side = welcomed()
    side.hears(frame(Kind.PING, b"now"))
    assert side.said() == [(Kind.PONG, b"now")]


def test_drain_says_where_to_go():
    side = welcomed()
    side.hears(replies.drain(["a:1", "b:2"]))
    assert (side.session.moving, side.session.drained) == (("a:1", "b:2"), True)


def test_unknown_kinds_are_skipped():
    side = welcomed()
    side.hears(frame(200, b"news"), frame(Kind.PONG, b""))
    assert side.said() == []


@pytest.mark.parametrize(
    "damaged",
    [
        frame(Kind.ANSWER, b"[]"),
        frame(Kind.ANSWER, b'{"request": "1"}'),
        frame(Kind.SETTLED, b'{"request": 1, "missing": ["x"]}'),
        frame(Kind.REPORTED, b'{"broker": 1, "row": {"is": "Row"}}'),
        frame(Kind.REPORTED, b'{"broker": 1, "row": 5}'),
        frame(Kind.DRAIN, b'{"brokers": [1]}'),
        frame(Kind.EVENT, b"\x00"),
        frame(Kind.RECEIPTS, b"\x00\x00"),
    ],
)
def test_damage_is_a_protocol_error(damaged):
    side = welcomed()
    side.session.hops = print
    with pytest.raises(ProtocolError):
        side.hears(damaged)
