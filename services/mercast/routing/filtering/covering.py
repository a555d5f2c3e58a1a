"""Covering: of many interests, only those that no other covers are passed on (Siena; section 4.4 of the Hermes paper).

One interest *hides* another if it covers it; of two that cover each other, the one with the lesser key hides the other.
What nothing hides is passed on. That is a function of the interests alone, whatever the order in which they came and
went, because to cover is transitive.

Hidden interests hang in trees, each under one that hides it, and the roots are passed on. So a new interest is compared
with the roots only, and when a root goes, only what hung right under it is looked at. Should `covers` say no too often
in one place and not in another, the choice may depend on history, but every hidden interest is still under a root.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar


class Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=Ordered)
T = TypeVar("T")


class Covering(Generic[K, T]):
    def __init__(self, covers: Callable[[T, T], bool]) -> None:
        self._covers = covers
        self.interests: dict[K, T] = {}
        """All there are."""
        self.passed: dict[K, T] = {}
        """Those passed on."""
        self._over: dict[K, K] = {}
        """What hides each of the others."""
        self._under: dict[K, set[K]] = {}

    def update(self, changes: Mapping[K, T | None]) -> dict[K, T | None]:
        """Interests come, change or go (None); what comes, changes or goes among those passed on, in this order."""
        changes = {key: one for key, one in changes.items() if self.interests.get(key) != one}
        if not changes:
            return {}
        before = dict(self.passed)
        for key, one in changes.items():
            if key in self.interests:
                self._remove(key)
            if one is not None:
                self.interests[key] = one
                self._place(key)
        come: dict[K, T | None] = {key: one for key, one in self.passed.items() if before.get(key) is not one}
        return come | {key: None for key in before if key not in self.passed}

    def root(self, key: K) -> K:
        """The interest that is passed on and stands for this one, itself perhaps."""
        while key in self._over:
            key = self._over[key]
        return key

    def _place(self, key: K) -> None:
        """Hang an interest under a root that hides it; else it is a root, and those that it hides hang under it."""
        newest_first = reversed(self.passed)  # when a root goes, its likes gather under the first that takes its place
        over = next((root for root in newest_first if self._hides(root, key)), None)
        if over is not None:
            self._hang(key, over)
            return
        for root in [root for root in self.passed if self._hides(key, root)]:
            del self.passed[root]
            self._hang(root, key)
        self.passed[key] = self.interests[key]

    def _remove(self, key: K) -> None:
        del self.interests[key]
        under = sorted(self._under.pop(key, ()))
        over = self._over.pop(key, None)
        if over is not None:
            self._lift(key, over)
        else:
            del self.passed[key]
        for orphan in under:
            del self._over[orphan]
            if over is not None:
                self._hang(orphan, over)
            else:
                self._place(orphan)

    def _hang(self, key: K, over: K) -> None:
        self._over[key] = over
        self._under.setdefault(over, set()).add(key)

    def _lift(self, key: K, over: K) -> None:
        self._under[over].discard(key)
        if not self._under[over]:
            del self._under[over]

    def _hides(self, one: K, other: K) -> bool:
        a, b = self.interests[one], self.interests[other]
        return self._covers(a, b) and (one < other or not self._covers(b, a))

    def validate(self) -> None:
        assert self.passed == {key: self.interests[key] for key in self.interests.keys() - self._over.keys()}
        assert {(key, over) for over, under in self._under.items() for key in under} == set(self._over.items())
        assert all(self._under.values())
        assert all(self.root(key) in self.passed for key in self.interests)
