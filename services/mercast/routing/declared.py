"""The declarations of types, which all brokers come to share.

A declaration accepted at a broker becomes a statement, numbered so that it comes after all statements known there. Of
statements that declare just the same the first is kept, so that brokers which declare their types whenever they start
add nothing. Statements flow from neighbour to neighbour. The tree of types is what follows when they are declared in
their order; one that contradicts those before it counts for nothing. So brokers with the same statements have the same
types, and of two that contradict each other because they were made at the same time, one wins everywhere.
"""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from mercast.content.errors import ContentError
from mercast.content.types import Declaration, Types
from mercast.limits import DEFAULTS, Limits
from mercast.protocol.messages import Statement


class News(NamedTuple):
    """A statement was taken in, in the place of a later one that said the same, if there was one."""

    instead_of: Statement | None


class Declared:
    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.types = Types(limits)
        self.statements: dict[Statement, Declaration] = {}
        self._places: dict[str, Statement] = {}
        """The statement of each declaration, by how that is written."""
        self._of_type: Counter[str] = Counter()
        """How many statements there are about each type."""
        self._limits = limits
        self.changes = 0
        """Statements that came, in all: types may be others than before when it grows."""
        self._last = Statement(0, 0, 0)

    def declare(self, broker: int, incarnation: int, declaration: Declaration) -> Statement:
        """A new statement, or the one by which it is declared just so already; ContentError if it contradicts it."""
        if self.types.declared.get(declaration.name) == declaration:
            return self._places[_written(declaration)]
        if max(len(self.statements), self._last.number) >= self._limits.declarations:
            raise ContentError(f"there are {self._limits.declarations} declarations of types, which is the limit")
        statement = Statement(self._last.number + 1, broker, incarnation)
        self.types.declare(declaration)
        self._keep(statement, declaration)
        return statement

    def learn(self, statement: Statement, declaration: Declaration) -> News | None:
        """Take in another broker's statement; None if it is no news. More than all brokers keep, nobody has to keep."""
        most, known = self._limits.declarations, self._places.get(_written(declaration))
        if statement.number > most or (known is not None and known <= statement):
            return None
        if known is not None:
            del self.statements[known]
            self._of_type[declaration.name] -= 1
        elif len(self.statements) >= most:
            return None
        in_order, before = statement > self._last, self.types.declared.get(declaration.name)
        self._keep(statement, declaration)
        # The order makes no difference but among declarations of one type, and between two that contradict each other.
        alone = self._of_type[declaration.name] == 1
        if in_order or before is None:
            right = self._declare(declaration) or in_order
        else:
            right = alone and before == declaration
        if not right:
            self._declare_anew()
        return News(known)

    def _declare_anew(self) -> None:
        self.types = Types(self._limits)
        for statement in sorted(self.statements):
            self._declare(self.statements[statement])

    def _keep(self, statement: Statement, declaration: Declaration) -> None:
        self.statements[statement] = replace(declaration, attributes=dict(declaration.attributes))
        self._places[_written(declaration)] = statement
        self._of_type[declaration.name] += 1
        self._last = max(self._last, statement)
        self.changes += 1

    def _declare(self, declaration: Declaration) -> bool:
        """Whether it is declared now; else it contradicts an earlier one, here as everywhere."""
        try:
            self.types.declare(declaration)
        except ContentError:
            return False
        return True


def _written(declaration: Declaration) -> str:
    """The same for those that say the same."""
    name, parent, attributes, is_open = declaration.name, declaration.parent, declaration.attributes, declaration.open
    return repr((name, parent, sorted(attributes.items()), is_open))
