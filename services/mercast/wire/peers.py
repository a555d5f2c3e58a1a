"""What brokers say to each other."""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct, error
from typing import Any

import orjson

from mercast.content.errors import ContentError
from mercast.overlay.split import BROKER, ENTRY, unpack
from mercast.protocol.messages import Control, Forward, HeartBeat, Message, Note, Report, Update
from mercast.protocol.plain import from_plain, to_plain
from mercast.wire.conforms import Check, checker
from mercast.wire.events import Passing, decode_packets, encode_packets
from mercast.wire.frames import HEADER, Kind, ProtocolError, frame

_FORWARD = Struct(">BBHHHH")
"""Bytes of this header, flags, hops, bytes of the list, bytes of the note, how many events."""

_TRACED = 1

TOGETHER_BYTES = 256 * 1024
"""Events that travel together are sent in frames of about this size."""

_TOGETHER = 0xFFFF

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, ContentError)
"""What reading damaged plain data may raise."""


def encode_message(message: Message) -> bytes:
    if isinstance(message, Forward):
        return _encode_forward(message)
    return frame(Kind.MESSAGE, orjson.dumps(to_plain(message)))


def _encode_forward(forward: Forward) -> bytes:
    events = encode_packets(forward.packets)
    if (len(events) > TOGETHER_BYTES or len(forward.packets) > _TOGETHER) and len(forward.packets) > 1:
        half = len(forward.packets) // 2
        parts = forward.packets[:half], forward.packets[half:]
        if not isinstance(forward.packets, Passing):  # which came in one frame, so they fit in one
            return b"".join(_encode_forward(forward._replace(packets=part)) for part in parts)
    note = b"" if forward.note is None else orjson.dumps(to_plain(forward.note))
    length = _FORWARD.size + len(forward.destinations) + len(note) + len(events)
    header = _FORWARD.pack(
        *(_FORWARD.size, _TRACED * forward.traced, forward.hops),
        *(len(forward.destinations), len(note), len(forward.packets)),
    )
    return b"".join((HEADER.pack(length + 1, Kind.FORWARD), header, forward.destinations, note, events))


def decode_message(kind: int, body: bytes, me: int) -> Message | None:
    """What a peer said to this broker; None for a kind that is not known."""
    if kind == Kind.FORWARD:
        return _decode_forward(body, me)
    if kind == Kind.MESSAGE:
        return _decode_plain(body)
    return None


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
    packets = decode_packets(body, b, count) if not entries or _among(entries, me) else Passing(body, b, count)
    return Forward(entries, hops, packets, _note(body[a:b]) if note else None, flags & _TRACED != 0)


@lru_cache(maxsize=65_536)
def _among(destinations: bytes, me: int) -> bool:
    return any(entry & BROKER == me for entry in unpack(destinations))


@lru_cache(maxsize=4096)
def _note(said: bytes) -> Note:
    note = _plain(said)
    if not checker(Note)(note):
        raise ProtocolError("the note of a FORWARD frame is not what strategies write")
    return note  # type: ignore[no-any-return]


def _decode_plain(body: bytes) -> Message:
    message = _plain(body)
    if type(message) not in _CHECKS:
        raise ProtocolError(f"{type(message).__name__} is not a message")
    if not _CHECKS[type(message)](message):
        raise ProtocolError(f"a {type(message).__name__} has a field that it cannot have")
    _check_numbers(message)
    return message  # type: ignore[no-any-return]


def _plain(body: bytes) -> Any:
    try:
        return from_plain(orjson.loads(body))
    except _DAMAGE as error_:
        raise ProtocolError(f"a message cannot be read: {error_}") from None


_CHECKS: dict[type, Check] = {cls: checker(cls) for cls in (Control, Update, HeartBeat, Report)}

_COSTS = range(1, 256)


def _check_numbers(message: Message) -> None:
    """Numbers that have a meaning lie where they have one."""
    match message:
        case Control():
            _check_brokers((message.source, message.target), message.hops)
        case Update():
            _check_brokers((), message.hops)
            if len(message.destinations) % ENTRY:
                raise ProtocolError("a destination list ends in the midst of an entry")
            for record in message.records:
                _check_brokers((record.broker, *(neighbour for neighbour, _ in record.links)), 0)
                if any(cost not in _COSTS for _, cost in record.links):
                    raise ProtocolError("a link costs 1 to 255")
        case Report():
            _check_brokers((message.target, message.broker), message.hops)


def _check_brokers(brokers: Iterable[int], hops: int) -> None:
    if hops < 0 or any(not 0 <= broker <= BROKER for broker in brokers):
        raise ProtocolError(f"brokers have numbers up to {BROKER}, and hops are counted upwards")
