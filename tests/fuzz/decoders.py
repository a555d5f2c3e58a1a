"""The decoders in this process, at speed: whatever they are given, only the protocol's own errors escape."""

from fuzz.conversations import Conversation

from mercast.broker.links import _members
from mercast.wire import replies
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, ProtocolError
from mercast.wire.hello import common_version, read_json
from mercast.wire.peers import decode_message
from mercast.wire.requests import Refused, read_publish, read_request

ME = 2

_READERS = {
    Kind.HELLO: lambda body: common_version(read_json(body).get("mercast")),
    Kind.PUBLISH: lambda body: read_publish("c.1", body, 1),
    Kind.EVENT: replies.read_event,
    Kind.RECEIPTS: replies.read_receipts,
    Kind.ANSWER: replies.read_answer,
    Kind.SETTLED: replies.read_settled,
    Kind.REPORTED: replies.read_reported,
    Kind.DRAIN: replies.read_drain,
    Kind.MEMBERS: lambda body: _members(read_json(body).get("members")),
}


def decode(one: Conversation) -> str:
    """What escaped that must not; empty if nothing did."""
    data = b"".join(piece * times for piece, times in one.pieces)
    try:
        kind, body = next(iter(Framing(FRAME_BYTES).feed(data)), (data[4] if len(data) > 4 else 0, data[5:]))
    except ProtocolError:
        kind, body = data[4], data[5:]
    try:
        if kind in _READERS:
            _READERS[kind](body)
        else:
            read_request(kind, "c.1", body)
            decode_message(kind, body, ME)
    except (ProtocolError, Refused):
        pass
    except Exception as error:
        return f"a decoder of kind {kind} raises {type(error).__name__}: {error}"
    return ""
