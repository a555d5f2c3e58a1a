"""Asking the admin port of a broker."""
# ruff: noqa: N818 - names that say what has happened

from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from mercast.broker.addresses import ADMIN_PORT, Address, parse_address
from mercast.security.state import in_file

_SECONDS = 5.0
"""To wait for an answer, and for each further piece of it."""

_MOST_BYTES = 256 * 1024 * 1024
"""Of an answer: more than a broker says, and bearable."""


class AdminError(Exception):
    """Why there is no answer, or not the one that was asked for."""

    answers = True
    """Whether it is worth asking something else."""

    do = "see whether the broker runs, and what its log says"


class NoAnswer(AdminError):
    answers = False

    def __init__(self, address: Address) -> None:
        super().__init__(f"no broker answers at {address}; is its admin port open? (mercast broker --admin-listen …)")


class TokenNeeded(AdminError):
    answers = False
    do = "ask the operator of the broker for its admin_token"

    def __init__(self, address: Address) -> None:
        told = "asks for a token: give it with --admin-token or MERCAST_ADMIN_TOKEN"
        super().__init__(f"the admin port at {address} {told}")


class NotOurs(AdminError):
    do = "see what listens there, and at which address the broker's admin port is"

    def __init__(self, address: Address) -> None:
        told = "is not the admin port of a broker (mercast broker --admin-listen …)"
        super().__init__(f"what answers at {address} {told}")


class NotServed(NotOurs):
    """By this broker: it may be older, or told not to."""

    def __init__(self, address: Address, why: str) -> None:
        super().__init__(address)
        self.why = why


class _Stay(HTTPRedirectHandler):
    """The token is for this address only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def fetch(address: Address, path: str, token: str) -> bytes:
    """Directly: an admin port is not behind a proxy, whatever the environment says of those."""
    request = Request(f"http://{address}/{path}", headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with build_opener(ProxyHandler({}), _Stay()).open(request, timeout=_SECONDS) as answer:
            said: bytes = answer.read(_MOST_BYTES + 1)
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.UNAUTHORIZED:
                raise TokenNeeded(address) from None
            raise NotServed(address, f"{error.code} {error.reason}") from None
    except (HTTPException, ValueError):
        raise NotOurs(address) from None
    except (URLError, OSError):
        raise NoAnswer(address) from None
    if len(said) > _MOST_BYTES:
        raise NotServed(address, f"more than {_MOST_BYTES} bytes")
    return said


def parse_admin(text: str) -> Address:
    """host:port or http://host:port; ValueError says what would be right."""
    where = text.removeprefix("http://").rstrip("/")
    if "@" in where:
        raise ValueError("there is no user or password in the address of an admin port: use --admin-token")
    return parse_address(where, ADMIN_PORT)


def read_token(given: str) -> str:
    """The token, or what is in the file that it names; ValueError if that cannot be read. What is no file may be a
    token, and is not told."""
    if not in_file(given):
        return given
    try:
        return Path(given).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        if not Path(given).exists():
            told = "there is no file of that name; a token that is given as it is has no slash in it"
            raise ValueError(told) from None
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"{given}: {why}") from None
