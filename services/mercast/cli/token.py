"""`mercast token`: make a token for clients."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from mercast.security.errors import SecurityError
from mercast.security.files import alone_with, replace_file
from mercast.security.tokens import new_token, with_token

_Patterns: TypeAlias = Annotated[list[str] | None, Parameter(negative=())]


def token(
    name: str,
    /,
    *,
    publish: _Patterns = None,
    subscribe: _Patterns = None,
    deny_publish: _Patterns = None,
    deny_subscribe: _Patterns = None,
    publish_events_per_second: int = 0,
    publish_bytes_per_second: int = 0,
    file: Path = Path("tokens.yaml"),
) -> None:
    """Make a token, such as: mercast token feed --publish 'stock.*' --file tokens.yaml

    It is printed once; the file gets its hash and its rules, and running brokers read the file again. A pattern is a
    type, or its beginning and a *; it holds for subtypes too. What is not allowed is denied, and deny wins. Each flag
    may be given several times.

    Parameters
    ----------
    name
        Whose it is, for people and logs.
    publish
        Types that may be published.
    subscribe
        Types that may be subscribed to.
    deny_publish
        Types that may not be, though allowed above.
    deny_subscribe
        Types that may not be, though allowed above.
    publish_events_per_second
        At each broker, by all clients that use the token together; 0 is no limit.
    publish_bytes_per_second
        The same in bytes.
    file
        The file of tokens; made if it is not there.
    """
    made = new_token()
    rules = {
        "publish": publish or [],
        "subscribe": subscribe or [],
        "deny_publish": deny_publish or [],
        "deny_subscribe": deny_subscribe or [],
    }
    rates = {
        "publish_events_per_second": publish_events_per_second,
        "publish_bytes_per_second": publish_bytes_per_second,
    }
    try:
        with alone_with(file):
            before = file.read_text(encoding="utf-8") if file.exists() else ""
            replace_file(file, with_token(before, name, made, rules, rates).encode(), secret=True)
    except SecurityError as error:
        sys.exit(f"mercast token: {file}: {error}")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"mercast token: {file}: {error}")
    sys.stdout.write(f"{made}\n")
