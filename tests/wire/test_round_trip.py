"""What is written is what is read, and brokers on the way change nothing."""

import struct
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_strategies import (
    attributes,
    controls,
    events,
    forwards,
    names,
    notes,
    organising,
    packets,
    payloads,
    plain_messages,
    u32,
)

from mercast.content import AttributeType, Declaration, Event, EventId, Filter, Subscription
from mercast.content.errors import ContentError
from mercast.content.event import check_event
from mercast.content.values import INT_MAX, INT_MIN
from mercast.overlay.split import pack
from mercast.protocol import stimuli
from mercast.protocol.effects import Deliver, Send
from mercast.protocol.messages import Complete, Control, Forward, Local, Packet, Put, Record, Update
from mercast.protocol.stimuli import Received, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.wire import replies, requests
from mercast.wire.events import (
    PLAIN_BYTES,
    Passing,
    are_plain,
    decode_content,
    decode_packet,
    decode_packets,
    encode_content,
    encode_packet,
    encoded_together,
    have_values,
    read_contents,
)
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError
from mercast.wire.hello import common_version, field, hello, read_json, refusal
from mercast.wire.peers import MESSAGE_BYTES, RECORDS, TOGETHER_BYTES, decode_message, encode_message


def bare(event):
    """What an event says, without the bytes that it came in."""
    return Event(*event[:8])


def bare_packets(packets):
    return tuple(packet._replace(event=bare(packet.event)) for packet in packets)


def read_frames(data):
    framing = Framing(FRAME_BYTES)
    frames = framing.feed(data)
    assert framing.feed(b"\0") == []  # nothing was left over
    return frames


def only(data):
    ((kind, body),) = read_frames(data)
    return kind, body


# -- clients -----------------------------------------------------------------------------------------------------------


@given(u32, names, attributes, payloads, st.just(PLAIN_BYTES) | names, st.none() | names, st.booleans())
def test_publish(request, type_, attributes, payload, content_type, trace, traced):
    content = encode_content(type_, attributes, payload, content_type, trace)
    assert decode_content(b"before" + content, 6) == (type_, attributes, payload, content_type, trace)
    kind, body = only(requests.publish(request, content, traced))
    assert kind == Kind.PUBLISH
    asked = stimuli.Publish("c.1", request, type_, attributes, 5, payload, content_type, trace, traced, content)
    assert requests.read_publish("c.1", body, 5) == asked


ODD = [
    *(b"{}", b'{"a": 9223372036854775807}', b'{"a": 9223372036854775808}', b'{"a": -9223372036854775809}'),
    *(b'{"a": 123456789012345678901234567890}', b'{"a": 1e300}', b'{"": 1}', b'{"a": "\\u00e9"}', b'{"a": "\\ud800"}'),
    *('{"größe": 1}'.encode(), b'{"a": null}', b'{"a": {"b": 1}}', b'{"a": [1]}', b"[]", b'{"a": 1', b'{"a": true}'),
    *(b'{"a": "' + b"x" * 300 + b'"}', b'{"a": "' + b"x" * 70_000 + b'"}', b'{"a": 1, "a": 2}'),
]
odd = st.sampled_from(ODD)


@given(st.lists(st.tuples(names, attributes.map(orjson.dumps) | odd, payloads), min_size=1, max_size=4), st.data())
def test_many_publishes_are_read_as_each_of_them_is(contents, data):
    written = [foreign(attributes, type_.encode(), payload) for type_, attributes, payload in contents]
    bodies = [requests.publish(number, one)[5:] for number, one in enumerate(written, 1)]
    if data.draw(st.booleans()):
        bodies.append(data.draw(st.binary(max_size=20)))
    try:
        each = [requests.read_publish("c.1", body, 5) for body in bodies]
    except ProtocolError:
        with pytest.raises(ProtocolError):
            requests.read_publishes("c.1", bodies, 5)
        return
    many = requests.read_publishes("c.1", bodies, 5)
    assert repr([one._replace(plain=False) for one in many]) == repr(each)  # for to Python TRUE equals 1
    for one in many:
        if one.plain:  # then the door has nothing to do
            event = Event(EventId(1, 1, 1), one.type, one.attributes, 5, "c.1", encoded=one.encoded)
            assert check_event(event._replace(payload=one.payload)).attributes is one.attributes


