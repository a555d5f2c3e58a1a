"""Event types: a tree by inheritance, open until declared.

- A type that nobody declared has no parent and may carry any attributes.
- A declared type names its parent and its attributes; it has its ancestors' attributes too. Its events are checked:
  every attribute must be declared with that kind, unless the type or one of its ancestors is open.
- A declaration may be repeated with more attributes, never with fewer or with others. Whatever would contradict what
  is declared, for the type or for those below it, is refused whole.
- The parent may be declared later, for declarations travel between brokers in any order.
"""

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from mercast.content.errors import ContentError, quoted
from mercast.content.expression import Between, Compare, Expression, In, Leaf, Like, leaves
from mercast.content.values import Attributes, Kind, Value, check_name, kind_of
from mercast.limits import DEFAULTS, Limits


class AttributeType(StrEnum):
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"

    @property
    def kind(self) -> Kind:
        return _KIND[self]

    def admits(self, value: Value) -> bool:
        """An int may stand where a float is declared, but not the other way round."""
        return kind_of(value) is self.kind and (self is not AttributeType.INT or isinstance(value, int))


_KIND = {
    AttributeType.BOOL: Kind.BOOL,
    AttributeType.INT: Kind.NUMBER,
    AttributeType.FLOAT: Kind.NUMBER,
    AttributeType.STRING: Kind.STRING,
}


@dataclass(frozen=True, slots=True)
class Declaration:
    name: str
    parent: str | None = None
    attributes: Mapping[str, AttributeType] = field(default_factory=dict)
    open: bool = False
    """Whether events may carry attributes beyond the declared ones."""


_UNDECLARED = Declaration("", open=True)


class _Shape(NamedTuple):
    """What follows for a type from its declaration and those of its ancestors."""

    lineage: tuple[str, ...]
    attributes: Mapping[str, AttributeType]
    open: bool


