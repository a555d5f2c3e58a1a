"""Filters as unions of boxes, and what is decided over boxes: covering and intersection.

A box maps attribute names to the states it allows; an attribute that is not named may be anything. The states of one
attribute are: missing, a bool, a point on the line of numbers, a point on the line of strings that also passes some
LIKE patterns (a prefix is an interval of strings; only other patterns remain as patterns).

Only TRUE matches, and NOT can be pushed to the leaves, where NOT of a comparison is the opposite comparison inside
the same kind. So a filter is the union of the boxes of its disjunctive form. That form may explode: past a bound the
boxes are widened to one that contains them all, and the union is marked as not exact.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import TypeAlias

from mercast.content.expression import And, Between, Compare, Expression, In, IsNull, Leaf, Like, Not, Or
from mercast.content.like import LikePattern, compile_like
from mercast.content.line import AFTER, BEFORE, EMPTY, FULL, Line, above, below, between, point, points
from mercast.content.values import Kind, Value, kind_of

NO_BOOL: frozenset[bool] = frozenset()
ANY_BOOL = frozenset((False, True))


@dataclass(frozen=True, slots=True)
class States:
    """What one attribute may be."""

    missing: bool = False
    bools: frozenset[bool] = NO_BOOL
    numbers: Line = EMPTY
    strings: Line = EMPTY
    patterns: frozenset[tuple[LikePattern, bool]] = frozenset()
    """Patterns that a string must match (True) or must not match (False)."""

    def __and__(self, other: "States") -> "States":
        return States(
            self.missing and other.missing,
            self.bools & other.bools,
            self.numbers & other.numbers,
            self.strings & other.strings,
            self.patterns | other.patterns,
        ).simplified()

    def __or__(self, other: "States") -> "States":
        """The union; wider than it (patterns forgotten) where the two ask for different patterns."""
        return States(
            self.missing or other.missing,
            self.bools | other.bools,
            self.numbers | other.numbers,
            self.strings | other.strings,
            self._patterns_of_union(other),
        )

    def unites_exactly(self, other: "States") -> bool:
        return self.patterns == other.patterns or not (self.patterns or other.patterns)

    def _patterns_of_union(self, other: "States") -> frozenset[tuple[LikePattern, bool]]:
        return self.patterns & other.patterns

    def __le__(self, other: "States") -> bool:
        """Whether all that this allows the other allows; may say no too often."""
        return (
            self.missing <= other.missing
            and self.bools <= other.bools
            and self.numbers <= other.numbers
            and self.strings <= other.strings
            and (other.patterns <= self.patterns or self._all_pass(other.patterns))
        )

    def _all_pass(self, patterns: Iterable[tuple[LikePattern, bool]]) -> bool:
        values = self.strings.points()
        return values is not None and all(_passes(value, patterns) for value in values)

    def __contains__(self, value: Value | None) -> bool:
        if value is None:
            return self.missing
        match kind_of(value):
            case Kind.BOOL:
                return value in self.bools
            case Kind.NUMBER:
                return value in self.numbers
        return value in self.strings and _passes(str(value), self.patterns)

    def simplified(self) -> "States":
        """Where only some strings are left, keep those that pass the patterns and forget the patterns."""
        values = self.strings.points() if self.patterns else None
        if values is None:
            return self
        passing = points(value for value in values if _passes(value, self.patterns))
        return replace(self, strings=passing, patterns=frozenset())


def _passes(text: str, patterns: Iterable[tuple[LikePattern, bool]]) -> bool:
    return all(pattern.matches(text) is wanted for pattern, wanted in patterns)


NOTHING = States()
MISSING = States(missing=True)
PRESENT = States(bools=ANY_BOOL, numbers=FULL, strings=FULL)
ANYTHING = replace(PRESENT, missing=True)

Box: TypeAlias = dict[str, States]


@dataclass(frozen=True, slots=True)
class Boxes:
    """A union of boxes. Not exact: the filter may match less than the union, never more."""

    union: tuple[Box, ...]
    exact: bool = True


def box_contains(box: Box, attributes: dict[str, Value]) -> bool:
    return all(attributes.get(name) in states for name, states in box.items())


def box_covers(outer: Box, inner: Box) -> bool:
    return all(inner.get(name, ANYTHING) <= states for name, states in outer.items())


def intersection(a: Box, b: Box) -> Box | None:
    """The box of what lies in both, or None if surely nothing does."""
    both = a | b
    for name in a.keys() & b.keys():
        common = both[name] = a[name] & b[name]
        if common == NOTHING:
            return None
    return both


# -- normalisation ---------------------------------------------------------------------------------------------------


def normalise(expression: Expression, most: int) -> Boxes:
    """The boxes of a filter, at most `most` of them."""
    return _boxes(expression, True, most)


def _boxes(expression: Expression, wanted: bool, most: int) -> Boxes:
    """Where the expression is TRUE (wanted) or FALSE (not wanted)."""
    match expression:
        case Not(term):
            return _boxes(term, not wanted, most)
        case And(terms) | Or(terms):
            combine = _all_of if isinstance(expression, And) is wanted else _any_of
            return combine([_boxes(term, wanted, most) for term in terms], most)
    states = _states(expression, wanted)
    return Boxes(()) if states == NOTHING else Boxes(({expression.name: states},))


def _all_of(terms: list[Boxes], most: int) -> Boxes:
    """Terms of one box, the usual case, are gathered first, without making a box per step."""
    gathered: Box = {}
    for term in terms:
        if len(term.union) == 1:
            for name, states in term.union[0].items():
                gathered[name] = gathered[name] & states if name in gathered else states
    if NOTHING in gathered.values():
        return Boxes(())
    single = Boxes((gathered,), all(term.exact for term in terms))
    return reduce(lambda a, b: _both(a, b, most), (term for term in terms if len(term.union) != 1), single)


def _both(a: Boxes, b: Boxes, most: int) -> Boxes:
    if len(a.union) * len(b.union) > most:
        a, b = _widened(a), _widened(b)
    boxes = [box for box in (intersection(x, y) for x, y in product(a.union, b.union)) if box is not None]
    return Boxes(tuple(boxes), a.exact and b.exact)


def _any_of(terms: list[Boxes], most: int) -> Boxes:
    exact = all(term.exact for term in terms)
    boxes = _united([box for term in terms for box in term.union])
    union = Boxes(tuple(boxes), exact)
    return union if len(boxes) <= most else _widened(union)


def _united(boxes: list[Box]) -> list[Box]:
    """Boxes about one and the same attribute become one: `a = 1 OR a = 2` is a single box."""
    united: list[Box] = []
    place: dict[str, int] = {}
    for box in boxes:
        if not box:
            return [{}]
        name = next(iter(box)) if len(box) == 1 else None
        at = place.get(name) if name is not None else None
        if name is not None and at is not None and united[at][name].unites_exactly(box[name]):
            united[at] = {name: united[at][name] | box[name]}
        else:
            if name is not None:
                place[name] = len(united)
            united.append(box)
    return united


def _widened(boxes: Boxes) -> Boxes:
    """The smallest box around all of them."""
    if len(boxes.union) <= 1:
        return boxes
    names = set.intersection(*(set(box) for box in boxes.union))
    hull = {name: reduce(States.__or__, (box[name] for box in boxes.union)) for name in sorted(names)}
    return Boxes((hull,), exact=False)


# -- leaves ----------------------------------------------------------------------------------------------------------


def _states(leaf: Leaf, wanted: bool) -> States:
    match leaf:
        case IsNull():
            return MISSING if wanted else PRESENT
        case Compare(_, operator, value):
            return _of_kind(kind_of(value), _LINES[operator](value), wanted)
        case In(_, values):
            return _in(values, wanted)
        case Between(_, low, high):
            return _between(low, high, wanted)
        case Like(_, pattern, escape):
            return _like(compile_like(pattern, escape), wanted)


_LINES: dict[str, Callable[[Value], Line]] = {
    "=": point,
    "<>": lambda value: ~point(value),
    "<": lambda value: below((value, BEFORE)),
    "<=": lambda value: below((value, AFTER)),
    ">": lambda value: above((value, AFTER)),
    ">=": lambda value: above((value, BEFORE)),
}


def _of_kind(kind: Kind, line: Line, wanted: bool) -> States:
    """A leaf is TRUE on the line and FALSE off it, inside its kind; elsewhere it is unknown, which is neither."""
    line = line if wanted else ~line
    match kind:
        case Kind.BOOL:
            return States(bools=frozenset(value for value in ANY_BOOL if value in line))
        case Kind.NUMBER:
            return States(numbers=line)
    return States(strings=line)


def _in(values: tuple[Value, ...], wanted: bool) -> States:
    by_kind: dict[Kind, list[Value]] = {}
    for value in values:
        by_kind.setdefault(kind_of(value), []).append(value)
    if not wanted and len(by_kind) > 1:
        return NOTHING  # unequal to all of them can be known of no value
    return reduce(States.__or__, (_of_kind(kind, points(same), wanted) for kind, same in by_kind.items()))


def _between(low: Value, high: Value, wanted: bool) -> States:
    if kind_of(low) is kind_of(high):
        return _of_kind(kind_of(low), between(low, high), wanted)
    # At least one of the two comparisons is unknown, so both cannot be TRUE, but one may be FALSE.
    too_low = _of_kind(kind_of(low), below((low, BEFORE)), True)
    too_high = _of_kind(kind_of(high), above((high, AFTER)), True)
    return NOTHING if wanted else too_low | too_high


def _like(pattern: LikePattern, wanted: bool) -> States:
    if pattern.literal is not None:
        return _of_kind(Kind.STRING, point(pattern.literal), wanted)
    if pattern.is_prefix:
        return _of_kind(Kind.STRING, _beginning_with(pattern.prefix), wanted)
    begins = _beginning_with(pattern.prefix) if wanted else FULL
    return States(strings=begins, patterns=frozenset(((pattern, wanted),)))


def _beginning_with(prefix: str) -> Line:
    """Strings with this prefix are an interval: it ends where the last character that can grow has grown."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    at_least = above((prefix, BEFORE)) if prefix else FULL
    return at_least & below((stem[:-1] + chr(ord(stem[-1]) + 1), BEFORE)) if stem else at_least
