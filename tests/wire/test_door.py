"""What peers may not say, each with the reason they are told."""

import orjson
import pytest

from mercast.content import Advertisement, Declaration, Event, EventId, Filter, Subscription
from mercast.overlay.split import pack
from mercast.protocol.messages import (
    Ask,
    Complete,
    Control,
    Drop,
    Forward,
    HeartBeat,
    Local,
    Look,
    Packet,
    Put,
    Record,
    Reply,
    Report,
    Same,
    Statement,
    Update,
)
from mercast.protocol.plain import to_plain
from mercast.protocol.rows import Dropped
from mercast.wire import events, peers
from mercast.wire.events import decode_content, encode_content, encode_packet, encoded_together
from mercast.wire.frames import Kind, ProtocolError, frame
from mercast.wire.peers import decode_message, encode_message

ME = 2
ALL = Subscription(None, Filter())
QUOTES = Advertisement("quote", Filter())
LOCAL = Local("c.1", 1)
ORIGIN = (1, LOCAL)
DECLARED = Statement(1, 1, 1)
LONG = "x" * 256
ROW = Dropped(EventId(1, 1, 1), 1, "repeat")


def control(*items, **else_):
    return Control(1, 2, 0, (1, 1), 1, items, (1, 1), 0, ())._replace(**else_)


def update(record=None, **else_):
    return Update(b"", 0, (record,) if record else ())._replace(**else_)


ALLOWED = [
    control(Put(LOCAL, ALL), Put(LOCAL, QUOTES), Drop(LOCAL), Complete()),
    control(Put(DECLARED, Declaration("quote")), Put(("advertisement", ORIGIN), QUOTES)),
    control(Put(("subscription", ORIGIN, ORIGIN), ALL), source=0x7FFF, hops=65_537),
    update(Record(ME, 2**63 - 1, 1, (0,), ((ME, 255), (ME, 1)))),
    Report(0x7FFF, 1, LONG, 1, ROW),
    HeartBeat(b"", -1.5, 0.0, 3),
]


@pytest.mark.parametrize("message", ALLOWED, ids=range(len(ALLOWED)))
def test_let_in(message):
    assert decode_message(Kind.MESSAGE, orjson.dumps(to_plain(message)), ME) == message


REFUSED = [
    (control(source=0x8000), "brokers have numbers up to 32767"),
    (control(target=-1), "brokers have numbers"),
    (control(hops=-1), "hops are counted"),
    (control(hops=65_538), "hops are counted"),
    (control(hops=True), "a field that it cannot have"),
    (control(stream=(1,)), "a field that it cannot have"),
    (control(unsettled=("a",)), "a field that it cannot have"),
    (control(Put(Local("advertisement", 1), QUOTES)), "'advertisement' is no client"),
    (control(Drop(Local("subscription", 1))), "'subscription' is no client"),
    (control(Put(Local(LONG, 1), ALL)), "the name of a client has 256 characters, not 255"),
    (control(Put(LOCAL, Subscription(LONG, Filter()))), "its own broker refuses: type"),
    (control(Put(LOCAL, Declaration("quote"))), "Declaration under a key that never names one"),
    (control(Put(DECLARED, QUOTES)), "Advertisement under a key"),
    (control(Put(DECLARED, Declaration(""))), "its own broker refuses: type ''"),
    (control(Put(Statement(2**63, 1, 1), Declaration("quote"))), "are numbered 0 to"),
    (control(Drop(Statement(1, 0x8000, 1))), "brokers have numbers"),
    (control(Put(("advertisement", ORIGIN), ALL)), "Subscription under a key"),
    (control(Put(("subscription", ORIGIN, ORIGIN), QUOTES)), "Advertisement under a key"),
    (control(Drop(("advertisement", (0x8000, LOCAL)))), "brokers have numbers"),
    (control(Drop(("subscription", ORIGIN, (1, Local(LONG, 1))))), "the name of a client"),
    (control(Put(("a", "b"), ALL)), "a field that it cannot have"),
    (update(destinations=b"\0"), "in the midst of an entry"),
    (update(hops=70_000), "hops are counted"),
    (update(Record(0x8000, 1, 1, (), ())), "brokers have numbers"),
    (update(Record(1, -1, 1, (), ())), "are numbered 0 to"),
    (update(Record(1, 1, 2**63, (), ())), "are numbered 0 to"),
    (update(Record(1, 1, 1, (), ((2, 0),))), "a link costs 1 to 255"),
    (update(Record(1, 1, 1, (), ((2, 256),))), "a link costs 1 to 255"),
    (update(Record(1, 1, 1, (), ((0x8000, 1),))), "brokers have numbers"),
    (update(Record(1, 1, 1, (), ((2, 1),) * 1025)), "a record of 1025 links or clusters; there may be 1024"),
    (update(Record(1, 1, 1, (0,) * 1025, ())), "a record of 1025 links or clusters"),
    (update(records=(Record(1, 1, 1, (), ()),) * 1025), "1025 records at once; there may be 1024"),
    (Report(0x8000, 1, "c.1", 1, ROW), "brokers have numbers"),
    (Report(1, -1, "c.1", 1, ROW), "hops are counted"),
    (Report(1, 1, "c.1", 1, EventId(1, 1, 1)), "a field that it cannot have"),
    (HeartBeat(b"", float("nan")), "are finite"),
    (HeartBeat(b"", 1.0, float("inf")), "are finite"),
    (HeartBeat(b"", 1.0, 1.0, float("-inf")), "are finite"),
    (ROW, "Dropped is not a message"),
    (Forward(b"", 0, ()), "Forward is not a message"),
]


