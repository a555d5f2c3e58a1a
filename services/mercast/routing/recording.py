"""A broker's run as lines of JSON, and the run again from these lines. Pure: who reads and writes files is elsewhere.

A header says who the broker was; a line for each stimulus says when it came and what the broker did about it. As the
same stimuli give the same effects, a fresh core can be driven through them, up to the line where something went wrong;
effects are compared as they are written, to the byte. A further header starts anew: the broker was restarted. If it
was killed before, its last line may be cut off, which is told; all lines before it count.

Of stimuli that were only kept in memory, lines are brief: they say how many effects there were. If the first of them
were not kept, the header says how many: a tail can be read, but no fresh core can go through it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from mercast.content.event import Event
from mercast.protocol.effects import Effect
from mercast.protocol.plain import from_plain, to_plain
from mercast.protocol.stimuli import Publish, Stimulus
from mercast.routing.core import Core
from mercast.routing.settings import Settings
from mercast.routing.strategies import name_of, strategy_named

VERSION = 1

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading a damaged line may raise."""


_CUT = "not JSON, or cut off"


class RecordingError(ValueError):
    """The lines are not a recording, or a damaged one."""


class Tail(RecordingError):  # noqa: N818 - nothing is wrong with it
    """The run has begun before: what the broker knew then is not there."""

    def __init__(self, gone: int) -> None:
        super().__init__(f"the tail of a run: {gone} stimuli before it were not kept")


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
    counted: int = 0
    """Stimuli of which only the number of effects could be compared."""


# -- writing ---------------------------------------------------------------------------------------------------------


def header(core: Core, gone: int = 0) -> str:
    """The first line: what is needed to make the same core again; and how many stimuli before the first are gone."""
    return _line(
        {
            "version": VERSION,
            "strategy": name_of(core),
            "broker": core.me,
            "incarnation": core.incarnation,
            "settings": _fields(core.settings),
        }
        | ({"gone": gone} if gone else {})
    )


def entry(now: float, stimulus: Stimulus, effects: Sequence[Effect]) -> str:
    """The line of one stimulus."""
    return _line({"now": to_plain(now), "stimulus": to_plain(stimulus), "effects": to_plain(tuple(effects))})


def brief(now: float, stimulus: Stimulus, effects: int) -> str:
    """The same with the number of effects only, and without payloads: as no broker looks into them, zeros will do."""
    return _line({"now": to_plain(now), "stimulus": _blank(to_plain(stimulus)), "count": effects})


def _blank(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_blank(part) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if plain["is"] in _WITH_PAYLOAD:
        zeros = "0" * len(plain["payload"]["hex"])
        return plain | {"payload": {"is": "bytes", "hex": zeros}}
    return {name: _blank(part) for name, part in plain.items()}


_WITH_PAYLOAD = (Publish.__name__, Event.__name__)


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
    """Drive a fresh core through recorded stimuli until it does something else than the recorded one did.

    RecordingError tells what is damaged; Tail, that a core cannot begin there.
    """
    core, runs, stimuli, counted, cut = None, 0, 0, 0, list[int]()
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
        except Tail:
            raise
        except _DAMAGE as error:
            place = f"line {cut[-1]}: {_CUT}; line {number}" if core is None and cut else f"line {number}"
            raise RecordingError(f"{place}: {_reason(error)}{_so_far(stimuli)}") from None
        stimuli += 1
        counted += isinstance(recorded, int)
        found = _effects(core, now, stimulus)
        if len(found) != recorded if isinstance(recorded, int) else found != recorded:
            was = (f"{recorded} effects",) if isinstance(recorded, int) else tuple(map(_readable, recorded))
            difference = Difference(number, now, stimulus, was, tuple(map(_readable, found)))
            return Replayed(stimuli, difference, tuple(cut), counted)
    if not runs:
        raise RecordingError(f"line {cut[0]}: {_CUT}" if cut else "it is empty: a recording begins with a header")
    return Replayed(stimuli, cut=tuple(cut), counted=counted)


def stimuli_in(lines: Iterable[str]) -> Iterator[tuple[float, Stimulus]]:
    """What happened, and when, to be read by people; of a tail too. RecordingError if it cannot be read."""
    for number, line in enumerate(lines, 1):
        try:
            content = {} if line.isspace() else _read(line)
            if content and "version" not in content:
                now, stimulus, _ = _entry(content)
                yield now, stimulus
        except _DAMAGE as error:
            raise RecordingError(f"line {number}: {_reason(error)}") from None


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
    gone = _checked(content.pop("gone", 0), int, "gone")
    if content.keys() != {"version", "strategy", "broker", "incarnation", "settings"}:
        raise RecordingError("not the header of a recording (version, strategy, broker, incarnation, settings)")
    if content["version"] != VERSION:
        raise RecordingError(f"version {content['version']!r} of recordings; this mercast reads version {VERSION}")
    strategy = strategy_named(content["strategy"])
    broker, incarnation = (_checked(content[name], int, name) for name in ("broker", "incarnation"))
    if gone:
        raise Tail(gone)
    return strategy(broker, incarnation, _checked(content["settings"], Settings, "settings"))


def _entry(content: dict[str, Any]) -> tuple[float, Stimulus, list[str] | int]:
    """When, what, and the effects, or how many there were."""
    if content.keys() not in ({"now", "stimulus", "effects"}, {"now", "stimulus", "count"}):
        raise RecordingError("not the line of a stimulus (now, stimulus, effects)")
    stimulus = from_plain(content["stimulus"])
    if not isinstance(stimulus, get_args(Stimulus)):
        raise RecordingError("no stimulus is written there")
    now = _checked(content["now"], float, "now")
    if "count" in content:
        return now, stimulus, _checked(content["count"], int, "count")
    return now, stimulus, [_line(effect) for effect in _checked(content["effects"], list, "effects")]


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
    elif get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise RecordingError(f"{what} should be a list")
        return tuple(_checked(part, get_args(kind)[0], what) for part in value)
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
