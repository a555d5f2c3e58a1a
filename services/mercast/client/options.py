"""How to connect, and what both clients do alike."""

import os
import ssl
from collections.abc import Iterable
from typing import Any, NamedTuple

from mercast.client import arguments
from mercast.client.address import Address, addresses
from mercast.client.errors import MercastError, Refused
from mercast.client.event import ToPublish, encode

SETTLE_WITHIN = 30.0
"""Seconds beyond which nobody waits for a broker to say what is settled. It gives up sooner, and names the missing."""

LINGER = 1.0
"""Seconds to stay with a broker that is being left after all is settled elsewhere: events may be on their way there."""

TICK = 1.0
"""Seconds between looks at connections that are silent and subscriptions that are left full."""


class Options(NamedTuple):
    addresses: list[Address]
    token: str | None
    tls: ssl.SSLContext | None
    name: str
    timeout: float

    def tls_for(self, address: Address) -> ssl.SSLContext | None:
        if self.tls is not None:
            return self.tls
        return default_context() if address.tls else None


def default_context() -> ssl.SSLContext:
    """By the CA that MERCAST_CA names, else by those of the system; with the certificate that MERCAST_CERT names."""
    ca, cert = os.environ.get("MERCAST_CA") or None, os.environ.get("MERCAST_CERT") or None
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert, os.environ.get("MERCAST_KEY") or None)
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(filter(None, (ca, cert)))
        raise MercastError(f"certificates cannot be read ({named}): {error.strerror or error}") from None
    return context


def options(
    url: str | Iterable[str] | None,
    token: str | None,
    tls: ssl.SSLContext | bool | None,
    name: str | None,
    timeout: float,
) -> Options:
    context = default_context() if tls is True else tls or None
    if context is not None and not hasattr(context, "wrap_socket"):
        raise MercastError(f"tls is True or an ssl.SSLContext, not {type(tls).__name__}")
    return Options(
        addresses(url),
        arguments.text_or_none(token or os.environ.get("MERCAST_TOKEN") or None, "a token"),
        context,
        arguments.text(name or "client", "the name of a client"),
        arguments.timeout(timeout),
    )


def encode_all(events: Iterable[ToPublish | tuple[Any, ...]]) -> list[bytes | MercastError]:
    """Each event as bytes, or why it cannot be sent."""
    encoded: list[bytes | MercastError] = []
    for event in events:
        try:
            encoded.append(encode(event if isinstance(event, ToPublish) else _to_publish(event)))
        except Refused as refused:
            encoded.append(refused)
    return encoded


def _to_publish(event: Any) -> ToPublish:
    if not isinstance(event, tuple | list) or not 0 < len(event) <= len(ToPublish._fields):
        raise Refused(f"an event is ({', '.join(ToPublish._fields)}) or the first of these, not {event!r:.80}")
    return ToPublish(*event)


def types_of(events: list[Any], contents: list[bytes | MercastError]) -> dict[str, None]:
    """The types of those that can be sent, in order."""
    return {event[0]: None for event, content in zip(events, contents, strict=True) if isinstance(content, bytes)}
