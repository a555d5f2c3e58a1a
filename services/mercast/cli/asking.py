"""What commands that talk to a broker have in common."""

import base64
import errno
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from mercast.client import blocking
from mercast.client.errors import MercastError, NoBroker
from mercast.client.event import Event, Receipt
from mercast.content.values import Value

Url: TypeAlias = Annotated[str | None, Parameter(env_var="MERCAST_URL")]
Token: TypeAlias = Annotated[str | None, Parameter(env_var="MERCAST_TOKEN")]

_INT = re.compile(r"[-+]?\d+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?", re.ASCII)
_BOOLS = {"true": True, "false": False}
_PLAIN = re.compile(r"[^\s'\"=]+")
_QUOTES = ("'", '"')
_SHOWN = 80


# -- talking -----------------------------------------------------------------------------------------------------------


@contextmanager
def talking(command: str, url: str | None, token: str | None) -> Iterator[blocking.Client]:
    """A client; what goes wrong ends the command with a line that says so, and exit status 1."""
    try:
        with blocking.connect(url, token=token, name=f"mercast-{command}") as client:
            yield client
    except MercastError as error:
        if isinstance(error, NoBroker) and error.why == os.strerror(errno.ECONNREFUSED):
            sys.exit(f"no broker answers at {error.where}; start one with: mercast local 3")
        sys.exit(f"mercast {command}: {error}")


def tell_what_happens(level: int) -> None:
    """Connections that come and go, on standard error."""
    told = logging.getLogger("mercast.client")
    told.setLevel(level)
    if not told.handlers:
        told.addHandler(logging.StreamHandler())


def say(line: str) -> None:
    """On standard output, at once: somebody may be waiting for the line at the other end of a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def accepted(receipt: Receipt, type: str) -> str:
    if receipt.destinations == 0:
        return f"accepted, 0 destinations: nobody subscribes to {type}"
    return f"accepted, {receipt.destinations} destination{'s' if receipt.destinations > 1 else ''}"


# -- attributes as a user writes them ----------------------------------------------------------------------------------


def attributes(texts: Iterable[str]) -> dict[str, Value]:
    read: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            sys.exit(f"{text!r} is not an attribute: write name=value")
        if name in read:
            sys.exit(f"attribute {name!r} is given twice")
        read[name] = parse_value(value)
    return read


def parse_value(text: str) -> Value:
    """An int, a float, true or false; else a string, and always one within quotes."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES:
        return text[1:-1]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return _BOOLS.get(text.lower(), text)


def write_value(value: Value) -> str:
    """As it would have to be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    if type(parse_value(value)) is str and _PLAIN.fullmatch(value):
        return value
    return f'"{value}"' if "'" in value else f"'{value}'"


# -- events as they are shown ------------------------------------------------------------------------------------------


def line_of(event: Event) -> str:
    """One line for people."""
    parts = [event.type, *(f"{name}={write_value(value)}" for name, value in event.attributes.items())]
    if event.payload:
        parts.append(_payload(event.payload))
    return " ".join(parts)


def _payload(payload: bytes) -> str:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = ""
    if len(text) <= _SHOWN and text.isprintable() and text:
        return f"| {text}"
    return f"| {len(payload)} bytes"


def plain_of(event: Event) -> dict[str, Any]:
    """For JSON; a payload that is not text is written as base64."""
    plain: dict[str, Any] = {"type": event.type, "attributes": event.attributes}
    if event.payload:
        try:
            plain["payload"] = event.payload.decode()
        except UnicodeDecodeError:
            plain["payload_base64"] = base64.b64encode(event.payload).decode()
    more = {"content_type": event.content_type, "time": event.time, "publisher": event.publisher, "id": list(event.id)}
    return plain | more
