"""What clients say to their broker."""

from collections.abc import Callable
from struct import Struct, error
from typing import Any

import orjson

from mercast.content.errors import ContentError, quoted
from mercast.content.filter import Filter
from mercast.content.types import AttributeType, Declaration, check_declaration
from mercast.content.values import check_name
from mercast.protocol import stimuli
from mercast.protocol.stimuli import REQUESTS, Stimulus
from mercast.wire.events import PLAIN_BYTES, are_plain, decode_content, read_contents
from mercast.wire.frames import FRAME_BYTES, Kind, ProtocolError, frame
from mercast.wire.hello import field, read_json

_PUBLISH = Struct(">IB")
"""Request, flags."""

_TRACED = 1

_new = tuple.__new__
"""Makes a named tuple in half of the time that its own constructor takes."""

CONTENT_BYTES = FRAME_BYTES - 512 * 1024
"""Of an event: with what brokers add it must fit a frame between them, and one to a subscriber."""


class Refused(Exception):  # noqa: N818 - it is what the client is told, not a failure here
    """The request was understood and cannot be done, for the reason given."""

    def __init__(self, request: int, reason: str) -> None:
        super().__init__(reason)
        self.request = request


# -- by clients --------------------------------------------------------------------------------------------------------


def publish(request: int, content: bytes, traced: bool = False) -> bytes:
    return frame(Kind.PUBLISH, _PUBLISH.pack(request, _TRACED * traced) + content)


def subscribe(request: int, type: str | None, filter: str, echo: bool) -> bytes:
    return _json(Kind.SUBSCRIBE, request=request, type=type, filter=filter, echo=echo)


def unsubscribe(request: int, subscribed: int) -> bytes:
    return _json(Kind.UNSUBSCRIBE, request=request, subscribed=subscribed)


def advertise(request: int, type: str, filter: str) -> bytes:
    return _json(Kind.ADVERTISE, request=request, type=type, filter=filter)


def unadvertise(request: int, advertised: int) -> bytes:
    return _json(Kind.UNADVERTISE, request=request, advertised=advertised)


def declare(request: int, name: str, parent: str | None, attributes: dict[str, str], open: bool = False) -> bytes:
    return _json(Kind.DECLARE, request=request, name=name, parent=parent, attributes=attributes, open=open)


def leave() -> bytes:
    return _json(Kind.LEAVE)


def _json(kind: Kind, **said: Any) -> bytes:
    return frame(kind, orjson.dumps(said))


# -- at brokers --------------------------------------------------------------------------------------------------------


def read_publish(client: str, body: bytes, time: int) -> stimuli.Publish:
    """The body of a PUBLISH frame that was read at this time (nanoseconds since 1970)."""
    try:
        request, flags = _PUBLISH.unpack_from(body)
    except error:
        raise ProtocolError("a PUBLISH frame ends in its header") from None
    if len(body) > CONTENT_BYTES:
        raise ProtocolError(f"an event of {len(body)} bytes; it may have {CONTENT_BYTES}")
    type_, attributes, payload, content_type, trace = decode_content(body, _PUBLISH.size, True)
    content = body[_PUBLISH.size :]
    traced = flags & _TRACED != 0
    return stimuli.Publish(client, request, type_, attributes, time, payload, content_type, trace, traced, content)


def read_publishes(client: str, bodies: list[bytes], time: int) -> list[stimuli.Publish]:
    """The same of many that were read together."""
    contents = read_contents(bodies, [_PUBLISH.size] * len(bodies)) if max(map(len, bodies)) <= CONTENT_BYTES else None
    if contents is None:
        return [read_publish(client, body, time) for body in bodies]
    plain, size = are_plain(contents), _PUBLISH.size
    return [
        _new(
            stimuli.Publish,
            (client, request, type_, read, time, payload, PLAIN_BYTES, None, flags & _TRACED != 0, body[size:], plain),
        )
        for body, (request, flags), type_, read, payload in zip(
            bodies,
            map(_PUBLISH.unpack_from, bodies),
            *(contents.types, contents.attributes, contents.payloads),
            strict=True,
        )
    ]


def publish_again(client: str, request: int, content: bytes, time: int, traced: bool) -> stimuli.Publish:
    """What was read before, by its content."""
    return read_publish(client, _PUBLISH.pack(request, _TRACED * traced) + content, time)


def read_request(kind: int, client: str, body: bytes) -> Stimulus | None:
    """Any other request; None for a kind that is not known. Refused, if only its content is wrong."""
    read = _READERS.get(kind)
    if read is None:
        return None
    said = read_json(body)
    request = 0 if kind == Kind.LEAVE else field(said, "request", int)
    if request not in REQUESTS and kind != Kind.LEAVE:
        raise Refused(request, f"requests are numbered {REQUESTS[0]} to {REQUESTS[-1]}")
    try:
        return read(client, request, said)
    except ContentError as error_:
        raise Refused(request, str(error_)) from None


def _subscribe(client: str, request: int, said: dict[str, Any]) -> Stimulus:
    type_ = None if said.get("type") is None else _type(said)
    return stimuli.Subscribe(client, request, type_, _filter(said), field(said, "echo", bool, True))


def _advertise(client: str, request: int, said: dict[str, Any]) -> Stimulus:
    return stimuli.Advertise(client, request, _type(said), _filter(said))


def _unsubscribe(client: str, request: int, said: dict[str, Any]) -> Stimulus:
    return stimuli.Unsubscribe(client, request, field(said, "subscribed", int))


def _unadvertise(client: str, request: int, said: dict[str, Any]) -> Stimulus:
    return stimuli.Unadvertise(client, request, field(said, "advertised", int))


def _declare(client: str, request: int, said: dict[str, Any]) -> Stimulus:
    attributes = {}
    for name, kind in field(said, "attributes", dict, {}).items():
        try:
            attributes[name] = AttributeType(kind)
        except ValueError:
            kinds = ", ".join(one.value for one in AttributeType)
            raise ContentError(
                f"attribute {quoted(name)}: there is no type {quoted(kind)}; there are {kinds}"
            ) from None
    parent = None if said.get("parent") is None else field(said, "parent", str)
    declaration = Declaration(field(said, "name", str), parent, attributes, field(said, "open", bool, False))
    check_declaration(declaration)
    return stimuli.Declare(client, request, declaration)


def _leave(client: str, request: int, said: dict[str, Any]) -> Stimulus:  # noqa: ARG001
    return stimuli.Leave(client)


def _type(said: dict[str, Any]) -> str:
    return check_name(field(said, "type", str), "type")


def _filter(said: dict[str, Any]) -> Filter:
    text = field(said, "filter", str, "")
    return Filter.parse(text) if text else Filter()


_READERS: dict[int, Callable[[str, int, dict[str, Any]], Stimulus]] = {
    Kind.SUBSCRIBE: _subscribe,
    Kind.UNSUBSCRIBE: _unsubscribe,
    Kind.ADVERTISE: _advertise,
    Kind.UNADVERTISE: _unadvertise,
    Kind.DECLARE: _declare,
    Kind.LEAVE: _leave,
}
