"""Filters as unions of boxes, and what is decided over boxes: covering and intersection.

A box maps attribute names to the states it allows; an attribute that is not named may be anything. The states of one
attribute are: missing, a bool, a point on the line of numbers, a point on the line of strings that also passes some
LIKE patterns (a prefix is an interval of strings; only other patterns remain as patterns).

Only TRUE matches, and NOT can be pushed to the leaves, where NOT of a comparison is the opposite comparison inside
the same kind. So a filter is the union of the boxes of its disjunctive form. That form may explode: past a bound the
boxes are widened to one that contains them all, and the union is marked as not exact.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import and_, le, or_
from typing import Any, TypeAlias

from mercast.content.expression import And, Between, Compare, Expression, In, IsNull, Leaf, Like, Not, Or
from mercast.content.like import LikePattern, compile_like
from mercast.content.line import AFTER, BEFORE, EMPTY, FULL, Line, above, below, between, point, points
from mercast.content.values import Kind, Value, kind_of

_TRIES = 10_000
"""Strings times patterns that are tried on each other to make a box smaller; beyond, it stays as it is."""

_MOST_CUTS = 16_384
"""Cuts of all boxes of a filter together: a long list inside many boxes would be kept many times."""

_STATES_BYTES, _CUT_BYTES, _CHECKED_BYTES = 320, 72, 24
"""What the states of an attribute, a cut of theirs, and each of its uses in a matcher take. Measured."""

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
        if self is other:
            return self
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
            self.patterns & other.patterns,
        )

    def __le__(self, other: "States") -> bool:
        """Whether all that this allows the other allows; may say no too often."""
        return (
            self.missing <= other.missing
            and self.bools <= other.bools
            and self.numbers <= other.numbers
            and self.strings <= other.strings
            and (other.patterns <= self.patterns or self._all_pass(other.patterns))
        )

    def meets(self, other: "States") -> bool:
        """Whether something is allowed by both; may say yes too often."""
        if (self.missing and other.missing) or not self.bools.isdisjoint(other.bools):
            return True
        if self.numbers.meets(other.numbers):
            return True
        if not self.strings.meets(other.strings):
            return False
        return not (self.patterns or other.patterns) or (self & other) != NOTHING

    def _all_pass(self, patterns: frozenset[tuple[LikePattern, bool]]) -> bool:
        values = self._few_strings(len(patterns))
        return values is not None and all(_passes(value, patterns) for value in values)

    def _few_strings(self, patterns: int) -> list[str] | None:
        """The strings, if they are some single ones, and few enough to try them on so many patterns."""
        values = self.strings.points() if patterns else None
        return values if values is not None and len(values) * patterns <= _TRIES else None

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
        values = self._few_strings(len(self.patterns))
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

    @property
    def nbytes(self) -> int:
        """What they and the checks that a matcher makes of them take in memory, about. Boxes may share states."""
        states = [states for box in self.union for states in box.values()]
        cuts = sum(map(_cuts, {id(one): one for one in states}.values()))
        return _STATES_BYTES * len(states) + _CUT_BYTES * cuts + _CHECKED_BYTES * sum(map(_cuts, states))


def box_contains(box: Box, attributes: dict[str, Value]) -> bool:
    return all(attributes.get(name) in states for name, states in box.items())


def covers(outer: Boxes, inner: Boxes) -> bool:
    """Whether each inner box lies in one outer box."""
    within = _remembered(le)

    def lies_in(one: Box, other: Box) -> bool:
        return all(within(one.get(name, ANYTHING), states) for name, states in other.items())

    return all(any(lies_in(one, other) for other in outer.union) for one in inner.union)


def intersect(some: Boxes, others: Boxes) -> bool:
    """Whether an event may lie in both unions."""
    if len(some.union) == len(others.union) == 1:  # mostly, and every subscription is compared with what is advertised
        (one,), (other,) = some.union, others.union
        return not any(name in other and not one[name].meets(other[name]) for name in one)
    meet = _remembered(States.meets)
    return any(all(meet(a[name], b[name]) for name in a.keys() & b.keys()) for a in some.union for b in others.union)


def _remembered(decide: Callable[[States, States], bool]) -> Callable[[States, States], bool]:
    """Boxes of one filter share states, some of them large: decide each pair once."""
    known: dict[tuple[int, int], bool] = {}

    def remembered(a: States, b: States) -> bool:
        pair = id(a), id(b)
        if pair not in known:
            known[pair] = decide(a, b)
        return known[pair]

    return remembered


def _intersection(a: Box, b: Box) -> Box | None:
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
    boxes = _boxes(expression, True, most)
    if len(boxes.union) > 1 and sum(map(_size, boxes.union)) > _MOST_CUTS:
        return Boxes((_hull(boxes.union),), exact=False)
    return boxes


def _size(box: Box) -> int:
    return sum(1 + _cuts(states) for states in box.values())


def _cuts(states: States) -> int:
    return len(states.numbers.cuts) + len(states.strings.cuts)


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
    """Terms of one box are gathered, attribute by attribute; only the others multiply. Where they become too many,
    what they have in common is gathered too, and they start again from one."""
    exact = all(term.exact for term in terms)
    gathered = [term.union[0] for term in terms if len(term.union) == 1]
    several: list[Box] = [{}]
    for term in terms:
        if len(term.union) == 1:
            continue
        if len(several) * len(term.union) > most:
            gathered.append(_hull(several))
            several, exact = [{}], False
        several = _products(several, term.union)
    together = _gathered(gathered)
    return Boxes(tuple(_products([together], several)) if together is not None else (), exact)


def _products(some: Iterable[Box], others: Iterable[Box]) -> list[Box]:
    return [box for box in (_intersection(a, b) for a, b in product(some, others)) if box is not None]


def _gathered(boxes: Iterable[Box]) -> Box | None:
    """What lies in all the boxes, or None if surely nothing does."""
    asked: dict[str, list[States]] = {}
    for box in boxes:
        for name, states in box.items():
            asked.setdefault(name, []).append(states)
    together = {name: _balanced(and_, states) for name, states in asked.items()}
    return None if NOTHING in together.values() else together


def _any_of(terms: list[Boxes], most: int) -> Boxes:
    exact = all(term.exact for term in terms)
    boxes = _united([box for term in terms for box in term.union])
    if len(boxes) > most:
        return Boxes((_hull(boxes),), exact=False)
    return Boxes(tuple(boxes), exact)


def _united(boxes: list[Box]) -> list[Box]:
    """Boxes about one and the same attribute become one: `a = 1 OR a = 2` is a single box."""
    if any(not box for box in boxes):
        return [{}]
    alone: dict[tuple[str, frozenset[Any]], list[States]] = {}
    others: list[Box] = []
    for box in boxes:
        if len(box) == 1:
            (name, states), *_ = box.items()
            alone.setdefault((name, states.patterns), []).append(states)  # with equal patterns a union is exact
        else:
            others.append(box)
    return [{name: _balanced(or_, states)} for (name, _), states in alone.items()] + others


def _hull(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of them."""
    names = sorted(set.intersection(*(set(box) for box in boxes)))
    return {name: _balanced(or_, [box[name] for box in boxes]) for name in names}


def _balanced(combine: Callable[[States, States], States], many: list[States]) -> States:
    """Combine neighbours, then the results, and so on: a thousand values cost a thousand steps times ten, not
    times a thousand."""
    while len(many) > 1:
        pairs = [combine(a, b) for a, b in zip(many[::2], many[1::2], strict=False)]
        many = pairs + many[len(pairs) * 2 :]
    return many[0]


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
    return _balanced(or_, [_of_kind(kind, points(same), wanted) for kind, same in by_kind.items()])


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
