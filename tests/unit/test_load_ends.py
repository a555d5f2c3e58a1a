"""The load ends of the benches count and time what they should: a wrong figure would look as good as a right one."""

import socket

import pytest

from mercast.content import Filter
from mercast.content.event import Event, EventId
from mercast.wire import replies
from mercast.wire.events import decode_content
from mercast.wire.frames import Framing, Kind, frame
from mercast.wire.requests import read_publish
from mercast_loadtest.bench import quotes
from mercast_loadtest.bench.dialects import Bare, Mercast, Nats, publish_frames
from mercast_loadtest.bench.frames import Frames
from mercast_loadtest.bench.load import around_forwarders

DUE = 1_234_567_890_123


@pytest.fixture
def pair():
    here, there = socket.socketpair()
    with here, there:
        yield here, there


@pytest.fixture(scope="module")
def contents():
    return quotes.contents(quotes.wanted_events([Filter()], 7, seed=1))


def test_events_have_the_size_asked_for_and_match():
    filters = quotes.filters(50, seed=3)
    events = quotes.wanted_events(filters, 40, seed=3)
    assert all(any(filter.matches(event) for filter in filters) for event in events)
    for content, event in zip(quotes.contents(events, 220), events, strict=True):
        assert len(content) == 220
        type_, attributes, payload, *_ = decode_content(content)
        assert (type_, attributes) == (quotes.TYPE, event)
        assert len(payload) >= quotes.DUE_BYTES


def test_events_too_large_for_their_size_are_refused():
    with pytest.raises(ValueError, match="leaves no room"):
        quotes.contents(quotes.wanted_events([Filter()], 1, seed=1), 100)


def test_publishes_are_numbered_on_and_carry_their_time(contents):
    frames = Frames.of(*publish_frames(contents))
    read = Framing().feed(frames.run(5, 10, DUE))
    assert [kind for kind, _ in read] == [Kind.PUBLISH] * 10
    asked = [read_publish("c", body, 0) for _, body in read]
    assert [one.request for one in asked] == list(range(5, 15))
    assert all(one.payload.endswith(DUE.to_bytes(8, "big")) for one in asked)
    assert [one.attributes for one in asked] == [decode_content(contents[n % 7])[1] for n in range(5, 15)]


def test_frames_can_be_kept_in_a_file(contents, tmp_path):
    for frames in (Frames.of(*publish_frames(contents)), Frames.of([Nats.frame(one) for one in contents], None, 2)):
        frames.save(tmp_path / "frames.npz")
        assert Frames.load(tmp_path / "frames.npz").run(0, 20, DUE) == frames.run(0, 20, DUE)


def _counted(dialect, connection, data, step):
    """As a sink reads: in pieces, what is not whole waits."""
    events, times, rest = 0, [], b""
    for at in range(0, len(data), step):
        piece = rest + data[at : at + step]
        found, done = dialect.count(connection, piece, times.append)
        events, rest = events + found, piece[done:]
    assert rest == b""
    return events, times


@pytest.mark.parametrize("step", [1, 7, 300, 10_000])
def test_a_sink_counts_events_of_brokers(pair, step):
    payload = b"some" + DUE.to_bytes(8, "big")
    event = Event(EventId(1, 2, 3), "t", {"a": 1}, 0, "p", payload=payload)
    said = replies.event(event, [1, 2]) + replies.settled(1, ()) + frame(Kind.PING, b"x") + replies.event(event, [])
    assert _counted(Mercast(), pair[0], 3 * said, step) == (6, [DUE.to_bytes(8, "big")] * 6)
    assert pair[1].recv(1000) == 3 * frame(Kind.PONG, b"x")


def test_a_sink_does_not_take_an_error_for_an_event(pair):
    with pytest.raises(RuntimeError, match="slow"):
        Mercast().count(pair[0], frame(Kind.ERROR, b'{"code": "slow"}'), None)


@pytest.mark.parametrize("step", [1, 7, 300, 10_000])
def test_a_sink_counts_messages_of_nats(pair, step):
    content = b"PING\r\nMSG " + DUE.to_bytes(8, "big")
    said = b"MSG t 1 %d\r\n%s\r\nPING\r\n" % (len(content), content)
    assert _counted(Nats(), pair[0], 3 * said, step) == (3, [DUE.to_bytes(8, "big")] * 3)
    assert pair[1].recv(1000) == b"PONG\r\n" * 3


def test_a_source_counts_receipts(pair):
    dialect = Mercast()
    said = replies.receipts(2, [1] * 5) + replies.receipts(9, [0])
    assert dialect.acknowledged(pair[0], said[:12]) + dialect.acknowledged(pair[0], said[12:]) == 6
    with pytest.raises(RuntimeError, match="no such"):
        dialect.acknowledged(pair[0], replies.answer(3, "no such"))


def test_bare_forwarders_carry_everything(contents):
    lists = [b"\x03\x00", b"\x03\x00\x04\x00"]
    with around_forwarders(contents, lists, length=2) as ends:
        flood = ends.flood(0.1, 64)
        assert flood.delivered == flood.expected == flood.published > 0
        assert set(flood.cpu_us) == {"source", "1", "2", "sink"}
        steady = ends.steady(0.1, 2_000)
        assert steady.delivered == steady.published == 200
        assert 0 < steady.p50_ms <= steady.p99_ms


def test_bare_frames_say_where_they_go(contents):
    length, _, hops, size = Bare.HEAD.unpack_from(Bare.frame(b"\x01\x00", contents[0]))
    assert (length, hops, size) == (len(Bare.frame(b"\x01\x00", contents[0])) - 4, 0, 2)
