"""What can go wrong at a client: one tree."""
# ruff: noqa: N818 - names that say what has happened


class MercastError(Exception):
    """All that this client raises."""


class Refused(MercastError):
    """The broker will not do this, for the reason given; nothing else has changed."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code
        """Why a broker refuses the whole connection, in a word; empty if it was only one request."""


class ConnectionLost(MercastError, ConnectionError):
    """There is no connection to a broker; the client goes on trying to get one."""


class NoBroker(ConnectionLost):
    """No broker answers at any of the addresses."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"no broker answers at {where}: {why}")
        self.where, self.why = where, why


class Unacknowledged(ConnectionLost):
    """The connection was lost before the broker acknowledged this publish: the event may have been delivered or not.
    It is not sent again, since nothing may be delivered twice."""


class NotAnswered(MercastError, TimeoutError):
    """The broker did not answer in time. Of a publish, too, this means that it may have been delivered or not."""


class NotSettled(MercastError):
    """Some brokers did not acknowledge a subscription or advertisement in time; it was taken back."""

    def __init__(self, what: str, missing: tuple[int, ...]) -> None:
        names = ", ".join(map(str, missing))
        super().__init__(
            f"{what} is not settled: no word from broker {names}; try again, or pass settled=False to go on without"
        )
        self.missing = missing


class SubscriberTooSlow(MercastError):
    """Events came faster than they were taken, and this subscription's buffer is full: it has ended."""


class Closed(MercastError):
    """The client was closed; connect anew."""
