"""Protocol values as plain data and back."""

import json
import typing

import pytest

from mercast.content import Advertisement, AttributeType, Declaration, Event, EventId, Filter, Subscription
from mercast.protocol import effects, messages, rows, stimuli
from mercast.protocol.plain import from_plain, to_plain

EVENT = Event(EventId(1, 2, 3), "quote", {"price": 1.5, "up": True, "n": 3, "s": "x"}, 7, "p", payload=b"\0\xff")
PACKET = messages.Packet(EVENT, True, (1, 2))
FILTER = Filter.parse("price > 1 AND s LIKE 'a%'")
RECORD = messages.Record(1, 2, 3, (0,), ((2, 1), (3, 5)))
CONTROL = messages.Control(
    1, 2, 0, (1, 1), 1, (messages.Put(("a", ("c", 1)), Advertisement("q", FILTER)),), (-1, -1), 0, (4,)
)

VALUES = [
    messages.Forward(b"\1\0", 2, (PACKET, PACKET), (1, ("c", 2))),
    messages.Update(b"", 0, (RECORD,)),
    messages.HeartBeat(b"abc", 1.5, 0.0),
    CONTROL,
    messages.Ask(1, 2, 0, 3, b"abc", 20.0, 8.0, 4, ((1, 2, 10), (2, 1, 5))),
    messages.Reply(2, 1, 1, 3, b"abc", True, 5),
    messages.Look(1, 2, 0, b"abc"),
    messages.Same(2, 1, 0, b"abc"),
    messages.Drop(("a", messages.Local("c", 1))),
    messages.Complete(),
    messages.Put(("s",), Subscription(None, FILTER)),
    stimuli.Declare("c", 1, Declaration("quote", None, {"price": AttributeType.FLOAT})),
    stimuli.Advertise("c", 1, "quote", FILTER),
    stimuli.Unadvertise("c", 2, 1),
    stimuli.Subscribe("c", 1, None, FILTER, False),
    stimuli.Unsubscribe("c", 2, 1),
    stimuli.Publish("c", 1, "quote", {"price": 2**60}, 5, b"x"),
    stimuli.Refuse("c", 1, "too fast"),
    stimuli.Leave("c"),
    stimuli.Received(3, (CONTROL, messages.HeartBeat(b"", 0.0, 0.0))),
    stimuli.LinkUp(1, 2, 3),
    stimuli.LinkDown(1),
    stimuli.Unsent(2, (messages.Forward(b"\x01\x00", 2, (messages.Packet(EVENT),)),)),
    stimuli.Retire(),
    stimuli.Tick(),
    stimuli.Batch((stimuli.Tick(), stimuli.Leave("c"))),
    effects.Send(1, (CONTROL,)),
    effects.Multicast((1, 2), CONTROL),
    effects.Deliver("c", EVENT, (1, 2)),
    effects.Answer("c", 1, "no such type"),
    effects.Receipts("c", 1, (5, 0)),
    effects.Settled("c", 1, (3,)),
    effects.Reported("p", 3, rows.Dropped(EVENT.id, 7, "repeat")),
    messages.Report(1, 2, "p", 3, rows.Dropped(EVENT.id, 7, "repeat")),
    effects.OpenLink(1),
    effects.CloseLink(1, "silent"),
    effects.Tap((rows.Published(EVENT.id, 7, "quote", {"a": 1}, 1, 2, 3), rows.Copied(EVENT.id, 7, 1, 2, 3, 1, True))),
    effects.Tap((rows.Delivered(EVENT.id, 7, "c", (1,), 2), rows.Dropped(EVENT.id, 7, "repeat"))),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_round_trip_through_json(value):
    assert from_plain(json.loads(json.dumps(to_plain(value)))) == value


def test_every_word_of_the_protocol_is_tried():
    words = {cls for union in (messages.Message, stimuli.Stimulus, effects.Effect) for cls in typing.get_args(union)}
    assert words <= {type(value) for value in VALUES}
