"""What a broker keeps of its last stimuli, and what can be done with it."""

import asyncio
import json
import typing

import commands
import pytest

from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.last_stimuli import _SIZES, LastStimuli
from mercast.broker.packing import Publishes, packed, unpacked
from mercast.content import Filter
from mercast.content.event import Event, EventId
from mercast.content.types import AttributeType, Declaration
from mercast.overlay.split import pack
from mercast.protocol.messages import (
    Complete,
    Control,
    Forward,
    HeartBeat,
    Message,
    Packet,
    Put,
    Record,
    Statement,
    Update,
)
from mercast.protocol.plain import to_plain
from mercast.protocol.stimuli import (
    Advertise,
    Batch,
    Declare,
    LinkUp,
    Publish,
    Received,
    Refuse,
    Stimulus,
    Subscribe,
    Tick,
    Unsent,
)
from mercast.routing.recording import RecordingError, Replayed, Tail, replay, stimuli_in
from mercast.routing.strategies import STRATEGIES
from mercast.wire.events import Passing, decode_packets, encode_content, encode_packet, encoded_together
from mercast.wire.requests import publish_again

CONTENT = encode_content("quote", {"price": 1}, b"secret payload")


def publish(number, payload=b"secret payload"):
    content = encode_content("quote", {"price": number}, payload)
    return Publish("c.1", number, "quote", {"price": number}, 0, payload, encoded=content)


def run(*some, **config):
    """A broker that has handled these."""

    async def turns():
        broker = Broker(BrokerConfig(id=1, matcher="scan", **config))
        broker.record(None)
        broker.begin(lambda _address: None, lambda _address, _reason: None)
        for stimulus in some:
            broker.take(stimulus)
            await asyncio.sleep(0)
        return broker

    return asyncio.run(turns())


SOME = [
    Advertise("c.1", 1000, "quote", Filter()),
    Subscribe("c.2", 1, "quote", Filter.parse("price < 3")),
    Batch(tuple(map(publish, range(1, 5)))),
    LinkUp(2, 1),
    publish(5),
    Tick(),
]


def test_all_since_the_start_replays_to_as_many_effects():
    lines = list(run(*SOME).last_stimuli.lines())
    assert replay(lines) == Replayed(len(SOME), counted=len(SOME))
    assert [to_plain(one) for _, one in stimuli_in(lines)][3:] == [
        to_plain(LinkUp(2, 1)),
        to_plain(publish(5, bytes(len(b"secret payload")))),
        to_plain(Tick()),
    ]
    other = json.loads(lines[3])
    other["count"] += 1
    difference = replay([*lines[:3], json.dumps(other), *lines[4:]]).difference
    assert (difference.line, difference.recorded) == (4, (f"{other['count']} effects",))
    assert len(difference.found) == other["count"] - 1


def test_payloads_are_not_handed_out():
    event = Event(EventId(2, 1, 1), "quote", {"price": 1}, 0, "c", payload=b"secret payload")
    received = Received(2, (Forward(b"", 1, (Packet(event),)),))
    text = "\n".join(run(publish(1), received, Unsent(2, received.messages)).last_stimuli.lines())
    assert b"secret".hex() not in text
    assert text.count("00" * len(b"secret payload")) == 3


def test_only_the_last_are_kept_and_the_rest_is_told():
    lines = list(run(*SOME, keep_stimuli=2).last_stimuli.lines())
    assert len(lines) == 3
    assert json.loads(lines[0])["gone"] == 4
    with pytest.raises(Tail, match="the tail of a run: 4 stimuli before it were not kept"):
        replay(lines)
    assert [type(one) for _, one in stimuli_in(lines)] == [Publish, Tick]
    with pytest.raises(RecordingError, match="line 2: not the line of a stimulus"):
        list(stimuli_in([lines[0], '{"now": 1}']))


def test_none_are_kept_if_so_wanted():
    assert run(*SOME, keep_stimuli=0).last_stimuli is None


def test_a_broker_that_begins_anew_has_no_past():
    async def story():
        broker = Broker(BrokerConfig(id=1, matcher="scan", keep_stimuli=1))
        broker.record(None)
        broker.begin(lambda _address: None, lambda _address, _reason: None)
        for _ in range(3):
            broker.take(Tick())
            await asyncio.sleep(0)
        broker.begin_anew(77)
        return list(broker.last_stimuli.lines())

    (line,) = asyncio.run(story())
    assert (json.loads(line)["incarnation"], "gone" in json.loads(line)) == (77, False)


def passing(size):
    stamped = encode_packet(Packet(Event(EventId(2, 1, 1), "quote", {}, 0, "c", payload=bytes(size))))
    return Passing(encoded_together([stamped]), 0, 1)


def arrived(size):
    event = Event(EventId(2, 1, 1), "quote", {}, 0, "c", stamped=bytes(size))
    return (Packet(event),)


