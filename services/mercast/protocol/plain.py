"""Protocol values as plain data (what JSON can hold) and back, exactly.

A value with a class becomes {"is": class, field: …}; so do lists, dicts, bytes and the floats that JSON has no word
for. A plain list is a tuple. So a recorded run can be read by people, and replayed. Fields that a class does not have
are skipped: a newer broker may say more.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from mercast.content.event import Event, EventId
from mercast.content.filter import Filter
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import AttributeType, Declaration
from mercast.protocol import effects, messages, rows, stimuli

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *(Event, EventId, Declaration, Advertisement, Subscription),
        *(
            thing
            for module in (messages, stimuli, effects, rows)
            for thing in vars(module).values()
            if isinstance(thing, type) and thing.__module__ == module.__name__
        ),
    )
}

_LATER: dict[type[Any], dict[str, Any]] = {
    row: row._field_defaults for row in (rows.Published, rows.Copied, rows.Delivered, rows.Dropped)
}
"""Fields that rows got later: left out while they say nothing, so that rows are still said in the words of before."""


def to_plain(value: Any) -> Any:
    if isinstance(value, Filter):
        return {"is": "Filter", "text": str(value)}
    if isinstance(value, bytes):
        return {"is": "bytes", "hex": value.hex()}
    if isinstance(value, AttributeType):
        return {"is": "AttributeType", "name": value.value}
    if hasattr(value, "_fields"):
        later = _LATER.get(type(value), {})
        # What came over the wire says the same once more.
        names = (
            name
            for name in value._fields
            if name not in ("encoded", "stamped", "plain")
            and not (name in later and later[name] == getattr(value, name))
        )
        return {"is": type(value).__name__} | {name: to_plain(getattr(value, name)) for name in names}
    if is_dataclass(value):
        return {"is": type(value).__name__} | {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) or (isinstance(value, Sequence) and not isinstance(value, list | str)):
        return [to_plain(item) for item in value]
    if isinstance(value, list):
        return {"is": "list", "of": [to_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"is": "dict", "of": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    if isinstance(value, float) and not isfinite(value):
        return {"is": "float", "text": str(value)}
    return value


def from_plain(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(from_plain(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    content = {name: value for name, value in plain.items() if name != "is"}
    match plain["is"]:
        case "Filter":
            return Filter.parse(content["text"])
        case "bytes":
            return bytes.fromhex(content["hex"])
        case "AttributeType":
            return AttributeType(content["name"])
        case "float":
            return float(content["text"])
        case "list":
            return [from_plain(item) for item in content["of"]]
        case "dict":
            return {from_plain(key): from_plain(value) for key, value in content["of"]}
    if plain["is"] not in _CLASSES:
        raise ValueError(f"the protocol has no {plain['is']!r}")
    cls = _CLASSES[plain["is"]]
    known = cls._fields if hasattr(cls, "_fields") else cls.__dataclass_fields__
    return cls(**{name: from_plain(value) for name, value in content.items() if name in known})
