"""No event twice: while a client changes brokers, both may have a copy of an event for it."""

from typing import Generic, TypeVar

from mercast.content.event import EventId

_REMEMBERED = 16_384
"""Events remembered at least; twice as many at most."""

T = TypeVar("T")


class Handed(Generic[T]):
    """To whom the last events were handed."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._new: dict[EventId, tuple[T, ...]] = {}
        self._old: dict[EventId, tuple[T, ...]] = {}

    def hand(self, id: EventId, to: tuple[T, ...]) -> tuple[T, ...]:
        """To whom an event is still to be handed: to those that it has not been handed to before."""
        before = self._new.get(id) or self._old.get(id)
        if before is None:
            self._new[id] = to
        else:
            to = tuple(one for one in to if one not in before)
            self._new[id] = before + to
        if len(self._new) >= self._remembered:
            self._old, self._new = self._new, {}
        return to
