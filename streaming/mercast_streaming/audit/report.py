"""What an audit found: counts, and every wrong delivery by name."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from mercast_streaming.audit.judging import DOUBLED, GREY, MISSING, RIGHT, UNDUE, UNDUE_BECAUSE, UNKNOWN

CLEAN, WRONG, TOO_LITTLE = 0, 1, 2
"""Exit codes: all is right, something is wrong, too much is not known."""


@dataclass
class Step:
    """One row about an event."""

    broker: int
    at: int
    what: str
    told: str


@dataclass
class Named:
    """A delivery that is missing, doubled or undue."""

    what: str
    why: str
    event: tuple[int, ...]
    """Broker, incarnation, sequence."""
    broker: int
    client: str | None
    requests: list[int] = field(default_factory=list)
    """The subscriptions, by the requests that made them."""
    time: int | None = None
    type: str | None = None
    attributes: str | None = None
    path: list[Step] = field(default_factory=list)
    last: int | None = None
    """The last broker that had the event, on the way there."""


@dataclass
class Report:
    since: int | None = None
    until: int | None = None
    # what was read
    messages: int = 0
    rows: int = 0
    repeated_messages: int = 0
    unreadable_messages: int = 0
    lost_rows: int = 0
    brokers: int = 0
    """Incarnations count."""
    skew_us: int = 0
    """By how much the clocks of brokers may differ."""
    subscriptions: int = 0
    advertisements: int = 0
    questions: int = 0
    unreadable_filters: list[str] = field(default_factory=list)
    unjudged_subscriptions: int = 0
    """Their filters are not recorded, or not readable."""
    events: int = 0
    untold_events: int = 0
    """Without attributes."""
    # what was found, in pairs of an event and a subscription that it matches
    right: int = 0
    missing: int = 0
    undue: int = 0
    doubled: int = 0
    """In pairs of an event and a client."""
    grey: dict[str, int] = field(default_factory=dict)
    """Not delivered, and not owed for this reason."""
    unknown: dict[str, int] = field(default_factory=dict)
    """It cannot be said, for this reason."""
    undue_because: dict[str, int] = field(default_factory=dict)
    named: list[Named] = field(default_factory=list)
    seconds: float | None = None

    def count(self, found: Mapping[str, int]) -> None:
        for name, number in found.items():
            if not number:
                continue
            if name in GREY:
                self.grey[name] = self.grey.get(name, 0) + number
            elif name in UNKNOWN:
                self.unknown[name] = self.unknown.get(name, 0) + number
            elif name in UNDUE_BECAUSE:
                self.undue_because[name] = self.undue_because.get(name, 0) + number
                self.undue += number
            elif name in (RIGHT, MISSING, "events"):
                setattr(self, name, getattr(self, name) + number)
            elif name == "untold":
                self.untold_events += number

    @property
    def wrong(self) -> dict[str, int]:
        return {MISSING: self.missing, DOUBLED: self.doubled, UNDUE: self.undue}

    @property
    def unknown_share(self) -> float:
        """Of all that there was to judge; an event or a subscription of which nothing can be said counts as one."""
        unknown = sum(self.unknown.values()) + self.untold_events + self.unjudged_subscriptions
        judged = self.right + self.missing + self.undue + self.doubled
        return unknown / (unknown + judged) if unknown + judged else 1.0

    def exit_code(self, most_unknown: float) -> int:
        if any(self.wrong.values()):
            return WRONG
        return TOO_LITTLE if self.unknown_share > most_unknown else CLEAN

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"unknown_share": self.unknown_share}, indent=1, ensure_ascii=False) + "\n"


def moment(micros: int | None) -> str:
    if micros is None:
        return "?"
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")


def summary(report: Report) -> list[tuple[str, str]]:
    """What there is to say in a few lines: a label, and what it is."""
    read = f"{report.messages:,} messages with {report.rows:,} rows, of {report.brokers:,} brokers"
    lines = [("read", read), ("events", f"{report.events:,}")]
    about = f"{report.subscriptions:,} subscriptions, {report.advertisements:,} advertisements"
    lines.append(("control", f"{about}, {report.questions:,} different filters"))
    lines.append(("right", f"{report.right:,}"))
    lines += [(name, f"{number:,}") for name, number in report.wrong.items()]
    lines += [(f"  {why}", f"{number:,}") for why, number in sorted(report.undue_because.items())]
    lines.append(("grey", f"{sum(report.grey.values()):,}"))
    lines += [(f"  {why}", f"{number:,}") for why, number in sorted(report.grey.items())]
    lines.append(("unknown", f"{sum(report.unknown.values()):,}"))
    lines += [(f"  {why}", f"{number:,}") for why, number in sorted(report.unknown.items())]
    for label, number in (
        ("rows lost by taps", report.lost_rows),
        ("messages not readable", report.unreadable_messages),
        ("messages there twice", report.repeated_messages),
        ("events without attributes", report.untold_events),
        ("subscriptions not judged", report.unjudged_subscriptions),
    ):
        if number:
            lines.append((label, f"{number:,}"))
    return lines


def headline(named: Named) -> str:
    event = ":".join(map(str, named.event))
    why = f" ({named.why})" if named.why else ""
    requests = ", ".join(map(str, sorted(set(named.requests))))
    return f"{named.what}{why}: event {event}, broker {named.broker}, client {named.client or '?'}, request {requests}"


def steps(named: Named) -> list[str]:
    """The path, a line for each hop."""
    start = named.path[0].at if named.path else 0
    lines = [
        f"+{(step.at - start) / 1000:.3f} ms  broker {step.broker} {step.what}: {step.told}" for step in named.path
    ]
    where = "no broker tells of it" if named.last is None else f"the last that had it: broker {named.last}"
    return [*lines, where]
