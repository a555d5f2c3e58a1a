"""A filter: what a subscriber asks of an event's attributes."""

from functools import cached_property

from mercast.content.boxes import Boxes, covers, intersect, normalise
from mercast.content.evaluate import evaluate
from mercast.content.expression import TRUE, Expression, to_text
from mercast.content.parser import parse
from mercast.content.values import Attributes
from mercast.limits import DEFAULTS, Limits

_GROWTH = 8
"""Normalising may make a text longer (1e15 becomes 1000000000000000.0), but never so many times. A filter that might
become longer than a filter may be keeps its source."""


_CHARACTER_BYTES = 16
"""What a filter takes for each character of its text besides its boxes, about: it is kept as a tree."""


class Filter:
    """A condition in the language of SQL's WHERE (docs/filters.md). Immutable; equal if written the same way."""

    def __init__(self, expression: Expression = TRUE, limits: Limits = DEFAULTS, source: str = "") -> None:
        self.expression = expression
        self._most_boxes = limits.filter_boxes
        self._source = source

    @classmethod
    def parse(cls, text: str, limits: Limits = DEFAULTS) -> "Filter":
        """The filter of a text; FilterError says where it is wrong and what would be right."""
        expression = parse(text, limits)
        return cls(expression, limits, text if len(text) > limits.filter_length // _GROWTH else "")

    def matches(self, attributes: Attributes) -> bool:
        """Whether the filter is TRUE of these attributes (not false, not unknown)."""
        return self.expression is TRUE or evaluate(self.expression, attributes) is True

    @cached_property
    def boxes(self) -> Boxes:
        return normalise(self.expression, self._most_boxes)

    @cached_property
    def nbytes(self) -> int:
        """What it takes in memory, about, that of a matcher included."""
        return _CHARACTER_BYTES * len(str(self)) + self.boxes.nbytes

    def covers(self, other: "Filter") -> bool:
        """True only if every event that matches the other matches this one too. May say no too often."""
        if self == other:
            return True
        if not self.boxes.exact:
            return False
        return covers(self.boxes, other.boxes)

    def intersects(self, other: "Filter") -> bool:
        """False only if no event can match both. May say yes too often."""
        return intersect(self.boxes, other.boxes)

    def __str__(self) -> str:
        """Text that parses to the same filter: normalised, but a very long one is given back as it was written."""
        return self._source or self._text

    def __repr__(self) -> str:
        return f"Filter.parse({str(self)!r})"

    @cached_property
    def _text(self) -> str:
        """What filters are compared by. Not the tree: to Python TRUE equals 1, and to a filter it does not."""
        return to_text(self.expression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
