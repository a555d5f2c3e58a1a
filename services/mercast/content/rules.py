"""Rules for types: what the holder of a token may publish and subscribe to, and what edges carry.

A pattern is the name of a type, or its beginning and a `*`. A rule for a type holds for its subtypes too, since their
events are events of that type. Deny wins, also where only a part of what is asked for is denied.
"""

from collections.abc import Iterable
from typing import NamedTuple

ALL = "*"


class Rules(NamedTuple):
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def against_publishing(self, lineage: Iterable[str]) -> str:
        """Why not to publish a type, given with its ancestors; empty if it is allowed."""
        return self._denied(lineage) or self._not_allowed(lineage)

    def against_subscribing(self, lineage: Iterable[str] | None, below: Iterable[str]) -> str:
        """Why not to subscribe to a type, given with its ancestors and its subtypes; None is any type."""
        if lineage is None:
            if self.deny:
                return f"a subscription to any type would bring {_listed(self.deny)}, which is denied"
            return "" if ALL in self.allow else f"a subscription to any type needs {ALL!r} among what is allowed"
        if why := self._denied(lineage):
            return why
        for subtype in below:
            if found := _first(self.deny, subtype):
                return f"it would bring its subtype {subtype}, which is denied by {found!r}"
        return self._not_allowed(lineage)

    def _denied(self, lineage: Iterable[str]) -> str:
        for name in lineage:
            if found := _first(self.deny, name):
                return f"denied by {found!r}"
        return ""

    def _not_allowed(self, lineage: Iterable[str]) -> str:
        if any(_first(self.allow, name) for name in lineage):
            return ""
        return f"allowed is only {_listed(self.allow)}" if self.allow else "nothing is allowed"


EVERYTHING = Rules((ALL,))


def check_pattern(pattern: object) -> str:
    """ValueError says what would be right."""
    if not isinstance(pattern, str) or not pattern or ALL in pattern[:-1]:
        raise ValueError(f"{pattern!r} is not a pattern: write a type such as stock.quote, stock.* or {ALL}")
    return pattern


def matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith(ALL) else name == pattern


def _first(patterns: tuple[str, ...], name: str) -> str | None:
    return next((pattern for pattern in patterns if matches(pattern, name)), None)


def _listed(patterns: tuple[str, ...]) -> str:
    return ", ".join(patterns)
