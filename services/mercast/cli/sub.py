"""`mercast sub`: show events that match, as they come."""

import logging
import os
import sys
from typing import Annotated

import orjson
from cyclopts import Parameter

from mercast.cli.asking import Token, Url, line_of, plain_of, say, talking, tell_what_happens


def sub(
    type: str | None = None,
    where: Annotated[str, Parameter(allow_leading_hyphen=True)] = "",
    /,
    *,
    count: int | None = None,
    json: bool = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Show events that match, as they come, until Ctrl-C.

    What becomes of the connection is told on standard error. Exit status: 0 at the end, 1 if there is no broker or it
    refuses the subscription.

    Parameters
    ----------
    type
        Events of this type and its subtypes; without it, of any type.
    where
        A condition on their attributes, such as "symbol = 'ACME' AND price < 100".
    count
        Stop after so many events.
    json
        One JSON object per line, as `mercast pub --file` reads them.
    url
        Where a broker is: mercast://host:port, or several parted by commas.
    token
        What the broker asks for.
    """
    if count is not None and count < 1:
        sys.exit("mercast sub: --count is at least 1")
    tell_what_happens(logging.INFO)
    left = float("inf") if count is None else count
    try:
        with talking("sub", url, token) as client:
            events = client.subscribe(type, where, settled=False)
            while left:
                event = events.get()
                say(orjson.dumps(plain_of(event)).decode() if json else line_of(event))
                left -= 1
    except KeyboardInterrupt:
        pass  # the usual way to end it
    except BrokenPipeError:  # whoever read this has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
