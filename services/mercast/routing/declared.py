"""The declarations of types, which all brokers come to share.

A declaration accepted at a broker becomes a statement, numbered so that it comes after all statements known there.
Statements are never taken back and flow from neighbour to neighbour. The tree of types is what follows when they are
declared in their order; one that contradicts those before it counts for nothing. So brokers with the same statements
have the same types, and of two that contradict each other because they were made at the same time, one wins everywhere.
"""

from contextlib import suppress

from mercast.content.errors import ContentError
from mercast.content.types import Declaration, Types
from mercast.limits import DEFAULTS, Limits
from mercast.protocol.messages import Statement


class Declared:
    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.types = Types(limits)
        self.statements: dict[Statement, Declaration] = {}
        self._limits = limits
        self._last = Statement(0, 0, 0)

    def declare(self, broker: int, incarnation: int, declaration: Declaration) -> Statement | None:
        """A new statement, or None if it is declared just so already; ContentError if it contradicts what is."""
        if self.types.declared.get(declaration.name) == declaration:
            return None
        if len(self.statements) >= self._limits.declarations:
            raise ContentError(f"there are {self._limits.declarations} declarations of types, which is the limit")
        statement = Statement(self._last.number + 1, broker, incarnation)
        self.types.declare(declaration)
        self._keep(statement, declaration)
        return statement

    def learn(self, statement: Statement, declaration: Declaration) -> bool:
        """Take in another broker's statement; whether it is news."""
        if statement in self.statements:
            return False
        comes_last = statement > self._last
        self._keep(statement, declaration)
        if not comes_last:
            self.types = Types(self._limits)
        for known in (statement,) if comes_last else sorted(self.statements):
            self._declare(self.statements[known])
        return True

    def _keep(self, statement: Statement, declaration: Declaration) -> None:
        self.statements[statement] = declaration
        self._last = max(self._last, statement)

    def _declare(self, declaration: Declaration) -> None:
        with suppress(ContentError):  # it contradicts an earlier one, here as everywhere
            self.types.declare(declaration)