contents = st.tuples(names, attributes.map(orjson.dumps) | odd, payloads).map(
    lambda said: foreign(said[1], said[0].encode(), said[2])
) | st.builds(encode_content, names, attributes, payloads, names, st.none() | names)


def damaged(data):
    """As it is mostly; with a byte changed, or cut short."""
    changed = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)).map(
        lambda how: data[: how[0]] + bytes([how[1]]) + data[how[0] + 1 :]
    )
    return st.just(data) | changed | st.integers(0, len(data)).map(lambda end: data[:end])


def read_or_none(read, *what):
    try:
        return read(*what)
    except ProtocolError:
        return None


@settings(max_examples=80)
@given(st.lists(st.tuples(contents.flatmap(damaged), st.binary(max_size=3)), min_size=1, max_size=4))
def test_many_contents_are_read_as_each_of_them_is(written):
    many = read_contents([before + one for one, before in written], [len(before) for _, before in written])
    if many is not None:
        each = [decode_content(before + one, len(before), as_written=True) for one, before in written]
        assert repr(list(zip(many.types, many.attributes, many.payloads, strict=True))) == repr([o[:3] for o in each])
        assert {one[3:] for one in each} == {(PLAIN_BYTES, None)}


@pytest.mark.parametrize(
    "written",
    [
        ('{"a":1},{"b":1', '"c":1}'),  # read together these are two objects, and neither is one
        ('{"a":"}', '{","b":1}'),
        ("{},{}", ""),
        ('{"a":1}', ""),
        ("", '{"a":1}'),
        ('{"a":1}{', '},"b":{}'),
        ('{"a":1}', "1,{}"),
        ("{", "}"),
    ],
)
def test_no_event_lends_another_its_attributes(written):
    assert read_contents([content_of(one) for one in written], [0, 0]) is None


@pytest.mark.parametrize("value", ['"}"', '"{"', '"{}"', '"},{"', '{"b":2}', '"[1]"', "[1]", "null", '""'])
def test_brackets_in_values_are_values(value):
    written = ['{"a":1}', f'{{"a":{value}}}', '{"a":2}']
    read = read_contents([content_of(one) for one in written], [0, 0, 0])
    assert read is not None
    assert read.attributes == [orjson.loads(one) for one in written]
    assert have_values(read) == (value not in ('{"b":2}', "[1]"))
    assert are_plain(read) == (value not in ('{"b":2}', "[1]", "null"))


def test_an_attribute_without_a_name_is_not_plain():
    read = read_contents([content_of('{"a":1}'), content_of('{"":1}')], [0, 0])
    assert read is not None
    assert not are_plain(read)


def content_of(attributes: str) -> bytes:
    return struct.pack(">BHHHI", 11, 1, 0, 0, len(attributes)) + b"t" + attributes.encode()


def test_contents_without_a_place_are_a_mistake():
    with pytest.raises(ValueError, match="shorter"):
        read_contents([encode_content("t", {})] * 2, [0])


stamped = st.tuples(packets, contents).map(
    lambda one: encode_packet(one[0]._replace(event=one[0].event._replace(encoded=one[1])))
)


def can_be_matched(packet):
    return packet is not None and all(
        value is None or (type(value) is int and INT_MIN <= value <= INT_MAX) or type(value) in (str, float, bool)
        for value in packet.event.attributes.values()
    )


@settings(max_examples=80)
@given(st.lists(stamped.flatmap(damaged), min_size=1, max_size=4))
def test_many_packets_are_read_as_each_of_them_is(parts):
    """What cannot be read, or matched, is left out of them."""
    each = [read_or_none(decode_packet, part) for part in parts]
    many = decode_packets(encoded_together(parts), 0, len(parts))
    assert repr(many) == repr(tuple(filter(can_be_matched, each)))


