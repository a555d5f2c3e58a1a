"""Of events that travel together, those that the taps get rows of, and what all of their rows begin with.

Mostly they are of one source, in order, and of few reads there. Then the first and the last tell of all, or of all of a
read: nothing is done for each.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from mercast.content.event import EventId
from mercast.protocol.messages import Packet
from mercast.protocol.repeated import in_one, in_row
from mercast.protocol.rows import Column
from mercast.routing.sampling import Sampler
from mercast.wire.events import Passing


def ids_of(packets: Sequence[Packet], which: Sequence[int] | None = None) -> list[EventId]:
    """Of all, or of those at these places."""
    if isinstance(packets, Passing):
        return packets.ids(range(len(packets)) if which is None else which)
    return [packet[0][0] for packet in (packets if which is None else pick(packets, which))]


class Tapped(NamedTuple):
    """Events that there are rows of."""

    places: Sequence[int]
    """Among those that they came with."""
    columns: tuple[Column, Column, Sequence[int], Column]
    """Broker, incarnation and sequence of each, and when it was published."""

    @property
    def in_row(self) -> bool:
        """Whether they are of one source, and follow each other."""
        brokers, incarnations, sequences, _ = self.columns
        return type(sequences) is range and type(brokers) is not list and type(incarnations) is not list

    @property
    def ids(self) -> list[EventId]:
        brokers, incarnations, sequences, _ = self.columns
        columns = (one if type(one) is list else repeat(one) for one in (brokers, incarnations))
        return list(map(EventId, *columns, sequences))


def picked(packets: Sequence[Packet], places: Sequence[int]) -> Tapped:
    brokers, incarnations, sequences = zip(*ids_of(packets, places), strict=True)
    row, times = in_row(sequences), list(map(_time_of(packets), places))
    numbers = row if type(row) is range else list(sequences)
    return Tapped(places, (in_one(brokers), in_one(incarnations), numbers, in_one(times)))


def _ends(packets: Sequence[Packet]) -> Any:
    """Of the first and the last: broker, incarnation, sequence, time."""
    if isinstance(packets, Passing):
        return packets.ends()
    first, last = packets[0][0], packets[-1][0]
    return (*first[0], first[3]), (*last[0], last[3])


def _time_of(packets: Sequence[Packet]) -> Callable[[int], int]:
    """When the event at a place was published."""
    return packets.time if isinstance(packets, Passing) else lambda at: packets[at][0][3]


_FEW = 8
"""Reads that are worth looking for."""


def _reads(packets: Sequence[Packet]) -> list[tuple[int, int, int]]:
    """Of events of one broker, in order, the times at which they were read, with the places of each; none if there are
    too many. A broker's clock does not go back."""
    time_of, count = _time_of(packets), len(packets)
    reads, begin = list[tuple[int, int, int]](), 0
    while begin < count:
        if len(reads) == _FEW:
            return []
        time = time_of(begin)
        end = bisect_right(range(count), time, begin, key=time_of)
        reads.append((time, begin, end))
        begin = end
    return reads


def pick(some: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    if type(places) is not range:
        return [some[at] for at in places]
    return some if len(places) == len(some) else some[places.start : places.stop]


def tapped(packets: Sequence[Packet], samples: Sampler | None, traced: bool) -> Iterable[Tapped]:
    """Those that are chosen, and those that are traced, if any is."""
    if not packets:
        return ()
    count = len(packets)
    if samples is not None and not traced:
        (broker, incarnation, first, began), (source, life, last, ended) = _ends(packets)
        if last - first == count - 1 and source == broker and life == incarnation:
            reads = [(began, 0, count)] if began == ended else _reads(packets)
            if reads:
                return [
                    Tapped(range(begin, end), (broker, incarnation, range(first + begin, first + end), time))
                    for time, begin, end in reads
                    if samples(broker, incarnation, time)
                ]
    times = map(_time_of(packets), range(count))
    chosen = [
        at
        for at, ((broker, incarnation, _), time) in enumerate(zip(ids_of(packets), times, strict=True))
        if (samples is not None and samples(broker, incarnation, time)) or (traced and packets[at].traced)
    ]
    return (picked(packets, chosen),) if chosen else ()
