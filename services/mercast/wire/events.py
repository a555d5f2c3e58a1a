"""Events as bytes: content (made by the publisher), and a stamp before it (made by the publisher's broker).

Brokers on the way pass both on as they are. A broker that matches an event reads the stamp and the content; one that
only passes it on reads the stamp at most, and only if it writes rows about it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct, error
from typing import Any, TypeAlias, overload

import orjson

from mercast.content.errors import ContentError
from mercast.content.event import Event, EventId
from mercast.content.values import INT_MAX, Attributes, check_attributes
from mercast.protocol.messages import Packet
from mercast.wire.frames import ProtocolError

PLAIN_BYTES = "application/octet-stream"

_CONTENT = Struct(">BHHHI")
"""Bytes of this header (a later version may have more fields), lengths of type, content type, trace, attributes."""

_STAMP = Struct(">BBHQQqHB")
"""Bytes of this header, flags, broker, incarnation, sequence, time, length of the publisher, clusters crossed."""

_new = tuple.__new__
"""Makes a named tuple in half of the time that its own constructor takes."""

_LENGTH = Struct(">I")
_TRACED = 1

_strings: dict[bytes, str] = {}
_STRINGS, _STRING_BYTES = 10_000, 256
"""Types, content types and publishers recur: no need to decode each anew. Nobody's long ones fill the memory."""

_KINDS = frozenset((str, float, bool, type(None)))
"""What attributes are once they have passed the door (content/values.py), or ints."""

_read_content, _read_stamp, _read_json = _CONTENT.unpack_from, _STAMP.unpack_from, orjson.loads


# -- content ---------------------------------------------------------------------------------------------------------


def encode_content(
    type: str,
    attributes: Attributes,
    payload: bytes = b"",
    content_type: str = PLAIN_BYTES,
    trace: str | None = None,
) -> bytes:
    """ContentError for what cannot be said in this form."""
    try:
        texts = [
            type.encode(),
            b"" if content_type == PLAIN_BYTES else content_type.encode(),
            (trace or "").encode(),
            _json(attributes),
        ]
        return b"".join((_CONTENT.pack(_CONTENT.size, *map(len, texts)), *texts, payload))
    except UnicodeEncodeError as error_:
        raise ContentError(f"a type, content type or trace context is no text: {error_}") from None
    except error:
        raise ContentError(f"a type, content type or trace context is longer than {_LONGEST} bytes") from None


_LONGEST = 0xFFFF


def _json(attributes: Attributes) -> bytes:
    try:
        said = orjson.dumps(attributes, option=_AS_THEY_ARE)
    except TypeError as error_:
        raise ContentError(f"attributes: {error_}") from None
    if b"null" in said:  # what NaN and infinities become
        check_attributes(attributes)
    return said


_AS_THEY_ARE = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
"""No string stands for what is none."""


Content: TypeAlias = tuple[str, dict[str, Any], bytes, str, str | None]
"""Type, attributes, payload, content type, trace."""


def decode_content(data: bytes, at: int = 0, as_written: bool = False) -> Content:
    """The content that starts there; with ints as they are written, though they need more than 64 bits."""
    try:
        header, type_, content_type, trace, attributes = _read_content(data, at)
    except error:
        raise ProtocolError("the content of an event ends in its header") from None
    begin = at + header
    a = begin + type_
    b = a + content_type
    c = b + trace
    d = c + attributes
    if header < _CONTENT.size or d > len(data):
        raise ProtocolError("the lengths in the header of an event's content are wrong")
    written = data[c:d]
    try:
        read = _read_json(written)
    except orjson.JSONDecodeError as error_:
        raise ProtocolError(f"an event's attributes are not JSON: {error_}") from None
    if type(read) is not dict:
        raise ProtocolError("an event's attributes are not a JSON object")
    if as_written and written.translate(_LENGTHS).find(_LONG) >= 0:
        read = _as_written(written, read)
    name = data[begin:a]
    return (
        _strings.get(name) or text(name),
        read,
        data[d:],
        text(data[a:b]) if content_type else PLAIN_BYTES,
        _utf8(data[b:c]) if trace else None,
    )


_LENGTHS = bytes(ord("0") if chr(byte) in "-0123456789" else ord(" ") for byte in range(256))
_LONG = b"0" * 20
"""What all ints have in common, so translated, that orjson would make floats of: below -2**63, and from 2**64 on."""


def _as_written(attributes: bytes, read: dict[str, Any]) -> dict[str, Any]:
    """So that who checks attributes sees what was meant, and refuses it."""
    try:
        exact: dict[str, Any] = json.loads(attributes.decode(), parse_int=lambda digits: int(digits[:_DIGITS]))
    except RecursionError:
        return read  # nested too deep, which is refused just so
    return exact


