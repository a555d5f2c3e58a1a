"""What brokers say to their clients."""

from array import array
from collections.abc import Sequence
from struct import Struct, error, pack
from typing import NamedTuple

import orjson

from mercast.content.event import Event
from mercast.protocol.messages import Packet
from mercast.protocol.plain import to_plain
from mercast.protocol.rows import Row
from mercast.wire.events import decode_packet, encode_packet
from mercast.wire.frames import Kind, ProtocolError, frame

_RECEIPTS = Struct(">I")
"""The first request; a count for it and for each that follows."""

_EVENT = Struct(">H")
"""How many subscriptions matched."""


class Arrived(NamedTuple):
    """An event for this client."""

    event: Event
    subscriptions: tuple[int, ...]
    """The requests that made them."""


# -- by brokers --------------------------------------------------------------------------------------------------------


def event(event_: Event, subscriptions: Sequence[int]) -> bytes:
    packet = event_.stamped or encode_packet(Packet(event_))
    count = len(subscriptions)
    length = 1 + _EVENT.size + 4 * count + len(packet)
    return pack(f">IBH{count}I", length, Kind.EVENT, count, *subscriptions) + packet


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
        subscriptions = Struct(f">{count}I").unpack_from(body, _EVENT.size)
    except error:
        raise ProtocolError("an EVENT frame ends in its header") from None
    return Arrived(decode_packet(body[_EVENT.size + 4 * count :]).event, subscriptions)


def read_receipts(body: bytes) -> tuple[int, list[int]]:
    """The first request, and the counts from it on."""
    if len(body) < _RECEIPTS.size or len(body) % 4:
        raise ProtocolError("a RECEIPTS frame ends in the midst of a number")
    numbers = array("I", body)
    numbers.byteswap()
    first, *counts = numbers.tolist()
    return first, counts
