"""What brokers say to each other."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mercast.content.event import Event
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import Declaration
from mercast.protocol.rows import Row


class Local(NamedTuple):
    """How a client's advertisement or subscription is known at its broker: by the request that made it."""

    client: str
    request: int


class Statement(NamedTuple):
    """Names a declaration of a type, and its place in the order that all brokers take them in."""

    number: int
    broker: int
    incarnation: int


Origin: TypeAlias = tuple[int, Local]
"""Where an advertisement or subscription was made: broker, and its name there."""


class Carried(NamedTuple):
    """Names what an edge broker says for others: an advertisement or subscription that was made in another cluster."""

    origin: Origin
    crossed: tuple[int, ...]
    """The clusters that it has left, oldest first."""


Key: TypeAlias = Local | Statement | Carried | tuple[str, Origin] | tuple[str, Origin, Origin]
"""The name of a piece of control state: a client's own, a type's declaration; what edges carry; FBR's advertisements,
and subscriptions along the tree of one."""

Value: TypeAlias = Advertisement | Subscription | Declaration

Note: TypeAlias = str | Origin | None


class Packet(NamedTuple):
    """A published event with what travels unchanged beside it. Attributes and payload pass brokers untouched."""

    event: Event
    traced: bool = False
    """Record this event in the taps whatever the sampling says."""
    crossed: tuple[int, ...] = ()
    """The clusters that it has left, oldest first."""


class Forward(NamedTuple):
    """Events on their way together: the header that changes from hop to hop, and the packets that do not."""

    destinations: bytes
    """Brokers they are still to reach through this neighbour, with their roles (overlay/split.py)."""
    hops: int
    """Links crossed so far in this cluster."""
    packets: Sequence[Packet]
    """Events of one source, in the order that it published them, that go the same way; the header is read and the list
    split once for all."""
    note: Note = None
    """What a strategy needs beside the list, such as the advertisement whose tree they follow."""
    traced: bool = False
    """Whether any of them is traced: else nobody needs to look."""


class Report(NamedTuple):
    """What a broker did with a traced event, on its way back to the broker where that was published."""

    target: int
    hops: int
    client: str
    """The publisher."""
    broker: int
    """Who reports."""
    row: Row


class Record(NamedTuple):
    """What a broker says of itself: link state. The newest by (incarnation, sequence) counts."""

    broker: int
    incarnation: int
    sequence: int
    clusters: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    """(neighbour, cost), ascending."""


class Update(NamedTuple):
    """Records on their way to the brokers of the list."""

    destinations: bytes
    hops: int
    records: tuple[Record, ...]


class HeartBeat(NamedTuple):
    """Neighbours tell each other that they live, and what they know: equal digests, equal records."""

    digest: bytes
    sent: float
    echo: float | None = None
    """When the neighbour's last heart-beat was sent, by its own clock."""
    held: float = 0.0
    """How long ago that was received here: the way there and back took the rest of the time since `echo`."""


class Put(NamedTuple):
    """An item of a channel: this is now so."""

    key: Key
    value: Value


class Drop(NamedTuple):
    """An item of a channel: this is no longer so."""

    key: Key


class Complete(NamedTuple):
    """An item of a channel: a stream that started anew has said everything; what it did not repeat is no longer so."""


class Control(NamedTuple):
    """One step of the reliable channel between two brokers (overlay/channel.py), routed like an event."""

    source: int
    target: int
    hops: int
    stream: tuple[int, int]
    """(incarnation, number): a higher one starts anew."""
    first: int
    """The sequence number of the first item."""
    items: tuple[Put | Drop | Complete, ...]
    heard: tuple[int, int]
    """The target's stream that the next two fields speak of."""
    applied: int
    """All its items up to this one have been applied."""
    unsettled: tuple[int, ...]
    """Of those, the ones whose consequences others have not acknowledged yet."""
    asks: bool = False
    """Whether an answer is wanted even if there is nothing new to answer to."""
    digest: int | None = None
    """Of all that the source has told the target, from time to time."""


class Ask(NamedTuple):
    """A broker asks another for a link (overlay/organising.py)."""

    source: int
    target: int
    hops: int
    number: int
    """Of the request, at its source."""
    digest: bytes
    """Of the records that it was decided on."""
    gain: float
    lose: float
    given_up: int | None
    """The neighbour whose link the source gives up for the new one."""
    counts: tuple[tuple[int, int, int], ...]
    """(source, destination, messages): what the asker has counted."""


class Reply(NamedTuple):
    """Accepts or refuses what was asked."""

    source: int
    target: int
    hops: int
    number: int
    digest: bytes
    accepted: bool
    given_up: int | None = None


class Look(NamedTuple):
    """Asks whether the target sees the overlay as the source does."""

    source: int
    target: int
    hops: int
    digest: bytes


class Same(NamedTuple):
    """It does; who does not says nothing."""

    source: int
    target: int
    hops: int
    digest: bytes


Organise: TypeAlias = Ask | Reply | Look | Same
"""What brokers say to move links; routed like control state."""

Message: TypeAlias = Forward | Update | HeartBeat | Control | Report | Ask | Reply | Look | Same