LONG = Filter.parse(" OR ".join(f"name = 'number {number}'" for number in range(700)))
OWN = Event(EventId(1, 1, 1), "quote", {}, 0, "c", encoded=bytes(9000))
WIDE = Put(Statement(1, 2, 1), Declaration("quote", None, dict.fromkeys(map(str, range(200)), AttributeType.INT)))
HOLDING = {
    "a publish": publish(1, bytes(9000)),
    "publishes": Batch(tuple(publish(number, bytes(900)) for number in range(10))),
    "events that pass": Received(2, (Forward(pack([3]), 1, passing(9000)),)),
    "events that arrive": Received(2, (Forward(b"", 1, arrived(9000)),)),
    "unsent": Unsent(2, (Forward(b"", 1, arrived(9000)),)),
    "own unsent": Unsent(2, (Forward(b"", 1, (Packet(OWN),)),)),
    "a subscription": Subscribe("c", 1, None, LONG),
    "an advertisement": Advertise("c", 1, "quote", LONG),
    "control": Received(2, (Control(2, 1, 0, (1, 1), 1, (WIDE, Complete()), (1, 1), 0, ()),)),
    "records": Received(2, (Update(b"", 0, tuple(Record(who, 1, 1, (0,), ((1, 1),)) for who in range(100))),)),
    "a declaration": Declare("c", 1, WIDE.value),
    "long names": Declare("c", 1, Declaration("n" * 9000, "p" * 4000)),
    "a refusal": Refuse("c", 1, "r" * 13_000),
    "heart-beats": Received(2, (HeartBeat(b"", 0.0),) * 200),
}


@pytest.mark.parametrize("stimulus", HOLDING.values(), ids=HOLDING)
def test_what_holds_much_counts_as_much(stimulus):
    """Ten at a time fit, and not more."""
    core, kept = STRATEGIES["ddbr"](1, 1), LastStimuli(1000, 10 * 20_000)
    kept.begin(core)
    for now in range(100):
        kept.add(float(now), stimulus, 0)
    assert 10 <= len(list(kept.lines())) - 1 <= 23
    assert json.loads(next(iter(kept.lines())))["gone"] >= 77


def read_anew(number, client="c.1", traced=False, **more):
    return publish_again(client, number, encode_content("quote", {"price": number, "s": "é"}, b"xy", **more), 9, traced)


def forwarded(kind):
    events = [
        Event(EventId(2, 1, number), "quote", {"price": number}, number // 7, "c", payload=b"z" * number)
        for number in range(40)
    ]
    encoded = encoded_together([encode_packet(Packet(event, event.time == 3)) for event in events])
    return Forward(pack([3]), 1, kind(encoded, 0, len(events)), None, True)


MANY = {
    "publishes": Batch(tuple(map(read_anew, range(5, 45)))),
    "publishes of many kinds": Batch(
        (
            LinkUp(2, 1),
            *(read_anew(number * number, f"c.{number % 3}", number % 5 == 0) for number in range(1, 40)),
            *(read_anew(number, content_type="text/plain", trace="t-1") for number in (9, 8, 7) * 9),
            Tick(),
        )
    ),
    "events that arrive": Received(2, (HeartBeat(b"", 0.0), forwarded(decode_packets))),
    "events that pass": Batch((Received(2, (forwarded(Passing),)), Tick(), Received(3, (forwarded(decode_packets),)))),
}


@pytest.mark.parametrize("stimulus", MANY.values(), ids=MANY)
def test_many_events_are_kept_as_bytes(stimulus):
    """And come out of them as they were."""
    kept = packed(stimulus)
    assert kept != stimulus
    assert to_plain(unpacked(kept)) == to_plain(stimulus)


def test_every_kind_is_measured():
    kinds = {*typing.get_args(Stimulus), *typing.get_args(Message)}
    assert kinds - _SIZES.keys() == {Batch}
    assert _SIZES.keys() - kinds == {Publishes}


def test_more_than_may_be_kept_is_not_kept():
    kept = LastStimuli(10, 1000)
    kept.begin(STRATEGIES["ddbr"](1, 1))
    kept.add(0.0, publish(1, bytes(2000)), 0)
    kept.add(1.0, Tick(), 0)
    lines = list(kept.lines())
    assert [json.loads(line).get("gone") for line in lines] == [1, None]


def test_lab_replay_says_what_it_is(tmp_path):
    def lab(lines):
        file = tmp_path / "stimuli.jsonl"
        file.write_text("".join(f"{line}\n" for line in lines))
        done = commands.run("lab", "replay", file)
        return done.returncode, done.stdout, done.stderr.replace(str(file), "FILE")

    whole = list(run(*SOME).last_stimuli.lines())
    assert lab(whole) == (0, "6 stimuli, as many effects after each; which they were was not kept\n", "")
    status, out, err = lab(run(*SOME, keep_stimuli=3).last_stimuli.lines())
    assert status == 3
    assert [line.split(" ", 1)[1].split("(")[0] for line in out.splitlines()] == ["LinkUp", "Publish", "Tick"]
    assert err == (
        "mercast lab: FILE: the tail of a run: 3 stimuli before it were not kept. It cannot be replayed, only read; "
        "for a replay, start the broker with --record FILE\n"
    )
    lines = list(run(*SOME, keep_stimuli=3).last_stimuli.lines())
    assert lab([*lines[:2], "[]"])[0] == 2
