"""Whatever comes over the wire: only the protocol's own errors escape, and what gets in makes no broker stumble."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_strategies import (
    JUNK,
    attributes,
    damaged_bytes,
    damaged_plain,
    events,
    forwards,
    names,
    organising,
    payloads,
    places,
    plain_messages,
    put_at,
    u32,
)

from mercast.content import Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Deliver, Reported, Send
from mercast.protocol.messages import Record
from mercast.protocol.stimuli import Advertise, Publish, Received, Subscribe, Tick
from mercast.routing.settings import Settings
from mercast.routing.strategies import STRATEGIES
from mercast.wire import frames, replies, requests
from mercast.wire.events import encode_content
from mercast.wire.frames import FRAME_BYTES, HELLO_BYTES, Framing, Kind, ProtocolError, frame
from mercast.wire.hello import common_version, hello, read_json
from mercast.wire.peers import decode_message, encode_message

ME = 2
TOLD = (ProtocolError, requests.Refused)


def quietly(read, *args):
    """What it reads; None where it says what is wrong. Any other error is one."""
    try:
        return read(*args)
    except TOLD:
        return None


# -- readers ---------------------------------------------------------------------------------------------------------

contents = st.builds(encode_content, names, attributes, payloads, names, st.none() | names)
publishes = st.builds(requests.publish, u32, contents, st.booleans()).map(lambda data: data[5:])
arrivals = st.builds(replies.event, events, st.lists(u32, max_size=3)).map(lambda data: data[5:])
receipts = st.builds(replies.receipts, u32, st.lists(u32, max_size=4)).map(lambda data: data[5:])
said = st.builds(hello, mercast=st.just([1, 1]), role=names, name=names).map(lambda data: data[5:])
requested = st.one_of(
    st.builds(requests.subscribe, u32, st.none() | names, st.sampled_from(["", "a > 1", "a >"]), st.booleans()),
    st.builds(requests.unsubscribe, u32, u32),
    st.builds(requests.advertise, u32, names, st.sampled_from(["", "a > 1", "a >"])),
    st.builds(requests.unadvertise, u32, u32),
    st.builds(requests.declare, u32, names, st.none() | names, st.dictionaries(names, names, max_size=2)),
    st.just(requests.leave()),
)
bodies = st.binary(max_size=200)


def or_damaged(valid):
    return bodies | damaged_bytes(valid)


@settings(max_examples=100)
@given(or_damaged(publishes))
def test_publish(body):
    quietly(requests.read_publish, "c.1", body, 1)


@settings(max_examples=100)
@given(or_damaged(arrivals))
def test_event(body):
    quietly(replies.read_event, body)


@given(or_damaged(receipts))
def test_receipts(body):
    quietly(replies.read_receipts, body)


@given(or_damaged(said))
def test_hello(body):
    read = quietly(read_json, body)
    if read is not None:
        quietly(common_version, read.get("mercast"))


@given(st.sampled_from(JUNK) | st.lists(st.sampled_from(JUNK), max_size=3))
def test_versions(theirs):
    version = quietly(common_version, theirs)
    assert version is None or (version == 1 and theirs[0] <= 1 <= theirs[1])


@settings(max_examples=100)
@given(requested, st.data())
def test_requests(valid, data):
    kind, body = valid[4], valid[5:]
    plain = orjson.loads(body)
    plain = put_at(plain, data.draw(st.sampled_from(list(places(plain)))), data.draw(st.sampled_from(JUNK)))
    body = data.draw(st.just(orjson.dumps(plain)) | or_damaged(st.just(body)))
    stimulus = quietly(requests.read_request, kind, "c.1", body)
    for name in STRATEGIES if stimulus else ():
        core = broker(name)
        for effect in core.handle(1.0, stimulus):
            for message in effect.messages if isinstance(effect, Send) else ():
                pass_on(message, effect.neighbour)
        core.handle(2.0, Publish("p.1", 99, "quote", {"a": 3, "x": 1}, 1))


@settings(max_examples=100)
@given(st.sampled_from([Kind.FORWARD, Kind.MESSAGE, Kind.ORGANISE, 99]), bodies)
def test_messages_of_random_bytes(kind, body):
    quietly(decode_message, kind, body, ME)


ABSURD = [
    *(b"[" * 100_000, b"{" * 100_000, b'{"is":' * 2000, b"[" * 1000 + b"]" * 1000, b"1" * 100_000, b"NaN"),
    *(b'{"request": NaN}', b'{"request": 1e999}', b'{"a": "\\ud800"}', b'"\xed\xa0\x80"', b"\xff\xfe", b"", b"null"),
    *(b'{"request": 1, "type": "\\udc00"}', b'{"request": ' + b"9" * 5000 + b"}", b"-Infinity", b'{"request": true}'),
    *(b'{"is": "Filter", "text": "' + b"(" * 60_000 + b'"}', b'{"is": "bytes", "hex": "zz"}', b'{"is": "Control"}'),
]


@pytest.mark.parametrize("body", ABSURD, ids=range(len(ABSURD)))
def test_absurd_json(body):
    for kind in Kind:
        quietly(requests.read_request, kind, "c.1", body)
        quietly(decode_message, kind, body, ME)
    quietly(read_json, body)
    header = encode_content("quote", {})[:7] + len(body).to_bytes(4, "big")
    for content in (header + b"quote" + body, header + b"quote" + body[:-1]):
        quietly(requests.read_publish, "c.1", b"\0\0\0\1\0" + content, 1)


# -- numbers that the other side could not say -----------------------------------------------------------------------


@pytest.mark.parametrize("request_", [0, -1, 2**32, 2**63])
def test_a_request_that_no_event_could_name_is_refused(request_):
    with pytest.raises(requests.Refused, match="1 to 4294967295") as refused:
        requests.read_request(Kind.SUBSCRIBE, "c.1", orjson.dumps({"request": request_}))
    assert refused.value.request == request_


def test_names_of_types_are_as_long_as_names_may_be():
    for kind in (Kind.SUBSCRIBE, Kind.ADVERTISE):
        with pytest.raises(requests.Refused, match="at most 255"):
            requests.read_request(kind, "c.1", orjson.dumps({"request": 1, "type": "x" * 256}))


def test_an_event_that_would_not_fit_a_frame_between_brokers_is_not_let_in():
    content = encode_content("quote", {}, bytes(requests.CONTENT_BYTES))
    with pytest.raises(ProtocolError, match="it may have"):
        requests.read_publish("c.1", requests.publish(1, content)[5:], 1)
    content = encode_content("quote", {}, bytes(requests.CONTENT_BYTES - 100))
    event = requests.read_publish("c.1", requests.publish(1, content)[5:], 1)
    assert event.payload == bytes(requests.CONTENT_BYTES - 100)


# -- frames ----------------------------------------------------------------------------------------------------------

streams = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=30)), max_size=8)


def cut(data, cuts):
    ends = sorted({min(at, len(data)) for at in cuts} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=100)
@given(streams, st.lists(st.integers(0, 300), max_size=20))
def test_the_same_frames_however_the_stream_is_cut(said, cuts):
    framing = Framing()
    data = b"".join(frame(*one) for one in said)
    assert [got for piece in cut(data, cuts) for got in framing.feed(piece)] == said
    framing = Framing()
    assert [got for at in range(len(data)) for got in framing.feed(data[at : at + 1])] == said


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_frames_or_an_error(pieces):
    framing = Framing(1000)
    for piece in pieces:
        if quietly(framing.feed, piece) is None:
            break


@pytest.mark.parametrize("length", [0, HELLO_BYTES + 1, FRAME_BYTES + 1, 2**32 - 1])
def test_a_length_is_checked_as_soon_as_it_is_there(length):
    framing = Framing()
    with pytest.raises(ProtocolError, match=f"a frame of {length} bytes; it may have 1 to {HELLO_BYTES}"):
        framing.feed(length.to_bytes(4, "big") + b"\x10")


def test_a_large_frame_may_follow_the_hello_that_allows_it():
    large = frame(Kind.MESSAGE, bytes(HELLO_BYTES))
    framing = Framing()
    assert framing.feed(hello(name="x") + large)[0][0] == Kind.HELLO
    framing.limit = FRAME_BYTES
    assert framing.feed(b"") == [(Kind.MESSAGE, bytes(HELLO_BYTES))]
    framing = Framing()
    assert len(framing.feed(hello(name="x") + large)) == 1
    with pytest.raises(ProtocolError, match=f"1 to {HELLO_BYTES}"):
        framing.feed(b"")


class Counting(bytearray):
    """Counts the bytes that are copied into it."""

    copied = most = 0

    def __iadd__(self, data):
        Counting.copied += len(data)
        result = super().__iadd__(data)
        Counting.most = max(Counting.most, len(self))
        return result


def test_a_large_frame_in_small_pieces_is_copied_a_few_times_and_takes_no_more_than_its_size(monkeypatch):
    monkeypatch.setattr(frames, "bytearray", Counting, raising=False)
    framing = Framing(FRAME_BYTES)
    data = frame(Kind.PUBLISH, bytes(FRAME_BYTES - 1))
    pieces = 64
    got = [one for at in range(0, len(data), pieces) for one in framing.feed(data[at : at + pieces])]
    assert got == [(Kind.PUBLISH, bytes(FRAME_BYTES - 1))]
    assert Counting.copied <= len(data)
    assert Counting.most <= len(data)


# -- what gets in makes no broker stumble ----------------------------------------------------------------------------


def broker(name):
    """Broker 2 of the line 1 - 2 - 3 - 4, with clients, that has heard from its peers."""
    core = STRATEGIES[name](ME, 1, Settings(covering=name == "fbr"))
    links = {1: ((2, 1),), 2: ((1, 1), (3, 1)), 3: ((2, 1), (4, 1)), 4: ((3, 1),)}
    core.begin_with(0.0, {1: 1, 3: 1}, [Record(one, 1, len(to), (0,), to) for one, to in links.items()])
    core.handle(0.1, Advertise("p.1", 1, "quote", Filter()))
    core.handle(0.1, Subscribe("s.1", 1, "quote", Filter.parse("a > 1 OR x = 1")))
    core.handle(0.1, Subscribe("s.1", 2, None, Filter.parse("a LIKE 'a%' OR b IN (1, 2, 'x') OR a IS NULL")))
    return core


def pass_on(message, neighbour):
    """What an honest broker says is let in at the next one."""
    framing = Framing(FRAME_BYTES)
    for kind, body in framing.feed(encode_message(message)):
        assert decode_message(kind, body, neighbour) is not None


def take_in(messages):
    for name in STRATEGIES:
        core = broker(name)
        for now, message in enumerate(messages, 1):
            effects = core.handle(float(now), Received(1, (message,)))
            effects += core.handle(now + 0.5, Tick())
            for effect in effects:
                match effect:
                    case Send(neighbour, sent):
                        for one in sent:
                            pass_on(one, neighbour)
                    case Deliver(_, event, subscriptions):
                        replies.read_event(replies.event(event, subscriptions)[5:])
                    case Reported(_, who, row):
                        replies.reported(who, row)
            for effect in core.handle(now + 0.6, Publish("p.1", 10 + now, "quote", {"a": 3}, 1)):
                for one in effect.messages if isinstance(effect, Send) else ():
                    pass_on(one, effect.neighbour)


def let_in(kind, bodies):
    return [message for body in bodies if (message := quietly(decode_message, kind, body, ME)) is not None]


@settings(max_examples=60, deadline=None)
@given(st.lists(damaged_plain() | plain_messages.map(lambda message: encode_message(message)[5:]), max_size=3))
def test_damaged_messages_make_no_broker_stumble(bodies):
    take_in(let_in(Kind.MESSAGE, bodies))


ORGANISING = Settings(organise="carried", organise_every=1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(organising, max_size=6), st.booleans())
def test_what_is_said_to_move_links_makes_no_broker_stumble(said, as_seen):
    """By neighbours of the same view, or of another; before, within and after a step of its own."""
    core = STRATEGIES["ddbr"](ME, 1, ORGANISING)
    listed = {1: (ME,), 3: (ME, 4), 4: (3,)}
    records = [Record(who, 1, 1, (0,), tuple((one, 1) for one in some)) for who, some in listed.items()]
    core.begin_with(0.0, {1: 1, 3: 1}, records)
    core.organising[0].count(ME, pack([4]), 100)
    core.handle(1.1, Tick())
    for now, message in enumerate(said, 2):
        digest = {"digest": core.state.digest} if as_seen else {}
        core.handle(now, Received(1, (message._replace(target=ME, **digest),)))
        core.handle(now + 0.5, Tick())
        core.validate()


forward_bodies = forwards.map(lambda forward: encode_message(forward)[5:])


@settings(max_examples=60, deadline=None)
@given(st.lists(damaged_bytes(forward_bodies) | forward_bodies, max_size=3))
def test_damaged_forwards_make_no_broker_stumble(bodies):
    take_in(let_in(Kind.FORWARD, bodies))
