"""What brokers say to their clients."""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct, error, pack, unpack, unpack_from
from typing import NamedTuple

import orjson

from mercast.content.event import Event
from mercast.protocol.messages import Packet
from mercast.protocol.plain import from_plain, to_plain
from mercast.protocol.rows import Row
from mercast.wire.conforms import checker
from mercast.wire.events import decode_packet, encode_packet
from mercast.wire.frames import Kind, ProtocolError, frame
from mercast.wire.hello import field, read_json

_NUMBER = 4
"""Bytes of a request's number, and of a count."""

_EVENT = Struct(">H")
"""How many subscriptions matched; their numbers follow."""

_AN_EVENT = int(Kind.EVENT)

_MOST = 0xFFFF
"""Subscriptions that are named with one event; a client with more that match is told of these."""


class Arrived(NamedTuple):
    """An event for this client."""

    event: Event
    subscriptions: tuple[int, ...]
    """The requests that made them."""


# -- by brokers --------------------------------------------------------------------------------------------------------


def event(event_: Event, subscriptions: Sequence[int]) -> bytes:
    if len(subscriptions) > _MOST:
        subscriptions = subscriptions[:_MOST]
    packet, count = event_.stamped or encode_packet(Packet(event_)), len(subscriptions)
    head = _event_head(count)
    return head.pack(head.size - _NUMBER + len(packet), _AN_EVENT, count, *subscriptions) + packet


@lru_cache(maxsize=1024)
def _event_head(count: int) -> Struct:
    """Length, kind, how many subscriptions matched, their numbers."""
    return Struct(f">IBH{count}I")


def receipts(first: int, counts: Sequence[int]) -> bytes:
    """Publishes from this request on were accepted; for each, the destinations that were found."""
    return frame(Kind.RECEIPTS, pack(f">I{len(counts)}I", first, *counts))


def answer(request: int, refused: str = "") -> bytes:
    said = {"request": request, "refused": refused} if refused else {"request": request}
    return frame(Kind.ANSWER, orjson.dumps(said))


def settled(request: int, missing: Sequence[int]) -> bytes:
    return frame(Kind.SETTLED, orjson.dumps({"request": request, "missing": list(missing)}))


def reported(broker: int, row: Row) -> bytes:
    return frame(Kind.REPORTED, orjson.dumps({"broker": broker, "row": to_plain(row)}))


def drain(brokers: Sequence[str]) -> bytes:
    """This broker is about to stop: go to one of these."""
    return frame(Kind.DRAIN, orjson.dumps({"brokers": list(brokers)}))


# -- at clients --------------------------------------------------------------------------------------------------------


def read_event(body: bytes) -> Arrived:
    try:
        (count,) = _EVENT.unpack_from(body)
        subscriptions = unpack_from(f">{count}I", body, _EVENT.size)
    except error:
        raise ProtocolError("an EVENT frame ends in its header") from None
    return Arrived(decode_packet(body[_EVENT.size + _NUMBER * count :]).event, subscriptions)


def read_receipts(body: bytes) -> tuple[int, list[int]]:
    """The first request, and the counts from it on."""
    if not body or len(body) % _NUMBER:
        raise ProtocolError("a RECEIPTS frame ends in the midst of a number")
    first, *counts = unpack(f">{len(body) // _NUMBER}I", body)
    return first, counts


def read_answer(body: bytes) -> tuple[int, str]:
    """The request, and why it is refused; empty if it is not."""
    said = read_json(body)
    return field(said, "request", int), field(said, "refused", str, "")


def read_settled(body: bytes) -> tuple[int, tuple[int, ...]]:
    """The request, and the brokers that did not acknowledge it in time."""
    said = read_json(body)
    missing = field(said, "missing", list, [])
    if not all(type(broker) is int for broker in missing):
        raise ProtocolError("the brokers that are missing are named by their numbers")
    return field(said, "request", int), tuple(missing)


def read_reported(body: bytes) -> tuple[int, Row]:
    """A broker, and what it did with a traced event of this client."""
    said = read_json(body)
    try:
        row = from_plain(said.get("row"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as damage:
        raise ProtocolError(f"a row cannot be read: {damage}") from None
    if not checker(Row)(row):
        raise ProtocolError("a broker reports a row of the taps")
    return field(said, "broker", int), row


def read_drain(body: bytes) -> tuple[str, ...]:
    """Where to go."""
    brokers = field(read_json(body), "brokers", list, [])
    if not all(type(broker) is str for broker in brokers):
        raise ProtocolError("brokers are told by their addresses")
    return tuple(brokers)
