"""`mercast pub`: publish an event, or many."""

import base64
import binascii
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import orjson
from cyclopts import Parameter

from mercast.cli.asking import Token, Url, accepted, attributes, say, talking, tell_what_happens
from mercast.client.blocking import Client
from mercast.client.errors import ConnectionLost, MercastError, Refused
from mercast.client.event import Receipt, ToPublish
from mercast.wire.events import PLAIN_BYTES

_TOGETHER = 1000

_AnyText: TypeAlias = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""Standard input is called -."""


def pub(
    type: str | None = None,
    /,
    *attribute: str,
    payload: _AnyText = None,
    payload_file: _AnyText = None,
    content_type: str = PLAIN_BYTES,
    file: _AnyText = None,
    json: bool = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Publish an event, such as: mercast pub stock.quote symbol=ACME price=99

    Exit status: 0 if it was accepted (even if nobody subscribes to it), 1 if not; of many, 0 if all were.

    Parameters
    ----------
    type
        Its type.
    attribute
        Its attributes: name=value. A value is an int, a float, true or false, and else a string; within quotes it is
        always a string.
    payload
        Its payload as text, which is not looked at on the way.
    payload_file
        The file that has its payload; - for standard input.
    content_type
        What the payload is, such as text/plain.
    file
        Publish many: a file (- for standard input) with a JSON object per line, each with "attributes" and, if wanted,
        "type" (else the one above), "payload" (or "payload_base64") and "content_type".
    json
        One JSON object per event: {"accepted": 1, "refused": 0, "destinations": 2}; one that is refused has a "reason",
        and the "line" where it is in the file.
    url
        Where a broker is: mercast://host:port, or several parted by commas.
    token
        What the broker asks for.
    """
    tell_what_happens(logging.WARNING)
    if file is not None:
        if attribute or payload is not None or payload_file is not None:
            sys.exit("mercast pub: with --file, attributes and payloads come from the file")
        with _opened(file) as lines, talking("pub", url, token) as client:
            sys.exit(_publish_lines(client, lines, type, json))
    if type is None:
        sys.exit("mercast pub: which type? Write: mercast pub stock.quote symbol=ACME price=99")
    event = ToPublish(type, attributes(attribute), _payload(payload, payload_file), content_type)
    with talking("pub", url, token) as client:
        try:
            receipt = client.publish(*event)
        except Refused as refused:
            if not json:
                raise
            say(_json(refused))
            sys.exit(1)
        say(_json(receipt) if json else accepted(receipt, type))


def _payload(text: str | None, file: str | None) -> bytes:
    if text is not None and file is not None:
        sys.exit("mercast pub: give --payload or --payload-file, not both")
    if file is None:
        return os.fsencode(text or "")  # as it was typed, be it text or not
    with _opened(file) as data:
        return data.read()


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        sys.exit(f"mercast pub: {file}: {error.strerror}")


# -- many --------------------------------------------------------------------------------------------------------------


def _publish_lines(client: Client, lines: BinaryIO, type: str | None, json: bool) -> int:
    """Says what became of them; the exit status."""
    taken = destinations = refused = 0
    events = _read(lines, type)
    while batch := list(islice(events, _TOGETHER)):
        outcomes: Iterable[Any] = client.publish_many(event for _, event in batch if isinstance(event, ToPublish))
        outcome_of = iter(outcomes)
        for number, event in batch:
            outcome = event if isinstance(event, MercastError) else next(outcome_of)
            if isinstance(outcome, ConnectionLost):
                raise outcome
            if json:
                say(_json(outcome, number))
            if isinstance(outcome, Receipt):
                taken += 1
                destinations += outcome.destinations
            else:
                refused += 1
                if not json:
                    sys.stderr.write(f"line {number}: {outcome}\n")
    if not json:
        say(f"{taken} accepted, {destinations} destinations in all" + (f", {refused} refused" if refused else ""))
    return 1 if refused else 0


def _json(outcome: Receipt | MercastError, line: int | None = None) -> str:
    said: dict[str, Any] = {"accepted": 0, "refused": 1, "destinations": 0, "reason": str(outcome)}
    if isinstance(outcome, Receipt):
        said = {"accepted": 1, "refused": 0, "destinations": outcome.destinations}
    elif line is not None:
        said["line"] = line
    return orjson.dumps(said).decode()


def _read(lines: BinaryIO, type: str | None) -> Iterator[tuple[int, ToPublish | MercastError]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, _event(orjson.loads(line), type)
            except orjson.JSONDecodeError as error:
                yield number, MercastError(f"not JSON: {error}")
            except MercastError as error:
                yield number, error


def _event(said: Any, type: str | None) -> ToPublish:
    if not isinstance(said, dict):
        raise MercastError('not an event: write {"type": …, "attributes": {…}}')
    type_ = said.get("type", type)
    if not isinstance(type_, str):
        raise MercastError("no type: write it into the line, or before --file for all of them")
    payload = said.get("payload", "")
    if not isinstance(payload, str):
        raise MercastError('a "payload" is text; other data goes as "payload_base64"')
    data = payload.encode()
    if "payload_base64" in said:
        try:
            data = base64.b64decode(said["payload_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise MercastError(f'"payload_base64" is not base64: {error}') from None
    return ToPublish(type_, said.get("attributes", {}), data, said.get("content_type", PLAIN_BYTES))
