"""Events as bytes: content (made by the publisher), and a stamp before it (made by the publisher's broker).

Brokers on the way pass both on as they are. A broker that matches an event reads the stamp and the content; one that
only passes it on reads the stamp at most, and only if it writes rows about it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct, error
from typing import Any, NamedTuple, TypeAlias, overload

import orjson

from mercast.content.errors import ContentError
from mercast.content.event import Event, EventId
from mercast.content.values import INT_MAX, Attributes, check_attributes
from mercast.limits import DEFAULTS
from mercast.protocol.messages import Packet
from mercast.wire.frames import ProtocolError

PLAIN_BYTES = "application/octet-stream"

_CONTENT = Struct(">BHHHI")
"""Bytes of this header (a later version may have more fields), lengths of type, content type, trace, attributes."""

_STAMP = Struct(">BBHQQqHB")
"""Bytes of this header, flags, broker, incarnation, sequence, time, length of the publisher, clusters crossed."""

_new = tuple.__new__
"""Makes a named tuple in half of the time that its own constructor takes."""

_STAMP_BYTES, _CROSSED = _STAMP.size, _STAMP.size - 1
_read_id, _read_time = Struct(">xxHQQ").unpack_from, Struct(">20xq").unpack_from
_read_id_and_time = Struct(">xxHQQq").unpack_from
"""Parts of a stamp."""
_LENGTH = Struct(">I")
_TRACED = 1

_strings: dict[bytes, str] = {}
_STRINGS, _STRING_BYTES = 10_000, 256
"""Types, content types and publishers recur: no need to decode each anew. Nobody's long ones fill the memory."""

_PLAIN_KINDS = frozenset((str, int, float, bool))
_KINDS = _PLAIN_KINDS | {type(None)}
"""What attributes are once they have passed the door (content/values.py)."""

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


class Contents(NamedTuple):
    """Of many events, none of which says more than this."""

    types: list[str]
    attributes: list[dict[str, Any]]
    payloads: list[bytes]
    written: bytes
    """The attributes as they came, one after the other."""
    longest: int
    """Bytes of the longest of them."""


def read_contents(data: Sequence[bytes], at: Sequence[int]) -> Contents | None:
    """The same of many events, each with the place where its content starts, in fewer steps, if they are as nearly all
    are: none says more than that, no int is too long.

    None if one of them does, or cannot be read: then each has to be looked at with care.
    """
    types, written, payloads = list[str](), list[bytes](), list[bytes]()
    try:
        for one, here in zip(data, at, strict=True):
            header, type_, content_type, trace, attributes = _read_content(one, here)
            begin = here + header
            a = begin + type_
            b = a + attributes
            if content_type or trace or header < _HEADER or b > len(one):
                return None
            name = one[begin:a]
            types.append(_strings.get(name) or text(name))
            written.append(one[a:b])
            payloads.append(one[b:])
        together = b" ".join(written)
        if together.translate(_LENGTHS).find(_LONGISH) >= 0:
            return None
        read = list(map(_read_json, written))
    except (error, orjson.JSONDecodeError, ProtocolError):
        return None
    return Contents(types, read, payloads, together, max(map(len, written))) if set(map(type, read)) == {dict} else None


def have_values(contents: Contents) -> bool:
    """Whether a matcher can look at all of their attributes."""
    return _are_flat(contents) or _KINDS.issuperset(_kinds(contents))


def _are_flat(contents: Contents) -> bool:
    """No attribute is an object or a list, as can be told from the brackets; or it cannot be told."""
    return b"[" not in contents.written and contents.written.count(b"{") == len(contents.types)


def _kinds(contents: Contents) -> set[type]:
    return set(map(type, chain.from_iterable(map(dict.values, contents.attributes))))


def are_plain(contents: Contents) -> bool:
    """Whether the door for events (content/event.py) would let all of them pass as they are."""
    written = contents.written
    return (
        written.isascii()
        and _ESCAPE not in written
        and ((_are_flat(contents) and b"null" not in written) or _PLAIN_KINDS.issuperset(_kinds(contents)))
        and (b'""' not in written or "" not in set(chain.from_iterable(contents.attributes)))
        and contents.longest <= DEFAULTS.name_length  # so no string is longer, nor are they many
        and max(map(len, contents.payloads)) <= DEFAULTS.payload_bytes
    )


_HEADER, _ESCAPE = _CONTENT.size, ord("\\")
_LENGTHS = bytes(ord("0") if chr(byte) in "-0123456789" else ord(" ") for byte in range(256))
_LONG, _LONGISH = b"0" * 20, b"0" * 19
"""What all ints have in common, so translated, that orjson would make floats of: below -2**63, and from 2**64 on; and
what those have that need more than 64 bits with their sign."""


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
        return event.stamped if event.stamped[_CROSSED] == len(crossed) else _crossed_further(event.stamped, crossed)
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