STAMP, CONTENT = 0, 31 + len("c.1")
"""Where the lengths of their headers stand in a packet."""


@pytest.mark.parametrize("written", ODD, ids=lambda written: written[:30].decode())
@pytest.mark.parametrize("header", [STAMP, CONTENT])
@pytest.mark.parametrize("longer", [-1, 0, 1])
def test_one_odd_packet_is_read_among_others_as_it_is_alone(written, header, longer):
    usual, odd = (
        encode_packet(Packet(Event(EventId(1, 2, 3), "t", {}, 4, "c.1", encoded=foreign(said, b"t"))))
        for said in (b'{"a": 1}', written)
    )
    assert (odd[STAMP], odd[CONTENT]) == (31, 11)
    odd = odd[:header] + bytes([odd[header] + longer]) + odd[header + 1 :]
    parts = [usual, odd, usual]
    each = [read_or_none(decode_packet, part) for part in parts]
    for some in (slice(3), slice(1, 2)):
        many = decode_packets(encoded_together(parts[some]), 0, len(parts[some]))
        assert repr(many) == repr(tuple(filter(can_be_matched, each[some])))


def test_usual_events_are_known_to_be_plain():
    content = encode_content("quote", {"price": 9.5, "volume": 300, "symbol": "ACME", "halted": False}, b"\xff" * 9)
    (asked,) = requests.read_publishes("c.1", [requests.publish(1, content)[5:]], 5)
    assert asked.plain


def test_what_cannot_be_said_is_told_before_it_is_sent():
    for wrong in (float("nan"), float("inf"), 2**64, b"x", "\ud800", datetime(2026, 1, 1, tzinfo=UTC)):
        with pytest.raises(ContentError):
            encode_content("t", {"a": wrong})
    assert encode_content("t", {"a": None, "b": "null"})
    for texts in (("x" * 65536, "c", None), ("t", "x" * 65536, None), ("t", "c", "x" * 65536), ("\ud800", "c", None)):
        with pytest.raises(ContentError, match="a type, content type or trace context"):
            encode_content(texts[0], {}, b"", *texts[1:])


FILTER = Filter.parse("price < 100 AND symbol LIKE 'A%'")
DECLARATION = Declaration("quote", "stock", {"price": AttributeType.FLOAT}, open=True)
REQUESTS = [
    (requests.subscribe(1, "quote", str(FILTER), False), stimuli.Subscribe("c.1", 1, "quote", FILTER, False)),
    (requests.subscribe(1, None, "", True), stimuli.Subscribe("c.1", 1, None, Filter(), True)),
    (requests.unsubscribe(2, 1), stimuli.Unsubscribe("c.1", 2, 1)),
    (requests.advertise(3, "quote", str(FILTER)), stimuli.Advertise("c.1", 3, "quote", FILTER)),
    (requests.unadvertise(4, 3), stimuli.Unadvertise("c.1", 4, 3)),
    (requests.declare(5, "quote", "stock", {"price": "float"}, True), stimuli.Declare("c.1", 5, DECLARATION)),
    (requests.declare(6, "x", None, {}), stimuli.Declare("c.1", 6, Declaration("x"))),
    (requests.leave(), stimuli.Leave("c.1")),
]


@pytest.mark.parametrize(("said", "asked"), REQUESTS, ids=lambda one: type(one).__name__)
def test_requests(said, asked):
    kind, body = only(said)
    assert requests.read_request(kind, "c.1", body) == asked


def test_what_is_wrong_with_a_request_is_said():
    with pytest.raises(requests.Refused, match="expected") as refused:
        requests.read_request(Kind.SUBSCRIBE, "c.1", b'{"request": 7, "filter": "price <"}')
    assert refused.value.request == 7
    with pytest.raises(requests.Refused, match="there is no type 'money'; there are bool, int, float, string"):
        requests.read_request(Kind.DECLARE, "c.1", b'{"request": 7, "name": "x", "attributes": {"a": "money"}}')
    assert requests.read_request(99, "c.1", b"\0") is None


