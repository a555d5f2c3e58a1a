"""A broker's run as lines of JSON, and the run again from these lines. Pure: who reads and writes files is elsewhere.

A header says who the broker was; a line for each stimulus says when it came and what the broker did about it. As the
same stimuli give the same effects, a fresh core can be driven through them, up to the line where something went wrong;
effects are compared as they are written, to the byte. A further header starts anew: the broker was restarted. If it
was killed before, its last line may be cut off, which is told; all lines before it count.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from mercast.protocol.effects import Effect
from mercast.protocol.plain import from_plain, to_plain
from mercast.protocol.stimuli import Stimulus
from mercast.routing.core import Core
from mercast.routing.settings import Settings
from mercast.routing.strategies import name_of, strategy_named

VERSION = 1

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading a damaged line may raise."""


_CUT = "not JSON, or cut off"


class RecordingError(ValueError):
    """The lines are not a recording, or a damaged one."""


class Difference(NamedTuple):
    """The first line after which a fresh core did something else."""

    line: int
    now: float
    stimulus: Stimulus
    recorded: tuple[str, ...]
    found: tuple[str, ...]
    """Effects, each in a form to be read by people."""


class Replayed(NamedTuple):
    stimuli: int
    difference: Difference | None = None
    cut: tuple[int, ...] = ()
    """Lines at the end of a run that were cut off."""


# -- writing ---------------------------------------------------------------------------------------------------------


def header(core: Core) -> str:
    """The first line: what is needed to make the same core again."""
    return _line(
        {
            "version": VERSION,
            "strategy": name_of(core),
            "broker": core.me,
            "incarnation": core.incarnation,
            "settings": _fields(core.settings),
        }
    )


def entry(now: float, stimulus: Stimulus, effects: Sequence[Effect]) -> str:
    """The line of one stimulus."""
    return _line({"now": to_plain(now), "stimulus": to_plain(stimulus), "effects": to_plain(tuple(effects))})


def _line(content: Any) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _fields(value: Any) -> Any:
    """Settings, by the names of their fields at every level."""
    if isinstance(value, Settings):
        return {field.name: _fields(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: _fields(part) for name, part in value._asdict().items()}
    return to_plain(value)


# -- reading ---------------------------------------------------------------------------------------------------------


def replay(lines: Iterable[str]) -> Replayed:
    """Drive a fresh core through recorded stimuli until it does something else than the recorded one did."""
    core, runs, stimuli, cut = None, 0, 0, list[int]()
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            content = _read(line)
            if content is None:
                core = None  # only another run may follow
                cut.append(number)
                continue
            if core is None or "version" in content:
                core = _core(content)
                runs += 1
                continue
            now, stimulus, recorded = _entry(content)
        except _DAMAGE as error:
            place = f"line {cut[-1]}: {_CUT}; line {number}" if core is None and cut else f"line {number}"
            raise RecordingError(f"{place}: {_reason(error)}{_so_far(stimuli)}") from None
        stimuli += 1
        found = _effects(core, now, stimulus)
        if found != recorded:
            shown = (tuple(map(_readable, recorded)), tuple(map(_readable, found)))
            return Replayed(stimuli, Difference(number, now, stimulus, *shown), tuple(cut))
    if not runs:
        raise RecordingError(f"line {cut[0]}: {_CUT}" if cut else "it is empty: a recording begins with a header")
    return Replayed(stimuli, cut=tuple(cut))


def _read(line: str) -> dict[str, Any] | None:
    """None if it is cut off."""
    try:
        content = json.loads(line)
    except ValueError:
        return None
    if not isinstance(content, dict):
        raise RecordingError("not an object of JSON")
    return content


def _core(content: dict[str, Any]) -> Core:
    if content.keys() != {"version", "strategy", "broker", "incarnation", "settings"}:
        raise RecordingError("not the header of a recording (version, strategy, broker, incarnation, settings)")
    if content["version"] != VERSION:
        raise RecordingError(f"version {content['version']!r} of recordings; this mercast reads version {VERSION}")
    strategy = strategy_named(content["strategy"])
    broker, incarnation = (_checked(content[name], int, name) for name in ("broker", "incarnation"))
    return strategy(broker, incarnation, _checked(content["settings"], Settings, "settings"))


def _entry(content: dict[str, Any]) -> tuple[float, Stimulus, list[str]]:
    if content.keys() != {"now", "stimulus", "effects"}:
        raise RecordingError("not the line of a stimulus (now, stimulus, effects)")
    stimulus = from_plain(content["stimulus"])
    if not isinstance(stimulus, get_args(Stimulus)):
        raise RecordingError("no stimulus is written there")
    effects = [_line(effect) for effect in _checked(content["effects"], list, "effects")]
    return _checked(content["now"], float, "now"), stimulus, effects


def _effects(core: Core, now: float, stimulus: Stimulus) -> list[str]:
    """What the core does, effect by effect; if it breaks, that."""
    try:
        return [_line(to_plain(effect)) for effect in core.handle(now, stimulus)]
    except Exception as error:  # what broke the live broker is what one came to see
        return [_line(f"raised {_reason(error)}")]


def _checked(value: Any, kind: Any, what: str) -> Any:
    """The value as this kind, whose parts are checked too; a bool is not a number here."""
    if get_origin(kind) is Literal:
        good = value in get_args(kind)
    elif kind is float:
        value = from_plain(value)
        good = isinstance(value, int | float) and not isinstance(value, bool)
    elif is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or not value.keys() <= hints.keys():
            raise RecordingError(f"{what} should be an object with {', '.join(hints)}")
        return kind(**{name: _checked(part, hints[name], name) for name, part in value.items()})
    else:
        good = type(value) is kind
    if not good:
        raise RecordingError(f"{what} should not be {value!r}")
    return value


def _readable(line: str) -> str:
    """An effect as Python shows it, if it can be read at all."""
    plain = json.loads(line)
    try:
        return plain if isinstance(plain, str) else repr(from_plain(plain))
    except _DAMAGE:
        return line


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, RecordingError) else f"{type(error).__name__}: {error}"


def _so_far(stimuli: int) -> str:
    return f" (the {stimuli} stimuli before it had the same effects)" if stimuli else ""
