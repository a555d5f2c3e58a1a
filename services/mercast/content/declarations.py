"""Files of type declarations.

types:
  quote:
    attributes: {symbol: string, price: float}
  stock-quote:
    parent: quote
    open: true
    attributes: {volume: int}
"""

from typing import Any

from mercast.content.errors import ContentError, quoted
from mercast.content.types import AttributeType, Declaration, check_declaration
from mercast.limits import DEFAULTS, Limits


def read_declarations(text: str, limits: Limits = DEFAULTS) -> list[Declaration]:
    """The declarations of a YAML text, in the order written; ContentError names what is wrong."""
    import yaml  # only brokers read files; the client does without

    try:
        if (nodes := yaml.compose(text, yaml.SafeLoader)) is not None:
            _check_keys(nodes)
        document = yaml.safe_load(text)
    except ContentError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContentError(f"the file of types is not YAML: {error}") from None
    types = _mapping(document, "the file", {"types"}).get("types")
    declarations = [_declaration(name, body) for name, body in _mapping(types, "types").items()]
    for declaration in declarations:
        check_declaration(declaration, limits)
    return declarations


def _check_keys(document: Any) -> None:
    """YAML lets the last of two equal keys win in silence: here that is a mistake."""
    waiting, met = [document], {id(document)}  # a part that is referred to many times is looked at once
    while waiting:
        node, seen = waiting.pop(), set()
        for key, value in node.value if node.id == "mapping" else ():
            if str(key.value) in seen:
                raise ContentError(f"line {key.start_mark.line + 1}: {quoted(key.value)} is given twice")
            seen.add(str(key.value))
            if id(value) not in met:
                met.add(id(value))
                waiting.append(value)


def _declaration(name: Any, body: Any) -> Declaration:
    where = f"type {quoted(name)}"
    fields = _mapping(body if body is not None else {}, where, {"parent", "open", "attributes"})
    is_open = fields.get("open", False)
    if not isinstance(is_open, bool):
        raise ContentError(f"{where}: open is {quoted(is_open)}, expected true or false")
    listed = fields.get("attributes")
    attributes = _mapping({} if listed is None else listed, f"{where}: attributes")
    return Declaration(
        name, fields.get("parent"), {a: _attribute_type(where, a, kind) for a, kind in attributes.items()}, is_open
    )


def _attribute_type(where: str, attribute: Any, kind: Any) -> AttributeType:
    try:
        return AttributeType(kind)
    except ValueError:
        choices = ", ".join(AttributeType)
        raise ContentError(
            f"{where}: attribute {quoted(attribute)} is {quoted(kind)}, expected one of {choices}"
        ) from None


def _mapping(value: Any, where: str, allowed: set[str] | None = None) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ContentError(f"{where}: found {type(value).__name__}, expected names with their values")
    unknown = sorted(str(key) for key in value if allowed is not None and key not in allowed)
    if unknown:
        raise ContentError(f"{where}: {quoted(unknown[0])} is unknown, expected {', '.join(sorted(allowed or ()))}")
    return value
