"""Where brokers are: `mercast://host:port`, `mercasts://` for TLS, or just `host:port` or `host`."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from mercast.client.arguments import text
from mercast.client.errors import MercastError

PORT = 7470
DEFAULT_URL = f"mercast://127.0.0.1:{PORT}"

_SCHEMES = {"mercast": False, "mercasts": True}
_HIGHEST_PORT = 65_535
_DIGITS = len(str(_HIGHEST_PORT))


class Address(NamedTuple):
    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def addresses(urls: str | Iterable[str] | None) -> list[Address]:
    """Of the urls given (several in one string are parted by commas), or of MERCAST_URL, or of this machine."""
    given = urls if urls is not None else os.environ.get("MERCAST_URL") or DEFAULT_URL
    texts = given if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    found = [
        parse(part.strip()) for one in texts for part in text(one, "the address of a broker").split(",") if part.strip()
    ]
    if not found:
        raise MercastError(f"no address of a broker is given: write {DEFAULT_URL}")
    return found


def parse(url: str, tls: bool = False) -> Address:
    scheme, separator, rest = url.rpartition("://")
    if separator:
        if scheme not in _SCHEMES:
            raise _wrong(url)
        tls = _SCHEMES[scheme]
    rest = rest.removesuffix("/")
    if rest.startswith("["):  # IPv6
        host, _, port = rest[1:].partition("]")
        if port and not port.startswith(":"):
            raise _wrong(url)
        port = port[1:]
    else:
        host, colon, port = rest.partition(":")
        if colon and not port:
            raise _wrong(url)
    if not _is_host(host) or (port and not _is_port(port)):
        raise _wrong(url)
    return Address(host, int(port) if port else PORT, tls)


def _is_host(name: str) -> bool:
    """Whether it can be looked up: some resolvers raise errors of their own for what cannot."""
    try:
        return bool(name.encode("idna")) and name.isprintable() and not set("/@? ") & set(name)
    except UnicodeError:
        return False


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS and 0 < int(text) <= _HIGHEST_PORT


def _wrong(url: str) -> MercastError:
    return MercastError(
        f"{url!r} is not the address of a broker: write mercast://host:port, mercasts://host:port for TLS, "
        "or host:port ([address]:port for IPv6)"
    )
