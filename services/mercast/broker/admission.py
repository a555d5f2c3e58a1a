"""Which clients are let in, by their tokens, and how fast those of one token may publish."""

from typing import TYPE_CHECKING

from mercast.broker.rates import Pace, paces
from mercast.security.guard import Guard
from mercast.security.tokens import Token
from mercast.wire.frames import ProtocolError

if TYPE_CHECKING:
    from mercast.broker.broker import Broker


def guard_for(broker: "Broker", hash: bytes | None) -> Guard | None:
    """What watches over a client whose token has this hash; None if none is needed. ProtocolError: it is not let in."""
    tokens = broker.security.tokens
    if tokens is None:
        return None
    if hash is None:
        raise ProtocolError("a token is needed here: connect with token=…, --token or MERCAST_TOKEN", code="token")
    token = tokens.find(hash)
    if token is None:
        raise ProtocolError("this broker does not know the token, or no longer: ask its operator for one", code="token")
    return Guard(token, lambda: broker.core.declared)


def paces_for(broker: "Broker", token: Token) -> tuple[Pace, ...]:
    """The same for all clients that use the token, as long as its rates are the same."""
    limits = token.publish_events_per_second, token.publish_bytes_per_second
    made = paces(f"token {token.name!r}", *limits)
    known = broker.paces.get(token.hash, ())
    if [one.reason for one in made] != [one.reason for one in known]:
        broker.paces[token.hash] = made
    return broker.paces.get(token.hash, ())


def forget_paces(broker: "Broker") -> None:
    """Of tokens that there are no longer."""
    tokens = broker.security.tokens
    for hash in list(broker.paces):
        if tokens is None or tokens.find(hash) is None:
            del broker.paces[hash]
