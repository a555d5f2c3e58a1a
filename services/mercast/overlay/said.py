"""What one peer has told us, and how much that is; and how much all have."""

from typing import Any, TypeAlias

from mercast.content.interest import Interest
from mercast.content.types import Declaration

_Key: TypeAlias = tuple[Any, ...]

ITEM_BYTES = 512
"""What an item takes in memory beyond its filter or its attributes, about."""


class Total:
    """What all peers have told us, measured as each is."""

    def __init__(self) -> None:
        self.items = self.bytes = 0


class Said(dict[_Key, Any]):
    """Changed by `put` and `drop` only.

    A peer that starts anew repeats everything; what it did not repeat by the end is no longer so.
    """

    def __init__(self, total: Total | None = None) -> None:
        super().__init__()
        self._total = total or Total()
        self._counted = 0, 0
        """Its own share of that."""
        self._bytes = 0
        self._old: set[_Key] | None = None
        """What the peer may still repeat; None if it is not about to."""
        self._old_bytes = 0
        self.is_complete = True
        """Whether it has come to the end of what it says by itself."""

    @property
    def size(self) -> tuple[int, int]:
        """Items, and their bytes. Without what may still be repeated: else there would be no room for what is new."""
        return len(self) - len(self._old or ()), self._bytes - self._old_bytes

    def has_room(self, items: int, bytes: int) -> bool:
        """Whether more may be kept. A peer that starts anew may have as much again, and no more, however often."""
        mine, size = self.size
        return mine < items and size < bytes and len(self) < 2 * items and self._bytes < 2 * bytes

    @property
    def is_whole(self) -> bool:
        return self._old is None

    def put(self, key: _Key, value: Any) -> None:
        self.drop(key)
        self[key] = value
        self._bytes += size_of(value)
        self._count(self.size)

    def drop(self, key: _Key) -> None:
        if key in self:
            self.repeat(key)
            self._bytes -= size_of(self.pop(key))
            self._count(self.size)

    def repeat(self, key: _Key) -> None:
        """The peer has spoken of this again."""
        if self._old and key in self._old:
            self._old.discard(key)
            self._old_bytes -= size_of(self[key])
            self._count(self.size)

    def begin_anew(self) -> None:
        self._old, self._old_bytes, self.is_complete = set(self), self._bytes, False
        self._count(self.size)

    def complete(self) -> None:
        self.is_complete = True

    def end(self) -> list[_Key]:
        """The peer has repeated everything. What it has not, in order: to be dropped."""
        old, self._old, self._old_bytes = self._old or set(), None, 0
        self._count(self.size)
        return sorted(old, key=_in_order)

    def part(self) -> None:
        """The peer is gone, with all of this."""
        self._count((0, 0))

    def _count(self, size: tuple[int, int]) -> None:
        self._total.items += size[0] - self._counted[0]
        self._total.bytes += size[1] - self._counted[1]
        self._counted = size


def size_of(value: Any) -> int:
    """What an advertisement, subscription or declaration takes in memory, about."""
    match value:
        case Interest():
            return ITEM_BYTES + value.filter.nbytes
        case Declaration():
            return ITEM_BYTES * (1 + len(value.attributes))
    return ITEM_BYTES


def _in_order(key: _Key) -> tuple[str, _Key]:
    """Keys of different sorts do not compare."""
    return type(key).__name__, key