class Types:
    """The declared types. Everything is derived from the declarations, so equal declarations are equal trees."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._declared: dict[str, Declaration] = {}
        self._shapes: dict[str, _Shape] = {}
        """Of the declared types."""
        self._below: dict[str, dict[str, None]] = {}
        """The declared types under each that is an ancestor of any, itself included; none if not known yet."""

    @property
    def declared(self) -> Mapping[str, Declaration]:
        return MappingProxyType(self._declared)

    def declare(self, declaration: Declaration) -> None:
        """Add a declaration, or refuse it with nothing changed."""
        check_declaration(declaration, self._limits)
        if len(self._declared) >= self._limits.types and declaration.name not in self._declared:
            raise ContentError(f"{self._limits.types} types are declared already, which is the limit")
        before = self._declared.get(declaration.name)
        if before is not None:
            _check_additive(before, declaration)
        own = replace(declaration, attributes=dict(declaration.attributes))  # the caller may go on changing its own
        below = [other for other, shape in self._shapes.items() if own.name in shape.lineage and other != own.name]
        declared = ChainMap({own.name: own}, self._declared)
        self._shapes |= {name: self._derived(name, declared) for name in [own.name, *below]}
        self._declared[own.name] = own
        self._below.clear()

    def _derived(self, name: str, declared: Mapping[str, Declaration]) -> _Shape:
        """Refuses conflicts up the tree."""
        lineage = self._lineage(name, declared)
        attributes: dict[str, AttributeType] = {}
        for ancestor in reversed(lineage):
            for attribute, kind in declared.get(ancestor, _UNDECLARED).attributes.items():
                if attributes.setdefault(attribute, kind) is not kind:
                    inherited = attributes[attribute]
                    raise ContentError(
                        f"type {ancestor!r} declares {attribute!r} as {kind}, but inherits it as {inherited}: "
                        f"keep {inherited}, or choose another name"
                    )
        is_open = any(declared.get(ancestor, _UNDECLARED).open for ancestor in lineage)
        return _Shape(lineage, MappingProxyType(attributes), is_open)

    def _lineage(self, name: str, declared: Mapping[str, Declaration]) -> tuple[str, ...]:
        line = [name]
        while (parent := declared.get(line[-1], _UNDECLARED).parent) is not None:
            if parent in line:
                raise ContentError(f"type {name!r} would be its own ancestor: {' -> '.join([*line, parent])}")
            if len(line) > self._limits.type_depth:
                raise ContentError(f"type {name!r} would have more than {self._limits.type_depth} ancestors")
            line.append(parent)
        return tuple(line)

    def _shape(self, name: str) -> _Shape:
        return self._shapes.get(name) or _Shape((name,), {}, open=True)

    def lineage(self, name: str) -> tuple[str, ...]:
        """The type and its ancestors, nearest first."""
        shape = self._shapes.get(name)
        return shape.lineage if shape is not None else (name,)

    def related(self, a: str, b: str) -> bool:
        """Whether one is the other or its ancestor, so that an event may be of both."""
        return a in self.lineage(b) or b in self.lineage(a)

    def below(self, name: str) -> Collection[str]:
        """The declared types that are this one or have it as an ancestor, each once."""
        if not self._below:
            for other, shape in self._shapes.items():
                for ancestor in shape.lineage:
                    self._below.setdefault(ancestor, {})[other] = None
        return self._below.get(name, {}).keys()

    def attributes(self, name: str) -> Mapping[str, AttributeType]:
        """The attributes of a type with those of its ancestors."""
        return self._shape(name).attributes

    def is_open(self, name: str) -> bool:
        return self._shape(name).open

    def declares_any(self, names: Iterable[str]) -> bool:
        return not self._declared.keys().isdisjoint(names)

    def check_attributes(self, name: str, attributes: Attributes) -> None:
        """Refuse an event that its declared type does not allow."""
        if name not in self._declared:
            return
        declared, is_open = self.attributes(name), self.is_open(name)
        for attribute, value in attributes.items():
            kind = declared.get(attribute)
            if kind is None and not is_open:
                raise ContentError(_unknown(name, attribute, declared))
            if kind is not None and not kind.admits(value):
                raise ContentError(f"type {name!r} declares {attribute!r} as {kind}, but the event has {quoted(value)}")

    def check_filter(self, name: str, expression: Expression) -> None:
        """Refuse a filter that can only be a mistake: an unknown attribute, or a value of a kind it never has.

        A subtype's attribute is fair: a subscription to the parent gets its events too.
        """
        if name not in self._declared:
            return
        known = self._known_below(name)
        for leaf in leaves(expression):
            kinds = known.get(leaf.name)
            if kinds is None and not self._open_below(name):
                raise ContentError(_unknown(name, leaf.name, known))
            for value in _values(leaf):
                if kinds is not None and all(kind.kind is not kind_of(value) for kind in kinds):
                    declared = " or ".join(sorted(kinds))
                    raise ContentError(
                        f"type {name!r} declares {leaf.name!r} as {declared}: it never compares with {quoted(value)}"
                    )

    def _open_below(self, name: str) -> bool:
        """Whether the type or one of its subtypes allows any attributes."""
        return any(map(self.is_open, self.below(name)))

    def _known_below(self, name: str) -> dict[str, set[AttributeType]]:
        known: dict[str, set[AttributeType]] = {}
        for other in self.below(name):
            for attribute, kind in self.attributes(other).items():
                known.setdefault(attribute, set()).add(kind)
        return known


def check_declaration(declaration: Declaration, limits: Limits = DEFAULTS) -> None:
    check_name(declaration.name, "type", limits)
    if declaration.parent is not None:
        check_name(declaration.parent, "parent type", limits)
    if len(declaration.attributes) > limits.attributes:
        raise ContentError(
            f"type {declaration.name!r} declares {len(declaration.attributes)} attributes, "
            f"at most {limits.attributes} are allowed"
        )
    for attribute, kind in declaration.attributes.items():
        check_name(attribute, "attribute", limits)
        if not isinstance(kind, AttributeType):
            raise ContentError(f"type {declaration.name!r}: {attribute!r} is {quoted(kind)}, expected an AttributeType")


def _check_additive(before: Declaration, after: Declaration) -> None:
    if before.parent != after.parent:
        raise ContentError(
            f"type {after.name!r} has the parent {before.parent!r}, which cannot become {after.parent!r}"
        )
    if before.open and not after.open:
        raise ContentError(f"type {after.name!r} is open and cannot be closed: its events may carry any attributes")
    for attribute, kind in before.attributes.items():
        if after.attributes.get(attribute) is not kind:
            now = after.attributes.get(attribute, "absent")
            raise ContentError(
                f"type {after.name!r} declares {attribute!r} as {kind}, which cannot become {now}: "
                "types change by new attributes only"
            )


def _unknown(name: str, attribute: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(attribute, known, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"it has {_some(known)}"
    return f"type {name!r} declares no attribute {attribute!r}; {meant}"


def _some(names: Iterable[str]) -> str:
    first = sorted(names)
    told = ", ".join(first[:_TOLD]) or "none"
    return f"{told} and {len(first) - _TOLD} more" if len(first) > _TOLD else told


_TOLD = 20
"""Names that an error lists."""


def _values(leaf: Leaf) -> tuple[Value, ...]:
    """The values a leaf compares with; a LIKE compares with a string."""
    match leaf:
        case Compare(_, _, value):
            return (value,)
        case Between(_, low, high):
            return (low, high)
        case In(_, values):
            return values
        case Like(_, pattern, _):
            return (pattern,)
    return ()
