"""mercast: content-based publish/subscribe for Kubernetes.

    async with mercast.connect("mercast://127.0.0.1:7470") as c:
        async for event in await c.subscribe("stock.quote", "price < 100"):
            ...

The client is imported when it is first asked for: `import mercast` alone costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercast import blocking as blocking
    from mercast.client.aio import Advertisement, Client, Subscription, Trace, connect
    from mercast.client.errors import (
        Closed,
        ConnectionLost,
        MercastError,
        NoBroker,
        NotAnswered,
        NotSettled,
        Refused,
        SubscriberTooSlow,
        Unacknowledged,
    )
    from mercast.client.event import Event, Hop, Receipt, ToPublish

__version__ = "0.1.0"

__all__ = [
    "Advertisement",
    "Client",
    "Closed",
    "ConnectionLost",
    "Event",
    "Hop",
    "MercastError",
    "NoBroker",
    "NotAnswered",
    "NotSettled",
    "Receipt",
    "Refused",
    "SubscriberTooSlow",
    "Subscription",
    "ToPublish",
    "Trace",
    "Unacknowledged",
    "connect",
]

_HOMES = {
    **dict.fromkeys(("Event", "Hop", "Receipt", "ToPublish"), "mercast.client.event"),
    **dict.fromkeys(("Advertisement", "Client", "Subscription", "Trace", "connect"), "mercast.client.aio"),
}


def __getattr__(name: str) -> Any:
    if name == "blocking":
        return import_module("mercast.blocking")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOMES.get(name, "mercast.client.errors")), name)
    globals()[name] = found
    return found
