"""What a configuration must have before a broker listens beyond its own machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mercast.broker.addresses import parse_address


class Secured(Protocol):
    """The keys that matter here."""

    listen: str
    peer_listen: str
    admin_listen: str
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    peer_cert: Path | None
    peer_key: Path | None
    peer_ca: Path | None
    tokens: Path | None
    admin_cert: Path | None
    admin_key: Path | None
    admin_token: str
    insecure: bool


_TOGETHER = (("tls_cert", "tls_key"), ("peer_cert", "peer_key", "peer_ca"), ("admin_cert", "admin_key"))


def exposed(config: Secured) -> Iterator[tuple[str, str]]:
    """Mistakes: the key, and what is wrong with it."""
    for keys in _TOGETHER:
        lacking = [key for key in keys if getattr(config, key) is None]
        if 0 < len(lacking) < len(keys):
            yield lacking[0], f"it is not given, but goes together with {' and '.join(set_of(keys, lacking))}"
    if config.tls_client_ca is not None and config.tls_cert is None:
        yield "tls_client_ca", "clients have no certificates without TLS: give tls_cert and tls_key too"
    if not config.insecure:
        for key, what in unprotected(config).items():
            address = getattr(config, key)
            if address and not parse_address(address).is_loopback:
                yield key, f"{address} can be reached by others, and {what}; or listen at 127.0.0.1, or use --insecure"


def unprotected(config: Secured) -> dict[str, str]:
    """Addresses that are for this machine only, by key: what they lack, and what to do."""
    lack = {}
    if config.tls_cert is None and config.tokens is None:
        lack["listen"] = "clients need neither token nor TLS: give tokens (mercast token) or tls_cert (mercast cert)"
    if config.peer_cert is None:
        lack["peer_listen"] = "brokers prove nothing to each other: give peer_cert, peer_key and peer_ca (mercast cert)"
    if not config.admin_token:
        lack["admin_listen"] = "anybody may read what is there: give admin_token"
    return lack


def half_protected(config: Secured) -> Iterator[tuple[str, str]]:
    """Of what is allowed, what an operator should know of, by key."""
    if not parse_address(config.listen).is_loopback:
        if config.tokens is not None and config.tls_cert is None:
            yield "listen", "tokens travel without TLS: whoever can listen to the network can use them"
        if config.tls_cert is not None and config.tokens is None and config.tls_client_ca is None:
            yield "listen", "TLS without tokens: everybody who gets to this port may publish and subscribe"
    afar = config.admin_listen and not parse_address(config.admin_listen).is_loopback
    if afar and config.admin_token and config.admin_cert is None:
        yield "admin_listen", "admin_token travels without TLS: give admin_cert and admin_key (mercast cert)"


def set_of(keys: tuple[str, ...], lacking: list[str]) -> list[str]:
    return [key for key in keys if key not in lacking]
