"""Which clients are let in, by their tokens."""

from typing import TYPE_CHECKING

from mercast.security.guard import Guard
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
