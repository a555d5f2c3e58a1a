"""Tap rows: what a broker did, one row per happening. Field names are the column names everywhere.

This is the one definition of what the taps hold: columns.py reads it for the encoder, for Spark's schema and for
docs/taps.md. New fields come last and have defaults: rows of traced events travel between brokers, old and new.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Annotated, Any, NamedTuple, TypeAlias, overload

from mercast.content.event import EventId

# -- about events ------------------------------------------------------------------------------------------------------


class Published(NamedTuple):
    """An event was accepted from a local client."""

    event: EventId
    time: int
    type: Annotated[str, "Its type."]
    attributes: Annotated[dict[str, bool | int | float | str] | None, "Its attributes, a JSON object."]
    destinations: Annotated[int, "Brokers found interested, this one not counted."]
    bytes: Annotated[int, "Length of its payload."]
    matches: Annotated[int, "Local clients that it is for."]
    publisher: Annotated[str | None, "The client."] = None


WAITED, FIRST, FURTHER = range(3)


class Copied(NamedTuple):
    """A copy of an event came in from a neighbour."""

    event: EventId
    time: int
    neighbour: Annotated[int, "The address of the broker that it came from: its number, and above 16 bits the place."]
    hops: Annotated[int, "Links crossed so far in this cluster."]
    list_length: Annotated[int, "Entries of the destination list that came with it."]
    copy: Annotated[
        int,
        "1 for the first copy that this broker gets, 2 for any further one; 0 for one that came before, had to wait at "
        "this edge, and is carried on now.",
    ]
    interested: Annotated[bool, "Whether a local subscription matches."]
    taken: Annotated[bool, "Whether the list names this broker, so that one of its entries has arrived."] = False
    made: Annotated[
        int, "Brokers in the new lists that this one made, as an edge that carries it into other clusters."
    ] = 0


class Delivered(NamedTuple):
    """An event was written toward a local client."""

    event: EventId
    time: int
    client: Annotated[str | None, "The client."]
    subscriptions: Annotated[tuple[int, ...], "Its subscriptions that matched, by the requests that made them."]
    hops: Annotated[int, "Links crossed in this cluster; 0 at the publisher's broker."]
    copy: Annotated[int, "1 for the first delivery to this client, 2 for any further one."] = FIRST


class Dropped(NamedTuple):
    """An event went no further."""

    event: EventId
    time: int
    why: Annotated[str, "The reason."]


Row: TypeAlias = Published | Copied | Delivered | Dropped
EVENT_ROWS = frozenset((Published, Copied, Delivered, Dropped))


# -- about a broker ----------------------------------------------------------------------------------------------------


class Ticked(NamedTuple):
    """A second has passed: what the broker did in it, and how it is. Never sampled."""

    interval_us: Annotated[int, "Microseconds since the last one."]
    published: Annotated[int, "Events accepted from local clients since then."]
    delivered: Annotated[int, "Events written toward local clients."]
    forwarded: Annotated[int, "Events sent to neighbours."]
    bytes_in: Annotated[int, "Bytes from other brokers."]
    bytes_out: Annotated[int, "Bytes to other brokers."]
    bytes_to_clients: Annotated[int, "Bytes to local clients."]
    matches: Annotated[int, "Events that were matched against filters."]
    dropped: Annotated[dict[str, int], "Events that went no further, by reason."]
    clients: Annotated[int, "Local clients now."]
    links: Annotated[int, "Links now."]
    subscriptions: Annotated[int, "Subscriptions of local clients now."]
    queued_bytes: Annotated[int, "Bytes that wait to be written to clients and neighbours now."]
    loop_lag_us: Annotated[int, "How late the event loop was at most since the last one."]
    tap_lost: Annotated[int, "Rows that the tap has lost since the last one."]
    clock_offset_us: Annotated[
        int | None, "By how much a neighbour's clock may differ at most: offset and half of the round trip."
    ]
    cpu_us: Annotated[int, "Processor time of the broker's process since the last one."]


# -- about control state -----------------------------------------------------------------------------------------------


class Declared(NamedTuple):
    """A type is known."""

    type: Annotated[str, "Its name."]
    parent: Annotated[str | None, "The type that it inherits from."]
    attributes: Annotated[dict[str, bool | int | float | str], "Kinds of its own attributes, a JSON object."]


class Advertised(NamedTuple):
    """A local client advertises."""

    client: Annotated[str | None, "The client."]
    request: Annotated[int, "The request that made it; negative if publishing implied it."]
    type: Annotated[str | None, "The type of the events to come; null for any."]
    filter: Annotated[str | None, "What holds of them, as the text of WHERE."]


class Unadvertised(NamedTuple):
    """An advertisement is no more."""

    client: Annotated[str | None, "The client."]
    request: Annotated[int, "The request that made it."]


class Subscribed(NamedTuple):
    """A local client subscribes."""

    client: Annotated[str | None, "The client."]
    request: Annotated[int, "The request that made it."]
    type: Annotated[str | None, "The type of the events wanted; null for any."]
    filter: Annotated[str | None, "What holds of them, as the text of WHERE."]
    echo: Annotated[bool, "Whether the client gets its own events."]
    settled_at: Annotated[int | None, "When it settled, in snapshots; null if it has not."] = None


class Unsubscribed(NamedTuple):
    """A subscription is no more."""

    client: Annotated[str | None, "The client."]
    request: Annotated[int, "The request that made it."]


class Agreed(NamedTuple):
    """A request has settled, or has waited for long enough."""

    client: Annotated[str | None, "The client."]
    request: Annotated[int, "The request: of an advertisement or subscription, or of taking one back."]
    missing: Annotated[tuple[int, ...], "The brokers that did not acknowledge it in time."]


class Linked(NamedTuple):
    """There is a link to a neighbour."""

    neighbour: Annotated[int, "The address of the broker at its other end."]
    cost: Annotated[int, "Its cost."]


class Unlinked(NamedTuple):
    """There is no more link to a neighbour."""

    neighbour: Annotated[int, "The address of the broker at its other end."]


class Snapshot(NamedTuple):
    """All control state follows as it is now, or has been said: what a snapshot does not have is no more."""

    ends: Annotated[bool, "Whether this is its end."]
    rows: Annotated[int, "Rows between its beginning and its end."]


ControlRow: TypeAlias = (
    Declared | Advertised | Unadvertised | Subscribed | Unsubscribed | Agreed | Linked | Unlinked | Snapshot
)


# -- many at once ------------------------------------------------------------------------------------------------------

Column: TypeAlias = Any
"""Of rows that were written together: a list of their values, or a range; anything else is the one value that all of
them have."""

_VARIED = frozenset((list, range))


def is_varied(column: Column) -> bool:
    """Whether it has a value for each row."""
    return type(column) in _VARIED


class Run:
    """Rows of one kind, as columns: an object for each row would cost too much.

    Columns are in the order of the row's fields, but for an event's id: it takes three, broker, incarnation and
    sequence.
    """

    __slots__ = ("columns", "count", "row")

    def __init__(self, row: type[Any], count: int, *columns: Column) -> None:
        self.row, self.count, self.columns = row, count, columns

    @staticmethod
    def of(row: Any) -> "Run":
        return Run(type(row), 1, *(*row[0], *row[1:]) if type(row) in EVENT_ROWS else row)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        """Row by row."""
        columns: Iterable[Any] = [one if is_varied(one) else repeat(one, self.count) for one in self.columns]
        if self.row in EVENT_ROWS:
            columns = (map(EventId, *columns[:3]), *columns[3:])  # type: ignore[index]
        return map(self.row, *columns)

    def cut(self, begin: int, end: int) -> "Run":
        """Some of these rows."""
        cut = (one[begin:end] if is_varied(one) else one for one in self.columns)
        return Run(self.row, min(end, self.count) - begin, *cut)


class Written(Sequence[Any]):
    """The rows of some runs; who wants columns looks at the runs."""

    __slots__ = ("runs",)

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = tuple(runs)

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __iter__(self) -> Iterator[Any]:
        return (row for run in self.runs for row in run)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))
