"""What is said of bad content: what was wrong, where, and what would be right."""

from reprlib import Repr
from typing import Any, Self

_QUOTED = 80

_short = Repr()
_short.maxstring = _short.maxlong = _short.maxother = _QUOTED

quoted = _short.repr
"""As much of what somebody has sent as an error needs to quote: it may be large, and errors are kept and sent back."""


class ContentError(ValueError):
    """An event, type, filter or advertisement that is refused. Nothing else changes when one is raised."""


class FilterError(ContentError):
    """A filter text that is refused, with the place (line and column count from 1)."""

    def __init__(self, line: int, column: int, found: str, expected: str, hint: str = "", source: str = "") -> None:
        self.line = line
        self.column = column
        self.found = found
        self.expected = expected
        self.hint = hint
        self.source = source
        super().__init__(self._message())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.line, self.column, self.found, self.expected, self.hint, self.source)

    @classmethod
    def at(cls, text: str, offset: int, found: str, expected: str, hint: str = "") -> Self:
        line = text.count("\n", 0, offset) + 1
        start = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        source = text[start : end if end >= 0 else len(text)]
        return cls(line, offset - start + 1, found, expected, hint, source)

    def _message(self) -> str:
        said = f"line {self.line}, column {self.column}: found {self.found}, expected {self.expected}"
        if self.hint:
            said += f"; {self.hint}"
        if self.source.strip():
            said += "\n" + _excerpt(self.source, self.column)
        return said


_EXCERPT = 100


def _excerpt(source: str, column: int) -> str:
    """The line with a caret under the place; of a very long line, the part around it."""
    start = max(0, column - 1 - _EXCERPT // 2)
    part = source[start : start + _EXCERPT]
    left = "…" if start else ""
    right = "…" if start + _EXCERPT < len(source) else ""
    caret = " " * (column - 1 - start + len(left)) + "^"
    return f"  {left}{part}{right}\n  {caret}"
