"""What has been said lately: whoever is refused comes again and again, and the log need not tell it each time."""

from collections.abc import Callable, Hashable

_AGAIN = 600.0
"""Seconds after which it is told anew, for those who look at the end of a log."""

_MOST = 1_000
"""Things that are remembered: some of them hold words of strangers."""


class Once:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._said: dict[tuple[Hashable, ...], float] = {}
        """When each was said, the oldest first."""

    def first(self, *what: Hashable) -> bool:
        """Whether it has not been said lately; from now on it has."""
        now = self._now()
        if now - self._said.get(what, -_AGAIN) < _AGAIN:
            return False
        self._said.pop(what, None)
        if len(self._said) >= _MOST:
            del self._said[next(iter(self._said))]
        self._said[what] = now
        return True