@pytest.mark.parametrize(("message", "why"), REFUSED, ids=range(len(REFUSED)))
def test_not_let_in(message, why):
    with pytest.raises(ProtocolError, match=why):
        decode_message(Kind.MESSAGE, orjson.dumps(to_plain(message)), ME)


ASK = Ask(1, 2, 0, 1, b"", 2.0, 1.0, None, ((1, 2, 3),))
REPLY = Reply(2, 1, 0, 1, b"", True, 0x7FFF)


@pytest.mark.parametrize("message", [ASK, REPLY, Look(1, 2, 0, b""), Same(1, 2, 65_537, b"")])
def test_let_in_to_move_links(message):
    assert decode_message(Kind.ORGANISE, orjson.dumps(to_plain(message)), ME) == message


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (ASK._replace(source=0x8000), "brokers have numbers"),
        (ASK._replace(given_up=-1), "brokers have numbers"),
        (ASK._replace(counts=((1, 0x8000, 1),)), "brokers have numbers"),
        (ASK._replace(counts=((1, 2, -1),)), "are numbered 0 to"),
        (ASK._replace(counts=((1, 2, 1),) * 4097), "4097 pairs of brokers are counted; there may be 4096"),
        (ASK._replace(gain=float("inf")), "is finite"),
        (ASK._replace(lose=float("nan")), "is finite"),
        (ASK._replace(number=-1), "are numbered 0 to"),
        (REPLY._replace(given_up=0x8000), "brokers have numbers"),
        (REPLY._replace(accepted=1), "a field that it cannot have"),
        (Look(1, -1, 0, b""), "brokers have numbers"),
        (Same(1, 2, -1, b""), "hops are counted"),
        (HeartBeat(b"", 1.0), "HeartBeat is not a message"),
    ],
)
def test_not_let_in_to_move_links(message, why):
    with pytest.raises(ProtocolError, match=why):
        decode_message(Kind.ORGANISE, orjson.dumps(to_plain(message)), ME)


def test_what_moves_links_is_no_message_of_the_other_kind():
    with pytest.raises(ProtocolError, match="Look is not a message"):
        decode_message(Kind.MESSAGE, orjson.dumps(to_plain(Look(1, 2, 0, b""))), ME)


EVENT = Event(EventId(1, 1, 1), "quote", {"a": 1}, 1, "p.1")


@pytest.mark.parametrize("note", [5, [1, 2], [0x8000, to_plain(LOCAL)], [1, to_plain(Local(LONG, 1))], {"is": "Tick"}])
def test_notes_that_no_strategy_writes(note):
    said = orjson.dumps(note)
    header = peers._FORWARD.pack(10, 0, 0, 0, len(said), 0)
    with pytest.raises(ProtocolError):
        decode_message(Kind.FORWARD, header + said, ME)


@pytest.mark.parametrize(
    "wrong", [b'{"a": [1]}', b'{"a": {}}', b'{"a": 9223372036854775808}', b"[]", b"{", b'{"a": NaN}']
)
def test_an_event_that_cannot_be_matched_is_left_out_and_those_beside_it_are_not(wrong):
    content = encode_content("quote", {})
    content = content[:7] + len(wrong).to_bytes(4, "big") + b"quote" + wrong
    packets = (Packet(EVENT), Packet(EVENT._replace(encoded=content)), Packet(EVENT))
    kind, body = Kind.FORWARD, encode_message(Forward(pack([ME]), 1, packets))[5:]
    got = decode_message(kind, body, ME)
    assert [Event(*packet.event[:8]) for packet in got.packets] == [EVENT, EVENT]
    assert encode_message(decode_message(kind, body, 3)) == frame(kind, body)


def test_lengths_that_do_not_add_up_are_the_neighbours_own_fault():
    one = encoded_together([encode_packet(Packet(EVENT))])
    for events_, count in ((one, 2), (one + b"\0", 1), (one[:-1], 1), (one, 0), (b"\0\0\0\1x", 1)):
        body = peers._FORWARD.pack(10, 0, 0, 2, 0, count) + pack([9]) + events_
        with pytest.raises(ProtocolError):
            decode_message(Kind.FORWARD, body, ME)


def test_the_publisher_of_a_passing_event_may_be_no_text():
    body = bytearray(encode_message(Forward(pack([9]), 1, (Packet(EVENT, traced=True),), None, True))[5:])
    at = body.index(b"p.1")
    body[at] = 0xFF
    (packet,) = decode_message(Kind.FORWARD, bytes(body), ME).packets
    assert packet.event.publisher == "\N{REPLACEMENT CHARACTER}.1"


def test_nobody_fills_the_memory_with_what_is_remembered(monkeypatch):
    monkeypatch.setattr(events, "_strings", {})
    decode_content(encode_content("quote", {}, b"", "text/plain", "a trace that never recurs"))
    decode_content(encode_content("x" * 60_000, {}))
    assert set(events._strings.values()) == {"quote", "text/plain"}
    peers._among.cache_clear()
    peers._note.cache_clear()
    for destinations, note in ((pack([9]), "short"), (pack(range(3, 2000)), "x" * 60_000)):
        decode_message(Kind.FORWARD, encode_message(Forward(destinations, 0, (), note))[5:], ME)
    assert peers._among.cache_info().currsize == peers._note.cache_info().currsize == 1