_DIGITS = 25
"""More than 64 bits have. Python is slow with thousands."""


def text(data: bytes) -> str:
    found = _strings.get(data)
    if found is None:
        found = _utf8(data)
        if len(_strings) >= _STRINGS:
            _strings.clear()
        if len(data) <= _STRING_BYTES:
            _strings[data] = found
    return found


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error_:
        raise ProtocolError(f"a name is not UTF-8: {error_}") from None


# -- stamped events ----------------------------------------------------------------------------------------------------


def encode_packet(packet: Packet) -> bytes:
    """Stamp and content."""
    event, traced, crossed = packet
    if event.stamped:
        return event.stamped
    (broker, incarnation, sequence), type_, attributes, time, publisher, content_type, trace, payload, content, _ = (
        event
    )
    if not content:
        content = encode_content(type_, attributes, payload, content_type, trace)
    name = publisher.encode()
    flags, clusters = _TRACED if traced else 0, len(crossed)
    stamp = _STAMP.pack(_STAMP.size, flags, broker, incarnation, sequence, time, len(name), clusters)
    if crossed:
        stamp += b"".join(cluster.to_bytes(2, "big") for cluster in crossed)
    return stamp + name + content


def decode_packet(data: bytes) -> Packet:
    try:
        header, flags, broker, incarnation, sequence, time, publisher, crossed = _read_stamp(data)
    except error:
        raise ProtocolError("an event ends in its stamp") from None
    a = header + 2 * crossed
    b = a + publisher
    if header < _STAMP.size or b > len(data):
        raise ProtocolError("the lengths in an event's stamp are wrong")
    clusters = tuple(int.from_bytes(data[k : k + 2], "big") for k in range(header, a, 2)) if crossed else ()
    type_, attributes, payload, content_type, trace = decode_content(data, b)
    name = data[a:b]
    client = _strings.get(name) or text(name)
    id_ = _new(EventId, (broker, incarnation, sequence))
    event = _new(Event, (id_, type_, attributes, time, client, content_type, trace, payload, b"", data))
    return _new(Packet, (event, flags & _TRACED != 0, clusters))


def encoded_together(packets: Iterable[bytes]) -> bytes:
    """Each after its length."""
    parts: list[bytes] = []
    for packet in packets:
        parts += (_LENGTH.pack(len(packet)), packet)
    return b"".join(parts)


def decode_packets(data: bytes, at: int, count: int) -> tuple[Packet, ...]:
    """For a broker that takes them in: decoded whole, with attributes that a matcher can look at.

    One that cannot be read is left out. Nobody looked at it on the way, so the neighbour that it came from is not to
    blame and is not cut off for it.
    """
    packets = []
    for begin, end in _places(data, at, count):
        try:
            packet = decode_packet(data[begin:end])
        except ProtocolError:
            continue
        for value in packet.event.attributes.values():
            kind = type(value)
            if value > INT_MAX if kind is int else kind not in _KINDS:
                break
        else:
            packets.append(packet)
    return tuple(packets)


def _places(data: bytes, at: int, count: int) -> list[tuple[int, int]]:
    places, all_ = [], len(data)
    for _ in range(count):
        if at + 4 > all_:
            raise ProtocolError("events end before their number is full")
        (length,) = _LENGTH.unpack_from(data, at)
        places.append((at + 4, at + 4 + length))
        at += 4 + length
    if at != all_:
        raise ProtocolError("the lengths of events do not add up to the frame")
    return places


class Passing(Sequence[Packet]):
    """Events that only pass by here: bytes, of which no more than the stamps are ever read."""

    __slots__ = ("_places", "encoded")

    def __init__(self, data: bytes, at: int, count: int) -> None:
        self._places = [(begin - at, end - at) for begin, end in _places(data, at, count)]
        self.encoded = data[at:]
        if any(end - begin < _STAMP.size for begin, end in self._places):
            raise ProtocolError("an event ends in its stamp")

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Packet: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Packet, ...]: ...
    def __getitem__(self, at: int | slice) -> Packet | tuple[Packet, ...]:
        if isinstance(at, slice):
            return tuple(self._packet(*place) for place in self._places[at])
        return self._packet(*self._places[at])

    def __iter__(self) -> Iterator[Packet]:
        return (self._packet(*place) for place in self._places)

    def _packet(self, begin: int, end: int) -> Packet:
        """Without its content."""
        header, flags, broker, incarnation, sequence, time, length, crossed = _STAMP.unpack_from(self.encoded, begin)
        a = begin + header + 2 * crossed
        # Not worth an error here: where the event is taken in, it is read with care.
        publisher = self.encoded[a : min(a + length, end)].decode(errors="replace") if flags & _TRACED else ""
        return Packet(Event(EventId(broker, incarnation, sequence), "", {}, time, publisher), flags & _TRACED != 0)
