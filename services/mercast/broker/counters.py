"""What a broker has done since its start, in plain numbers: adding to one must cost next to nothing."""

from collections import Counter


class Counters:
    __slots__ = (
        "bytes_from_clients",
        "bytes_from_peers",
        "bytes_to_clients",
        "bytes_to_peers",
        "defects",
        "delivered",
        "denied",
        "dropped",
        "forbidden",
        "forwarded",
        "moved",
        "published",
        "received",
        "refused",
        "reloads",
        "slow_clients",
        "slowed",
        "too_fast",
    )

    def __init__(self) -> None:
        self.published = 0
        """Events of local clients that were accepted."""
        self.refused = 0
        """Requests of local clients, publishes among them, that were not."""
        self.received = self.forwarded = self.delivered = 0
        """Events: from neighbours, to neighbours, to clients."""
        self.dropped: Counter[str] = Counter()
        """Events by reason."""
        self.defects = 0
        """Exceptions that should not have been."""
        self.slow_clients = 0
        """Clients that were disconnected because they did not read."""
        self.moved = 0
        """Times that clients were told to go elsewhere because of their age."""
        self.slowed = 0
        """Times that somebody was not read for a while, for it published too fast."""
        self.too_fast: Counter[str] = Counter()
        """Publishes that were refused for that, by whose limit it was."""
        self.denied: Counter[str] = Counter()
        """Connections that were refused or cut off, by the code of the reason."""
        self.forbidden: Counter[str] = Counter()
        """Requests that a client's token does not allow, by what was asked for."""
        self.reloads: Counter[str] = Counter()
        """Times that tokens and certificates were read again, by what came of it."""
        self.bytes_from_clients = self.bytes_to_clients = 0
        self.bytes_from_peers = self.bytes_to_peers = 0