BIG = 100_000

UNBOUNDED = {
    "the name of an attribute": requests.declare(7, "x", None, {"a" * BIG: "int"}),
    "the name of one without a type": requests.declare(7, "x", None, {"a" * BIG: "money"}),
    "a type of an attribute": requests.declare(7, "x", None, {"a": "m" * BIG}),
    "a nested type": requests.declare(7, "x", None, {"a": [[["m" * BIG] * 3] * 3]}),
    "a type": requests.declare(7, "x" * BIG, None, {}),
    "a parent": requests.declare(7, "x", "p" * BIG, {}),
    "many attributes": requests.declare(7, "x", None, {f"a{one}": "int" for one in range(BIG)}),
    "a subscription": requests.subscribe(7, "x" * BIG, "", True),
    "a filter": requests.subscribe(7, "x", "a = " + "1" * BIG, True),
}


@pytest.mark.parametrize("said", UNBOUNDED.values(), ids=UNBOUNDED)
def test_what_is_too_large_is_refused_in_few_words(said):
    kind, body = only(said)
    with pytest.raises(requests.Refused) as refused:
        requests.read_request(kind, "c.1", body)
    assert len(str(refused.value)) < 1000


@given(events, st.lists(u32, max_size=5).map(tuple))
def test_events_for_clients(event, subscriptions):
    kind, body = only(replies.event(event, subscriptions))
    arrived = replies.read_event(body)
    assert (kind, bare(arrived.event), arrived.subscriptions) == (Kind.EVENT, event, subscriptions)


def test_an_event_names_no_more_subscriptions_than_it_can():
    event = Event(EventId(1, 2, 3), "t", {}, 4, "c.1")
    _, body = only(replies.event(event, tuple(range(70_000))))
    assert replies.read_event(body).subscriptions == tuple(range(65_535))


@given(u32, st.lists(u32, max_size=9))
def test_receipts(first, counts):
    kind, body = only(replies.receipts(first, counts))
    assert (kind, *replies.read_receipts(body)) == (Kind.RECEIPTS, first, counts)


def test_other_words_to_clients():
    assert read_json(only(replies.answer(3))[1]) == {"request": 3}
    assert read_json(only(replies.answer(3, "no"))[1]) == {"request": 3, "refused": "no"}
    assert read_json(only(replies.settled(3, (5,)))[1]) == {"request": 3, "missing": [5]}
    assert read_json(only(replies.drain(("a:1",)))[1]) == {"brokers": ["a:1"]}
    said = read_json(only(refusal("full", "no room", after=3))[1])
    assert said == {"code": "full", "reason": "no room", "after": 3}
    assert field(read_json(only(hello(name="größe"))[1]), "name", str) == "größe"


@pytest.mark.parametrize(
    ("theirs", "mine", "chosen"),
    [([1, 1], (1, 1), 1), ([1, 5], (1, 3), 3), ([2, 3], (1, 4), 3), ([3, 9], (1, 3), 3), ([1, 2], (2, 3), 2)],
)
def test_the_newest_version_that_both_speak(theirs, mine, chosen):
    assert common_version(theirs, mine) == chosen


# -- brokers -----------------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(organising)
def test_what_is_said_to_move_links(message):
    kind, body = only(encode_message(message))
    assert (kind, decode_message(kind, body, 1)) == (Kind.ORGANISE, message)


@given(plain_messages)
def test_messages(message):
    kind, body = only(encode_message(message))
    assert (kind, decode_message(kind, body, 1)) == (Kind.MESSAGE, message)


@settings(max_examples=80)
@given(forwards, st.integers(0, 9))
def test_forwards(forward, me):
    kind, body = only(encode_message(forward))
    got = decode_message(kind, body, me)
    assert (kind, len(got.packets)) == (Kind.FORWARD, len(forward.packets))
    assert got._replace(packets=()) == forward._replace(packets=())
    if isinstance(got.packets, Passing):
        assert forward.destinations
        assert encode_message(got) == encode_message(forward)
    else:
        assert bare_packets(got.packets) == forward.packets


