"""Stimuli about many events as the bytes that they came as: what is kept of them after their turn.

Kept as they are, the dozen small objects of each event would lie between those of later turns. Memory that came in one
piece would soon be in shreds, and whatever a broker does would take a tenth longer.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from mercast.protocol.messages import Forward
from mercast.protocol.repeated import in_row, in_runs
from mercast.protocol.stimuli import Batch, Publish, Received, Stimulus
from mercast.wire.events import Passing, decode_packets, encoded_together
from mercast.wire.requests import publish_again

_MANY = 16
"""Fewer together are no matter."""

_stamped = attrgetter("event.stamped")


class Publishes(NamedTuple):
    """In the place of many, column by column."""

    clients: Sequence[str]
    requests: Sequence[int]
    times: Sequence[int]
    traced: Sequence[bool]
    contents: bytes
    lengths: "array[int]"


class Packets(NamedTuple):
    """In the place of those of a forward."""

    encoded: bytes
    events: int
    passing: bool


def packed(stimulus: Stimulus) -> Any:
    """The same, in which some parts stand for others."""
    if type(stimulus) is Batch:
        runs = groupby(stimulus.stimuli, type)
        return Batch(tuple(chain.from_iterable(_packed_run(kind, tuple(run)) for kind, run in runs)))
    return _packed_received(stimulus) if type(stimulus) is Received else stimulus


def unpacked(kept: Any) -> Stimulus:
    if type(kept) is Batch:
        return Batch(tuple(chain.from_iterable(map(_unpacked, kept.stimuli))))
    (one,) = _unpacked(kept)
    return one


def _packed_run(kind: type, run: tuple[Any, ...]) -> Iterable[Any]:
    if kind is Received:
        return map(_packed_received, run)
    return (_packed_publishes(run),) if kind is Publish and len(run) >= _MANY else run


def _unpacked(part: Any) -> Iterator[Stimulus]:
    if type(part) is Publishes:
        yield from _unpacked_publishes(part)
    elif type(part) is Received:
        yield part._replace(messages=tuple(map(_unpacked_message, part.messages)))
    else:
        yield part


def _packed_publishes(run: tuple[Publish, ...]) -> Publishes:
    clients, requests, _, _, times, _, _, _, traced, contents, _ = zip(*run, strict=True)
    lengths = array("I", map(len, contents))
    return Publishes(in_runs(clients), in_row(requests), in_runs(times), in_runs(traced), b"".join(contents), lengths)


def _unpacked_publishes(kept: Publishes) -> Iterator[Publish]:
    begin = 0
    each = kept.clients, kept.requests, kept.times, kept.traced, kept.lengths
    for client, request, time, traced, length in zip(*each, strict=True):
        yield publish_again(client, request, kept.contents[begin : begin + length], time, traced)
        begin += length


def _packed_received(received: Received) -> Received:
    return received._replace(messages=tuple(map(_packed_message, received.messages)))


def _packed_message(message: Any) -> Any:
    if type(message) is not Forward or len(message.packets) < _MANY:
        return message
    packets, count = message.packets, len(message.packets)
    if isinstance(packets, Passing):
        return message._replace(packets=Packets(packets.encoded, count, True))  # type: ignore[arg-type]
    encoded = encoded_together(list(map(_stamped, packets)))
    return message._replace(packets=Packets(encoded, count, False))  # type: ignore[arg-type]


def _unpacked_message(message: Any) -> Any:
    packets: Any = message.packets if type(message) is Forward else None
    if type(packets) is not Packets:
        return message
    encoded, count, passing = packets
    return message._replace(packets=(Passing if passing else decode_packets)(encoded, 0, count))
