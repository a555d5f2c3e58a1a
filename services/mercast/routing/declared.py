"""The declarations of types, which all brokers come to share.

A declaration accepted at a broker becomes a statement, numbered so that it comes after all statements known there.
Statements are never taken back and flow from neighbour to neighbour. The tree of types is what follows when they are
declared in their order; one that contradicts those before it counts for nothing. So brokers with the same statements
have the same types, and of two that contradict each other because they were made at the same time, one wins everywhere.
"""

from dataclasses import replace

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
        self._refused = False
        """Whether there is a statement that counts for nothing."""

    def declare(self, broker: int, incarnation: int, declaration: Declaration) -> Statement:
        """A new statement, or the one by which it is declared just so already; ContentError if it contradicts it."""
        if self.types.declared.get(declaration.name) == declaration:
            return max(one for one, known in self.statements.items() if known == declaration)
        if max(len(self.statements), self._last.number) >= self._limits.declarations:
            raise ContentError(f"there are {self._limits.declarations} declarations of types, which is the limit")
        statement = Statement(self._last.number + 1, broker, incarnation)
        self.types.declare(declaration)
        self._keep(statement, declaration)
        return statement

    def learn(self, statement: Statement, declaration: Declaration) -> bool:
        """Take in another broker's statement; whether it is news. More than all brokers keep, nobody has to keep."""
        most = self._limits.declarations
        if statement in self.statements or len(self.statements) >= most or statement.number > most:
            return False
        in_order = statement > self._last
        # Where nothing contradicts anything, the order makes no difference but among declarations of one type.
        apart = not self._refused and declaration.name not in self.types.declared
        self._keep(statement, declaration)
        if not (in_order or apart) or not self._declare(declaration):
            self._declare_anew()
        return True

    def _declare_anew(self) -> None:
        self.types, self._refused = Types(self._limits), False
        for statement in sorted(self.statements):
            self._refused = not self._declare(self.statements[statement]) or self._refused

    def _keep(self, statement: Statement, declaration: Declaration) -> None:
        self.statements[statement] = replace(declaration, attributes=dict(declaration.attributes))
        self._last = max(self._last, statement)

    def _declare(self, declaration: Declaration) -> bool:
        """Whether it is declared now; else it contradicts an earlier one, here as everywhere."""
        try:
            self.types.declare(declaration)
        except ContentError:
            return False
        return True
