"""What can happen to a broker."""

from typing import Any, NamedTuple, TypeAlias

from mercast.content.filter import Filter
from mercast.content.types import Declaration
from mercast.protocol.messages import Forward, Message

REQUESTS = range(1, 2**32)
"""The numbers that clients give their requests: four bytes name them on the wire and in a matcher."""


class Declare(NamedTuple):
    client: str
    request: int
    declaration: Declaration


class Advertise(NamedTuple):
    client: str
    request: int
    type: str
    filter: Filter
    """A client's advertisement is known by the request that made it."""


class Unadvertise(NamedTuple):
    client: str
    request: int
    advertised: int


class Subscribe(NamedTuple):
    client: str
    request: int
    type: str | None
    filter: Filter
    echo: bool = True
    """Whether the client wants its own events back."""


class Unsubscribe(NamedTuple):
    client: str
    request: int
    subscribed: int


class Publish(NamedTuple):
    client: str
    request: int
    type: str
    attributes: dict[str, Any]
    time: int
    payload: bytes = b""
    content_type: str = "application/octet-stream"
    trace: str | None = None
    traced: bool = False
    encoded: bytes = b""
    """The event's content as it came over the wire."""
    plain: bool = False
    """Whether who read it has seen that the door for events (content/event.py) would change and refuse nothing."""


class Refuse(NamedTuple):
    """A request was refused before it came here, for the reason given: its answer comes after those before it."""

    client: str
    request: int
    reason: str


class Leave(NamedTuple):
    """A client is gone, with all that it declared interest in."""

    client: str


class Received(NamedTuple):
    """Messages read from one neighbour, in order."""

    neighbour: int
    messages: tuple[Message, ...]

    @property
    def events(self) -> int:
        return sum(len(message.packets) for message in self.messages if isinstance(message, Forward))


class LinkUp(NamedTuple):
    """There is a link, or there was one already and it costs something else from now on."""

    neighbour: int
    incarnation: int
    cost: int = 1


class LinkDown(NamedTuple):
    neighbour: int


class Unsent(NamedTuple):
    """Events that were to be sent to a neighbour and were not, for the link went down."""

    neighbour: int
    forwards: tuple[Forward, ...]


class Retire(NamedTuple):
    """This broker is about to stop: events are to go around it, as far as there is another way."""


class Tick(NamedTuple):
    """A deadline has passed: `next_deadline()` said when."""


class Batch(NamedTuple):
    """Several stimuli at once; the same as one after the other."""

    stimuli: tuple["Stimulus", ...]


Stimulus: TypeAlias = (
    Declare
    | Advertise
    | Unadvertise
    | Subscribe
    | Unsubscribe
    | Publish
    | Refuse
    | Leave
    | Received
    | LinkUp
    | LinkDown
    | Unsent
    | Retire
    | Tick
    | Batch
)
