"""All that is known, and what the page gets of it: the overlay when it changes, and each second a pulse of what moves.

Both are small and have the size of the overlay, whatever the load: a page that falls behind gets the newest, and
nothing waits for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from mercast.dashboard.brokers import ADMIN, DEAD, TAPS, UNKNOWN, UP, Broker, Brokers
from mercast.dashboard.events import Recent
from mercast.dashboard.figures import Figures
from mercast.dashboard.layout import Layout, Pair
from mercast.dashboard.load import Choice, Load
from mercast.dashboard.missing import AWAY, EMPTY, OFF, THERE, Source, missing

HALF = "half"
"""A link that one end only lists: it is coming up, or going."""

BROKER_FIELDS = (
    "state", "silent", "published", "delivered", "forwarded", "bytes_out", "dropped", "cpu", "clients", "subscriptions",
    "queued_bytes", "loop_lag_us", "ready",
)  # fmt: skip

ASK_AFTER = 1.5
"""Seconds without any tap: Kafka is asked whether it is there."""

_FRESH = 8.0
"""Seconds that brokers have to find a Kafka that is there again."""

_QUIET = 5.0
"""Seconds without a tick: no taps come."""

_WINDOWLESS = 45_000
"""Milliseconds without a new window: Spark is not there. It takes some ten seconds to close one."""

_DIGITS = 2


_OFF = Source(OFF)


@dataclass(slots=True)
class Told:
    """What the sources say of themselves."""

    kafka: Source = _OFF
    admin: Source = _OFF
    last_tap: float | None = None
    connected: float = float("-inf")
    """Since when Kafka has been there again."""
    confirmed: float = 0.0
    """When it last answered a question."""
    skipped: int = 0
    """Messages of the taps that were left out, to keep up."""
    unreadable: int = 0
    bytes: int = 0
    """That came from all sources."""


class State:
    def __init__(self) -> None:
        self.brokers, self.load, self.figures, self.recent = Brokers(), Load(), Figures(), Recent()
        self.layout, self.told = Layout(), Told()
        self.now, self.at = 0.0, 0
        self.version = 0
        """Of the overlay."""
        self._shape = b""
        self._links: dict[Pair, str] = {}
        self._states: dict[int, str] = {}

    # -- time passes -------------------------------------------------------------------------------------------------

    def look(self, now: float, at: int) -> None:
        """Once a second; `at` is the time of day in milliseconds."""
        self.now, self.at = now, at
        away = self._away()
        self.brokers.look(now, away)
        self._states = {one.id: self.brokers.state(one, now, away) for one in self.brokers}
        self._links = self._all_links()
        self.load.look([one for one in self.brokers if self._states[one.id] == UP], at)
        shape = orjson.dumps(self._overlay())
        if shape != self._shape:
            self._shape, self.version = shape, self.version + 1

    def unlaid(self) -> tuple[dict[int, str], list[Pair]] | None:
        """What has to be laid out anew: the cluster of each broker, and links."""
        clusters, links = {one.id: one.cluster for one in self.brokers}, list(self._links)
        return None if self.layout.fits(clusters, links) else (clusters, links)

    def _away(self) -> frozenset[str]:
        """When all are silent it may be Kafka that is: until that has answered, nothing is known. When it is back,
        brokers have to find it again."""
        told = self.told
        unasked = told.last_tap is not None and told.confirmed < told.last_tap + ASK_AFTER < self.now
        fresh = self.now - told.connected < _FRESH
        return frozenset([TAPS] if told.kafka.state in (AWAY, OFF) or unasked or fresh else [])

    def _all_links(self) -> dict[Pair, str]:
        ends: dict[Pair, int] = {}
        for one in self.brokers:
            for neighbour in one.links:
                if neighbour in self._states:
                    pair = min(one.id, neighbour), max(one.id, neighbour)
                    ends[pair] = ends.get(pair, 0) + 1
        return {pair: self._link_state(pair, many) for pair, many in sorted(ends.items())}

    def _link_state(self, pair: Pair, listed: int) -> str:
        states = {self._states[end] for end in pair}
        if DEAD in states:
            return DEAD
        return UNKNOWN if UNKNOWN in states else UP if listed == len(pair) else HALF

    # -- what the page gets ------------------------------------------------------------------------------------------

    def overlay(self) -> bytes:
        return self._shape

    def _overlay(self) -> dict[str, Any]:
        drawn = self.layout.drawn
        brokers = [one for one in self.brokers if one.id in drawn.places]
        return {
            "fields": BROKER_FIELDS,
            "brokers": [[one.id, one.cluster, one.strategy, one.edge, *drawn.places[one.id]] for one in brokers],
            "links": [
                [*pair, state, self._cost(pair)]
                for pair, state in self._links.items()
                if all(end in drawn.places for end in pair)
            ],
            "clusters": [list(circle) for circle in drawn.clusters],
            "choices": sorted({*self.figures.keys, *((one.cluster, one.strategy) for one in self.brokers)}),
        }

    def _cost(self, pair: Pair) -> int | None:
        costs = [link.cost for link in self._ends(pair) if link is not None and link.cost is not None]
        return max(costs, default=None)

    def _ends(self, pair: Pair) -> list[Any]:
        """The link as each end has it."""
        ends = [self.brokers.get(end) for end in pair]
        return [one and one.links.get(other) for one, other in zip(ends, reversed(pair), strict=True)]

    def pulse(self, choice: Choice, cost: Mapping[str, Any]) -> bytes:
        placed = self.layout.drawn.places
        figures = self.figures.newest(choice)
        return orjson.dumps(
            {
                "at": self.at,
                "version": self.version,
                "brokers": {str(one.id): self._broker(one) for one in self.brokers if one.id in placed},
                "links": [
                    [_rounded(link and link.rate) for link in self._ends(pair)]
                    for pair in self._links
                    if all(end in placed for end in pair)
                ],
                "load": _all_rounded(self.load.newest(choice, self.at)),
                "drops": _all_rounded(self._drops(choice)),
                "figures": figures,
                "age": self._age(),
                "sources": self._sources(),
                "missing": [one._asdict() for one in self._missing()],
                "cost": dict(cost) | {"skipped": self.told.skipped, "unreadable": self.told.unreadable},
            }
        )

    def _broker(self, one: Broker) -> list[Any]:
        silent = None if one.heard is None else round(self.now - one.heard, 1)
        numbers = (
            *(one.rates.get(name) for name in ("published", "delivered", "forwarded", "bytes_out", "dropped")),
            one.cpu,
        )
        states = (one.states.get(name) for name in ("clients", "subscriptions", "queued_bytes", "loop_lag_us"))
        state = self._states[one.id]
        return [state, silent if state != UP else None, *map(_rounded, numbers), *states, one.ready]

    def _drops(self, choice: Choice) -> dict[str, float]:
        found: dict[str, float] = {}
        for one in self.brokers:
            if choice.fits(one.cluster, one.strategy):
                for why, rate in one.drops.items():
                    found[why] = found.get(why, 0.0) + rate
        return found

    def _age(self) -> dict[str, float | None]:
        """Seconds, of the newest word of any broker and of the newest window."""
        heard = [one.heard for one in self.brokers if one.heard is not None]
        window = self.figures.newest(Choice())
        return {
            "brokers": round(self.now - max(heard), 1) if heard else None,
            "figures": None if window is None else round((self.at - window["end"]) / 1_000, 1),
        }

    def _taps(self) -> str:
        last = self.told.last_tap
        return THERE if last is not None and self.now - last <= _QUIET else EMPTY

    def _metrics(self) -> str:
        window = self.figures.newest(Choice())
        return THERE if window is not None and self.at - window["end"] <= _WINDOWLESS else EMPTY

    def _missing(self) -> list[Any]:
        return missing(self.told.kafka, self._taps(), self._metrics(), self.told.admin)

    def _sources(self) -> list[list[str]]:
        """Name, state and what there is to say of it."""
        kafka, admin = self.told.kafka, self.told.admin
        through = kafka.state if kafka.state in (OFF, AWAY) else ""
        return [
            ["admin ports", admin.state, admin.why or admin.where],
            ["taps", through or self._taps(), kafka.why or kafka.where],
            ["metrics", through or self._metrics(), kafka.why or kafka.where],
        ]

    # -- when asked for ----------------------------------------------------------------------------------------------

    def broker(self, id: int) -> dict[str, Any] | None:
        """All about one, but its tables, which only its admin port knows."""
        one = self.brokers.get(id)
        if one is None or id not in self._states:
            return None
        return {
            "id": one.id,
            "incarnation": one.incarnation,
            "cluster": one.cluster,
            "strategy": one.strategy,
            "edge": one.edge,
            "state": self._states[id],
            "ready": one.ready,
            "by": one.by or ("others" if one.told else ""),
            "silent": None if one.heard is None else round(self.now - one.heard, 1),
            "rates": _all_rounded(one.rates),
            "drops": _all_rounded(one.drops),
            "cpu": _rounded(one.cpu),
            "held": {name: value for name, value in one.states.items() if value is not None},
            "neighbours": [self._neighbour(pair, id) for pair in self._links if id in pair],
            "figures": self.figures.broker(id),
        }

    def _neighbour(self, pair: Pair, id: int) -> dict[str, Any]:
        other = pair[1] if pair[0] == id else pair[0]
        ends = dict(zip(pair, self._ends(pair), strict=True))
        mine, theirs = ends[id], ends[other]
        return {
            "id": other,
            "state": self._links[pair],
            "cost": self._cost(pair),
            "in": _rounded(mine and mine.rate),
            "out": _rounded(theirs and theirs.rate),
            "rtt_ms": next((end.rtt_ms for end in (mine, theirs) if end and end.rtt_ms is not None), None),
            "queued_bytes": mine and mine.queued,
        }

    def history(self, choice: Choice, minutes: int) -> dict[str, Any]:
        since = self.at - minutes * 60_000
        return {"figures": self.figures.history(choice, since), "load": self.load.history(choice, since)}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


def _all_rounded(numbers: Mapping[str, float] | None) -> dict[str, float | None] | None:
    return None if numbers is None else {name: _rounded(number) for name, number in numbers.items()}


__all__ = ["ADMIN", "State", "Told"]
