"""Network addresses as people write them: host:port, with IPv6 in brackets."""

import re
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

CLIENT_PORT, PEER_PORT, ADMIN_PORT = 7470, 7471, 7472

_MOST_PORT = 65_535
_FORM = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[^:]*))?")
_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?")
"""A host name or IPv4 address. A mere number is neither: somebody forgot the host."""


class Address(NamedTuple):
    host: str
    """Without brackets."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it means all addresses of a machine: good to listen on, of no use to those who want to connect."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it; a name other than localhost may mean anything."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str, default_port: int | None = None) -> Address:
    """ValueError says what would be right."""
    example = Address(text if _is_ipv6(text) else "127.0.0.1", default_port or CLIENT_PORT)
    try:
        return Address(*_parts(text, default_port))
    except ValueError as error:
        raise ValueError(f"{text!r} is not an address: {error}; write host:port, such as {example}") from None


def _parts(text: str, default_port: int | None) -> tuple[str, int]:
    if "://" in text:
        raise ValueError("it has a scheme")
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError("IPv6 goes in brackets" if _is_ipv6(text) else "it has too many colons or brackets")
    return _host(form["v6"], form["name"]), _port(form["port"], default_port)


def _host(v6: str | None, name: str | None) -> str:
    if v6 is not None:
        if not _is_ipv6(v6):
            raise ValueError("what is in brackets is no IPv6 address")
        return v6
    if not name or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no host" if name else "it names no host")
    return name


def _port(text: str | None, default: int | None) -> int:
    if text is None:
        if default is None:
            raise ValueError("it names no port")
        return default
    if not (text.isascii() and text.isdigit()) or int(text) > _MOST_PORT:
        raise ValueError(f"the port is {text!r}, expected a number up to {_MOST_PORT}")
    return int(text)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
