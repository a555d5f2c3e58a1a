"""The first words on a connection: who speaks, which versions, and what the other side must know or refuse."""

from collections.abc import Mapping
from typing import Any

import orjson

from mercast.wire.frames import Kind, ProtocolError, frame

VERSIONS = (1, 1)
"""The oldest and the newest version of the wire that this code speaks: the newest and, once there is one, the version
before it. What a new version is for, and what needs none, is in docs/wire.md."""


def hello(**said: Any) -> bytes:
    return frame(Kind.HELLO, orjson.dumps(said))


def refusal(code: str, reason: str, **more: Any) -> bytes:
    """The last words on a connection."""
    return frame(Kind.ERROR, orjson.dumps({"code": code, "reason": reason} | more))


def common_version(theirs: Any, mine: tuple[int, int] = VERSIONS) -> int:
    """The newest version that both speak, from `[oldest, newest]` as the other side said it."""
    match theirs:
        case [int(oldest), int(newest)]:
            pass
        case _:
            raise ProtocolError("a HELLO says which versions it speaks as [oldest, newest]")
    version = min(newest, mine[1])
    if version < max(oldest, mine[0]):
        raise ProtocolError(
            f"no common version: who refuses speaks {mine[0]} to {mine[1]} of the wire, who is refused {oldest} to "
            f"{newest}; upgrade the older",
            code="version",
        )
    return version


def read_json(body: bytes) -> dict[str, Any]:
    """The body of a frame that is a JSON object."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"not JSON: {error}") from None
    if not isinstance(said, dict):
        raise ProtocolError("not a JSON object")
    return said


def field(said: Mapping[str, Any], name: str, kind: type, default: Any = ...) -> Any:
    """A field of a JSON object, checked; fields that nobody asks for are skipped."""
    value = said.get(name, default)
    if value is ...:
        raise ProtocolError(f"the field {name!r} is missing")
    if value is default and name not in said:
        return value
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ProtocolError(f"the field {name!r} is {type(value).__name__}, not {kind.__name__}")
    return value