A, B, C = 1, 2, 3


@settings(max_examples=80)
@given(st.lists(packets, min_size=1, max_size=4).map(tuple), notes, st.integers(0, 0xFFFF), st.data())
def test_an_event_passes_an_intermediate_broker_untouched(packets, note, hops, data):
    sent = Forward(pack([C, 7, 8]), hops, packets, note, any(packet.traced for packet in packets))
    at_b = decode_message(*only(encode_message(sent)), B)
    assert isinstance(at_b.packets, Passing)
    for packet, passing in zip(packets, at_b.packets, strict=True):  # what rows are written of
        publisher = packet.event.publisher if packet.traced else ""
        assert passing == Packet(Event(packet.event.id, "", {}, packet.event.time, publisher), packet.traced)
    assert at_b.packets[0] == next(iter(at_b.packets))
    assert at_b.packets[1:] == tuple(at_b.packets)[1:]
    part = data.draw(st.sampled_from([[C], [C, 7], [C, 8]]))
    onward = encode_message(Forward(pack(part), at_b.hops + 1, at_b.packets, at_b.note, at_b.traced))
    at_c = decode_message(*only(onward), C)
    assert at_c.hops == min(hops + 1, 0xFFFF)
    assert (bare_packets(at_c.packets), at_c.note, at_c.traced) == (packets, note, sent.traced)
    again = encode_message(at_c._replace(destinations=sent.destinations, hops=hops))
    assert again == encode_message(sent)


def test_many_events_travel_in_frames_of_bearable_size_and_in_order():
    events = [Event(EventId(1, 2, n), "t", {}, 4, "c.1", payload=bytes(1000)) for n in range(1000)]
    packets = tuple(map(Packet, events))
    frames = read_frames(encode_message(Forward(pack([C]), 1, packets)))
    assert all(len(body) < TOGETHER_BYTES + 2000 for _, body in frames)
    got = [decode_message(*one, C) for one in frames]
    assert tuple(packet for one in got for packet in bare_packets(one.packets)) == packets
    assert {one._replace(packets=()) for one in got} == {Forward(pack([C]), 1, ())}


def test_more_events_than_a_frame_can_count():
    packet = Packet(Event(EventId(1, 2, 3), "t", {}, 4, "c"))
    frames = read_frames(encode_message(Forward(b"", 1, (packet,) * 70_000)))
    assert sum(len(decode_message(*one, C).packets) for one in frames) == 70_000


def test_control_state_too_large_for_a_frame_is_sent_in_several():
    """A window of the longest filters is many times as large as a frame may be."""
    text = f"a IN ({', '.join(str(n) for n in range(8000))})"
    puts = tuple(Put(Local("c.1", n), Subscription(None, Filter.parse(text))) for n in range(256))
    control = Control(1, 2, 0, (1, 1), 5, (*puts, Complete()), (2, 1), 9, (8, 9), True)
    frames = read_frames(encode_message(control))
    assert len(frames) > 4
    assert all(len(body) <= MESSAGE_BYTES for _, body in frames)
    got = [decode_message(*one, 2) for one in frames]
    assert tuple(item for one in got for item in one.items) == control.items
    assert [one.first for one in got[1:]] == [one.first + len(one.items) for one in got[:-1]]
    assert {one._replace(first=5, items=()) for one in got} == {control._replace(items=())}


def test_more_records_than_one_update_may_have():
    records = tuple(Record(n, 1, 1, (0,), ()) for n in range(3 * RECORDS))
    got = [decode_message(*one, 2) for one in read_frames(encode_message(Update(b"", 3, records)))]
    assert tuple(record for one in got for record in one.records) == records
    assert all(len(one.records) <= RECORDS and one.hops == 3 for one in got)


@given(controls.filter(lambda control: len(control.items) < 2))
def test_what_cannot_be_parted_stays_whole(control):
    assert len(read_frames(encode_message(control))) == 1