def _crossed_further(stamped: bytes, crossed: tuple[int, ...]) -> bytes:
    """The same event, carried into another cluster: that is in its stamp, and nothing else is looked at."""
    header, before = stamped[0], stamped[_CROSSED]
    clusters = b"".join(cluster.to_bytes(2, "big") for cluster in crossed)
    stamp = stamped[:_CROSSED] + bytes((len(crossed),)) + stamped[_CROSSED + 1 : header]
    return stamp + clusters + stamped[header + 2 * before :]


def decode_packet(data: bytes) -> Packet:
    try:
        header, flags, broker, incarnation, sequence, time, publisher, crossed = _read_stamp(data)
    except error:
        raise ProtocolError("an event ends in its stamp") from None
    a = header + 2 * crossed
    b = a + publisher
    if header < _STAMP.size or b > len(data):
        raise ProtocolError("the lengths in an event's stamp are wrong")
    type_, attributes, payload, content_type, trace = decode_content(data, b)
    client, id_ = text(data[a:b]), EventId(broker, incarnation, sequence)
    event = Event(id_, type_, attributes, time, client, content_type, trace, payload, b"", data)
    return Packet(event, flags & _TRACED != 0, _clusters(data[header:a]))


def _clusters(crossed: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(crossed[at : at + 2], "big") for at in range(0, len(crossed), 2))


def encoded_together(packets: Sequence[bytes]) -> bytes:
    """Each after its length."""
    return b"".join(chain.from_iterable(zip(map(_LENGTH.pack, map(len, packets)), packets, strict=True)))


def decode_packets(data: bytes, at: int, count: int) -> tuple[Packet, ...]:
    """For a broker that takes them in: decoded whole, with attributes that a matcher can look at.

    One that cannot be read is left out. Nobody looked at it on the way, so the neighbour that it came from is not to
    blame and is not cut off for it.
    """
    parts = [data[begin:end] for begin, end in _places(data, at, count)]
    return _read_packets(parts) or tuple(_packets_one_by_one(parts))


def _read_packets(parts: list[bytes]) -> tuple[Packet, ...] | None:
    """All at once; None if one is not as nearly all are."""
    stamps, begins = [], []
    try:
        for data in parts:
            header, flags, broker, incarnation, sequence, time, publisher, crossed = _read_stamp(data)
            a = header + 2 * crossed
            b = a + publisher
            if header < _STAMP_BYTES or b > len(data):
                return None
            name = data[a:b]
            id_ = _new(EventId, (broker, incarnation, sequence))
            clusters = _clusters(data[header:a]) if crossed else ()
            stamps.append((id_, time, _strings.get(name) or text(name), flags & _TRACED != 0, clusters))
            begins.append(b)
    except (error, ProtocolError):
        return None
    contents = read_contents(parts, begins)
    if contents is None or not have_values(contents):
        return None
    return tuple(
        _new(
            Packet,
            (_new(Event, (id_, type_, read, time, client, PLAIN_BYTES, None, payload, b"", data)), traced, crossed),
        )
        for data, (id_, time, client, traced, crossed), type_, read, payload in zip(
            parts, stamps, contents.types, contents.attributes, contents.payloads, strict=True
        )
    )


def _packets_one_by_one(parts: list[bytes]) -> Iterator[Packet]:
    for data in parts:
        try:
            packet = decode_packet(data)
        except ProtocolError:
            continue
        if _are_values(packet.event.attributes):
            yield packet


def _are_values(attributes: Attributes) -> bool:
    return all(value <= INT_MAX if type(value) is int else type(value) in _KINDS for value in attributes.values())


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

    def ids(self, which: Iterable[int]) -> list[EventId]:
        """Plain tuples of the same, of those at these places, in as few steps as there are."""
        encoded, places = self.encoded, self._places
        return [_read_id(encoded, places[at][0]) for at in which]  # type: ignore[misc]

    def ends(self) -> Any:
        """Of the first and the last: broker, incarnation, sequence, time. Rows say no more of these events."""
        encoded, places = self.encoded, self._places
        return _read_id_and_time(encoded, places[0][0]), _read_id_and_time(encoded, places[-1][0])

    def time(self, at: int) -> int:
        """When the event at this place was published."""
        begin, _ = self._places[at]
        (time,) = _read_time(self.encoded, begin)
        return time  # type: ignore[no-any-return]

    def _packet(self, begin: int, end: int) -> Packet:
        """Without its content."""
        header, flags, broker, incarnation, sequence, time, length, crossed = _STAMP.unpack_from(self.encoded, begin)
        a = begin + header + 2 * crossed
        # Not worth an error here: where the event is taken in, it is read with care.
        publisher = self.encoded[a : min(a + length, end)].decode(errors="replace") if flags & _TRACED else ""
        return Packet(Event(EventId(broker, incarnation, sequence), "", {}, time, publisher), flags & _TRACED != 0)
