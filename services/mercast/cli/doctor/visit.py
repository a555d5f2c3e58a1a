"""What a broker answers when it is asked for everything that a bundle has of it."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from mercast.broker.addresses import Address
from mercast.cli.admin_port import AdminError, NotServed, fetch

OVERLAY, METRICS, CONFIG, VERSIONS, TABLES, STIMULI = (
    "overlay.json",
    "metrics.txt",
    "config.json",
    "versions.json",
    "tables.json",
    "stimuli.jsonl",
)
"""Files of a bundle."""

_PATHS = {
    OVERLAY: "overlay",
    METRICS: "metrics",
    CONFIG: "config",
    VERSIONS: "versions",
    TABLES: "tables?full=1",
    STIMULI: "stimuli",
}


@dataclass
class Visit:
    address: Address
    files: dict[str, bytes] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Files that could not be fetched, and why."""
    advice: str = ""
    """What to do if nothing could be."""

    @cached_property
    def overlay(self) -> dict[str, Any] | None:
        """None if there was no answer."""
        return _object(self.files[OVERLAY]) if OVERLAY in self.files else None

    @cached_property
    def versions(self) -> dict[str, Any]:
        return _object(self.files[VERSIONS]) if VERSIONS in self.files else {}

    @cached_property
    def metrics(self) -> dict[str, dict[str, float]]:
        """By name, then by the value of the one label, or by nothing."""
        found: dict[str, dict[str, float]] = {}
        for family in text_string_to_metric_families(self.files.get(METRICS, b"").decode()):
            for sample in family.samples:
                found.setdefault(sample.name, {})[",".join(sample.labels.values())] = sample.value
        return found

    def number(self, metric: str) -> float:
        return self.metrics.get(metric, {}).get("", 0.0)

    @property
    def name(self) -> str:
        return f"broker {self.overlay['broker']['id']}" if self.overlay else str(self.address)


def _object(said: bytes | str) -> dict[str, Any]:
    """ValueError if it is none."""
    found = json.loads(said)
    if not isinstance(found, dict):
        raise ValueError("not an object of JSON")
    return found


def visit(address: Address, token: str, stimuli: bool) -> Visit:
    """Whatever can be had; a broker that does not answer is not asked again."""
    found = Visit(address)
    for file, path in _PATHS.items():
        if file == STIMULI and not stimuli:
            continue
        try:
            said = fetch(address, path, token)
            _check(file, said)
            found.files[file] = said
        except NotServed as error:
            found.missing[file] = printable(error.why)
        except (ValueError, RecursionError):
            found.missing[file] = f"what answers at {address} for /{path} is not what a broker says"
        except AdminError as error:
            found.missing[file] = str(error)
            found.advice = found.advice or error.do
            if not error.answers:
                break
    return found


def _check(file: str, said: bytes) -> None:
    """ValueError if it is none of ours. All that is printed or counted with later on is looked at here."""
    text = said.decode()
    if file == METRICS:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                _fits([sample.name, *sample.labels.values()], [str])
        return
    found = _object(text.partition("\n")[0] if file == STIMULI else text)
    _fits(found, _SHAPES.get(file, {"broker": object}))


def _fits(value: Any, shape: Any) -> None:
    """ValueError if it is another shape: {key: shape}, [shape of each], (shape of the first, of the second), a type."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or shape.keys() - value.keys():
            raise ValueError("a key is missing")
        for key, part in shape.items():
            _fits(value[key], part)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError("no list")
        for one in value:
            _fits(one, shape[0])
    elif isinstance(shape, tuple):
        if not isinstance(value, list) or len(value) != len(shape):
            raise ValueError("not as many as expected")
        for one, part in zip(value, shape, strict=True):
            _fits(one, part)
    else:
        _check_one(value, shape)


def _check_one(value: Any, kind: Any) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
        raise ValueError("of another type")
    if isinstance(value, str) and (len(value) > _LONGEST or not value.isprintable()):
        raise ValueError("no text that can be shown")
    if isinstance(value, int) and abs(value) > _MOST:
        raise ValueError("no number that brokers count with")


def printable(text: str) -> str:
    """Nothing that a terminal would obey."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text[:_LONGEST])


_LONGEST = 2_000
"""Characters of a text that brokers tell."""

_MOST = 2**64

_NUMBER = int | float

_SHAPES: dict[str, Any] = {
    OVERLAY: {
        "broker": {
            "id": int,
            "cluster": str,
            "strategy": str,
            "version": str,
            "ready": bool,
            "reason": str,
            "uptime_seconds": _NUMBER,
        },
        "members": [{"id": int}],
        "links": [{"neighbour": int, "clock_offset_ms": _NUMBER | None, "rtt_ms": _NUMBER | None}],
        "overlay": {"brokers": [{"id": int, "reachable": bool}]},
    },
    VERSIONS: {"broker": object, "wire": (int, int)},
}
