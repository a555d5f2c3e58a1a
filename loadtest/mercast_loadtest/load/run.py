"""What the users of one process share: the plan, the rate they publish at, and what they note."""

from collections.abc import Callable, Sequence
from time import time_ns

from mercast_loadtest.load.facts import Facts
from mercast_loadtest.load.plan import Plan

_SUBSCRIBERS = 1 << 20
"""Numbers of users that are subscribers begin here."""


class Run:
    def __init__(
        self,
        plan: Plan,
        tag: int,
        brokers: Sequence[str],
        publishers: int,
        number: Callable[[str], int],
        process: int,
    ) -> None:
        self.plan, self.tag = plan, tag
        self.facts = Facts(process)
        self.number = number
        """Of a new user among those of its kind, in all processes."""
        self.rate = 0.0
        """Events a second, by all publishers of all processes."""
        self.churns = False
        self.patience = 0.0
        self._publishers, self._brokers = publishers, list(brokers)

    @property
    def share(self) -> float:
        """Events a second for one publisher."""
        return self.rate / self._publishers

    def brokers(self, number: int) -> list[str]:
        """In the order in which that user tries them: so users are spread over them."""
        at = number % len(self._brokers)
        return self._brokers[at:] + self._brokers[:at]

    def publisher(self, number: int) -> "Noting":
        return Noting(self.facts, number)

    def subscriber(self, number: int) -> "Noting":
        return Noting(self.facts, _SUBSCRIBERS + number)


class Noting:
    """What becomes of a user's connection."""

    def __init__(self, facts: Facts, user: int) -> None:
        self._facts, self._user = facts, user
        self._is_lost = False

    def ready(self) -> None:
        self._note("ready")

    def lost(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._note("lost")

    def back(self) -> None:
        if self._is_lost:
            self._is_lost = False
            self._note("back")

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def _note(self, what: str) -> None:
        self._facts.change(what, self._user, time_ns())
