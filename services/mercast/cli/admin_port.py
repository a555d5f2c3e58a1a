"""Asking the admin port of a broker."""
# ruff: noqa: N818 - names that say what has happened

import ssl
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import BaseHandler, HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from mercast.broker.addresses import ADMIN_PORT, Address, parse_address
from mercast.client.errors import MercastError
from mercast.client.options import default_context
from mercast.security.state import in_file
from mercast.security.tls import reason

_SECONDS = 5.0
"""To wait for an answer, and for each further piece of it."""

_MOST_BYTES = 256 * 1024 * 1024
"""Of an answer: more than a broker says, and bearable."""


class ByTls(Address):
    """An address that was given as https://…"""

    __slots__ = ()


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
        if type(address) is not ByTls:
            told += "; or it wants TLS: write https://…"
        super().__init__(f"what answers at {address} {told}")


class NoTls(AdminError):
    answers = False
    do = "see that MERCAST_CA names the CA of the broker's admin_cert"

    def __init__(self, address: Address, why: str) -> None:
        super().__init__(f"no TLS with the admin port at {address}: {why}")


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
    scheme = "http"
    handlers: list[BaseHandler] = [ProxyHandler({}), _Stay()]
    if type(address) is ByTls:
        scheme = "https"
        try:
            handlers.append(HTTPSHandler(context=default_context()))
        except MercastError as error:
            raise NoTls(address, str(error)) from None
    request = Request(f"{scheme}://{address}/{path}", headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with build_opener(*handlers).open(request, timeout=_SECONDS) as answer:
            said: bytes = answer.read(_MOST_BYTES + 1)
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.UNAUTHORIZED:
                raise TokenNeeded(address) from None
            raise NotServed(address, f"{error.code} {error.reason}") from None
    except (HTTPException, ValueError):
        raise NotOurs(address) from None
    except (URLError, OSError) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, ssl.SSLError):
            raise NoTls(address, reason(why)) from None
        raise NoAnswer(address) from None
    if len(said) > _MOST_BYTES:
        raise NotServed(address, f"more than {_MOST_BYTES} bytes")
    return said


def parse_admin(text: str) -> Address:
    """host:port, http://host:port or https://host:port; ValueError says what would be right."""
    where = text.removeprefix("http://").removeprefix("https://").rstrip("/")
    if "@" in where:
        raise ValueError("there is no user or password in the address of an admin port: use --admin-token")
    address = parse_address(where, ADMIN_PORT)
    return ByTls(*address) if text.startswith("https://") else address


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
