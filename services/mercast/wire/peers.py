"""What brokers say to each other."""

from functools import lru_cache
from itertools import pairwise
from struct import Struct, error
from typing import Any

import orjson

from mercast.content.errors import ContentError
from mercast.overlay.split import BROKER, ENTRY, unpack
from mercast.protocol.messages import Ask, Control, Forward, Look, Message, Note, Reply, Same, Update
from mercast.protocol.plain import from_plain, to_plain
from mercast.wire.door import RECORDS, check_message, check_note
from mercast.wire.events import Passing, decode_packets, encode_packet, encoded_together
from mercast.wire.frames import FRAME_BYTES, HEADER, Kind, ProtocolError, frame

_FORWARD = Struct(">BBHHHH")
"""Bytes of this header, flags, hops, bytes of the list, bytes of the note, how many events."""

_TRACED = 1

TOGETHER_BYTES = 256 * 1024
"""Events that travel together are sent in frames of about this size."""

_TOGETHER = 0xFFFF

MOST_HOPS = 0xFFFF
"""Stands for itself and for more."""

MESSAGE_BYTES = FRAME_BYTES // 4
"""Control state and records that are longer are sent in several frames."""

_REMEMBERED_BYTES = 1024
"""Lists and notes recur; long ones are not remembered, for many of them would fill the memory."""

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, ContentError)
"""What reading damaged plain data may raise."""


def encode_message(message: Message) -> bytes:
    """As one frame, or as several where one would be too large."""
    if isinstance(message, Forward):
        return b"".join(encoded for _, encoded in forward_frames(message))
    said = orjson.dumps(to_plain(message))
    if isinstance(message, Ask | Reply | Look | Same):
        return frame(Kind.ORGANISE, said)
    if len(said) > MESSAGE_BYTES or (isinstance(message, Update) and len(message.records) > RECORDS):
        parts = _halves(message)
        if parts:
            return b"".join(map(encode_message, parts))
    return frame(Kind.MESSAGE, said)


def _halves(message: Message) -> tuple[Message, ...]:
    """Two that say the same, if it can be said so."""
    if isinstance(message, Control) and len(message.items) > 1:
        half = len(message.items) // 2
        after = message._replace(first=message.first + half, items=message.items[half:])
        return message._replace(items=message.items[:half]), after
    if isinstance(message, Update) and len(message.records) > 1:
        half = len(message.records) // 2
        return message._replace(records=message.records[:half]), message._replace(records=message.records[half:])
    return ()


def forward_frames(forward: Forward) -> list[tuple[Forward, bytes]]:
    """The frames that it takes, each with what it says."""
    packets = forward.packets
    if isinstance(packets, Passing):  # they came in one frame, so they fit in one
        return [(forward, _forward_frame(forward, len(packets), packets.encoded))]
    parts = list(map(encode_packet, packets))
    if len(parts) <= _TOGETHER and sum(map(len, parts)) <= TOGETHER_BYTES:
        return [(forward, _forward_frame(forward, len(parts), encoded_together(parts)))]
    ends, size = list[int](), 0
    for at, part in enumerate(parts):
        if at and (size + len(part) > TOGETHER_BYTES or at - (ends[-1] if ends else 0) == _TOGETHER):
            ends.append(at)
            size = 0
        size += len(part)
    return [
        (
            forward._replace(packets=packets[begin:end]),
            _forward_frame(forward, end - begin, encoded_together(parts[begin:end])),
        )
        for begin, end in pairwise((0, *ends, len(parts)))
    ]


def _forward_frame(forward: Forward, count: int, events: bytes) -> bytes:
    destinations, hops = forward.destinations, min(forward.hops, MOST_HOPS)
    note = b"" if forward.note is None else orjson.dumps(to_plain(forward.note))
    length = 1 + _FORWARD.size + len(destinations) + len(note) + len(events)
    header = _FORWARD.pack(_FORWARD.size, _TRACED * forward.traced, hops, len(destinations), len(note), count)
    return b"".join((HEADER.pack(length, Kind.FORWARD), header, destinations, note, events))


def decode_message(kind: int, body: bytes, me: int) -> Message | None:
    """What a peer said to this broker; None for a kind that is not known."""
    if kind == Kind.FORWARD:
        return _decode_forward(body, me)
    if kind in (Kind.MESSAGE, Kind.ORGANISE):
        return _decode_plain(body, kind)
    return None


def events_in(body: bytes) -> int:
    """How many events a FORWARD frame that was decoded had, with those that could not be read."""
    return int(_FORWARD.unpack_from(body)[-1])


def _decode_forward(body: bytes, me: int) -> Forward:
    try:
        header, flags, hops, destinations, note, count = _FORWARD.unpack_from(body)
    except error:
        raise ProtocolError("a FORWARD frame ends in its header") from None
    a = header + destinations
    b = a + note
    if header < _FORWARD.size or b > len(body) or destinations % ENTRY:
        raise ProtocolError("the lengths in the header of a FORWARD frame are wrong")
    entries = body[header:a]
    among = _among if destinations <= _REMEMBERED_BYTES else _among.__wrapped__
    read_note = _note if note <= _REMEMBERED_BYTES else _note.__wrapped__
    packets = decode_packets(body, b, count) if not entries or among(entries, me) else Passing(body, b, count)
    return Forward(entries, hops, packets, read_note(body[a:b]) if note else None, flags & _TRACED != 0)


@lru_cache(maxsize=65_536)
def _among(destinations: bytes, me: int) -> bool:
    return any(entry & BROKER == me for entry in unpack(destinations))


@lru_cache(maxsize=4096)
def _note(said: bytes) -> Note:
    note = _plain(said)
    check_note(note)
    return note  # type: ignore[no-any-return]


def _decode_plain(body: bytes, kind: int) -> Message:
    message = _plain(body)
    check_message(message, kind)
    return message  # type: ignore[no-any-return]


def _plain(body: bytes) -> Any:
    try:
        return from_plain(orjson.loads(body))
    except _DAMAGE as error_:
        raise ProtocolError(f"a message cannot be read: {error_!s:.200}") from None