# -- an event that the broker's door changes ---------------------------------------------------------------------------


def line():
    """Broker 1 of the line 1 - 2, where 2 wants all quotes, and a client of 1's own does."""
    core = DDBR(1, 1)
    core.begin_with(0.0, {2: 1}, [Record(2, 1, 1, (0,), ((1, 1),))])
    wants = (Put(Local("s.1", 1), Subscription("quote", Filter())), Complete())
    core.handle(0.1, Received(2, (Control(2, 1, 0, (1, 1), 1, wants, (-1, -1), 0, ()),)))
    core.handle(0.1, Subscribe("here.1", 4, "quote", Filter.parse("order.id = 7")))
    return core


def publish(core, content):
    """What broker 2 and the client of broker 1 read of an event."""
    body = requests.publish(3, content)[5:]
    effects = core.handle(0.2, requests.read_publish("p.1", body, 5))
    sent = [
        one for effect in effects if isinstance(effect, Send) for one in effect.messages if isinstance(one, Forward)
    ]
    ((forward,), (delivered,)) = sent, [effect for effect in effects if isinstance(effect, Deliver)]
    ((at_2,),) = (decode_message(*only(encode_message(forward)), 2).packets,)
    arrived = replies.read_event(only(replies.event(delivered.event, delivered.subscriptions))[1])
    assert bare(arrived.event) == bare(at_2.event)
    return bare(at_2.event), encode_message(forward)


def foreign(attributes, type_=b"quote", payload=b"payload"):
    """Content whose attributes somebody else wrote."""
    content = encode_content(type_.decode(), {})
    return content[:7] + len(attributes).to_bytes(4, "big") + type_ + attributes + payload


def test_attributes_that_the_door_flattens_are_written_anew():
    nested = b'{"order": {"id": 7, "to": null}, "n": 1}'
    event, sent = publish(line(), foreign(nested))
    assert event.attributes == {"order.id": 7, "n": 1}
    assert (event.type, event.payload, event.publisher) == ("quote", b"payload", "p.1")
    assert nested not in sent
    assert b'{"order.id":7,"n":1}' in sent


def test_attributes_that_the_door_leaves_alone_pass_as_they_were_written():
    spaced = b'{ "order.id" : 7, "n" : 1.50 }'
    event, sent = publish(line(), foreign(spaced))
    assert event.attributes == {"order.id": 7, "n": 1.5}
    assert foreign(spaced) in sent


@pytest.mark.parametrize("number", [-(2**63) - 1, -(10**19), 2**63, 2**64 - 1, 2**64, -(10**300)], ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_an_int_that_does_not_fit_is_refused_and_never_a_float(number, nested):
    written = f'{{"order.id": 7, "n": {{"m": {number}}}}}' if nested else f'{{"order.id": 7, "n":{number}}}'
    body = requests.publish(3, foreign(written.encode()))[5:]
    (answer,) = line().handle(0.2, requests.read_publish("p.1", body, 5))
    assert answer.request == 3
    assert "bits is too large: ints have 64 bits" in answer.refused


@pytest.mark.parametrize("number", ["-9223372036854775808", "9223372036854775807", "1e20", "-100000000000000000000.0"])
def test_numbers_that_fit_pass_as_they_were_written(number):
    written = f'{{"order.id":7,"n":{number},"s":"123456789012345678901234567890"}}'.encode()
    event, sent = publish(line(), foreign(written))
    expected = float(number) if "." in number or "e" in number else int(number)
    assert (event.attributes["n"], type(event.attributes["n"])) == (expected, type(expected))
    assert foreign(written) in sent


def test_long_ints_below_too_many_levels_are_refused_for_the_levels():
    levels = 1000
    written = '{"a":' * levels + "1" * 30 + "}" * levels
    (answer,) = line().handle(0.2, requests.read_publish("p.1", requests.publish(3, foreign(written.encode()))[5:], 5))
    assert "nested more than" in answer.refused
