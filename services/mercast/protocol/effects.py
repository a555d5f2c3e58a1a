"""What a broker does about it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from mercast.content.event import Event
from mercast.protocol.messages import Message
from mercast.protocol.rows import Row


class Send(NamedTuple):
    """Messages to one neighbour, in order."""

    neighbour: int
    messages: tuple[Message, ...]


class Multicast(NamedTuple):
    """One message to all members of a group."""

    group: tuple[int, ...]
    message: Message


class Deliver(NamedTuple):
    """One copy to a client, with its subscriptions that matched."""

    client: str
    event: Event
    subscriptions: tuple[int, ...]


class Answer(NamedTuple):
    """To a client's request: done, or refused with a reason."""

    client: str
    request: int
    refused: str = ""


class Receipts(NamedTuple):
    """To a client's publishes, from the first request on one after the other: accepted; the destinations of each."""

    client: str
    first: int
    counts: tuple[int, ...]


class Settled(NamedTuple):
    """Every reachable broker concerned knows of an advertisement or subscription; `missing` did not say so in time."""

    client: str
    request: int
    missing: tuple[int, ...] = ()


class Reported(NamedTuple):
    """To the publisher of a traced event: what a broker did with it."""

    client: str
    broker: int
    row: Row


class OpenLink(NamedTuple):
    """This neighbour is wanted from now on: there is to be a link, as soon and as often as it can be made."""

    neighbour: int


UNWANTED = "no longer wanted"
"""Why a link is closed, if there is to be none any more. One that is closed for another reason is made again."""


class CloseLink(NamedTuple):
    """There may be none, if it went down in the meantime, or did not come up."""

    neighbour: int
    reason: str


class Tap(NamedTuple):
    """Rows for the taps, each of a kind of `rows.py`: as they are written, in runs; those of one kind in order."""

    rows: Sequence[Any]


Effect: TypeAlias = Send | Multicast | Deliver | Answer | Receipts | Settled | Reported | OpenLink | CloseLink | Tap
