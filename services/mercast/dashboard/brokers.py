"""Brokers and links as far as taps and admin ports tell of them. Time is an argument, by a clock that nobody sets.

A broker that has spoken for itself (a tick, an answer of its admin port) is up while it goes on doing so, and dead when
it has been silent. Of one that never has, others' word counts. What cannot be known, as its source is away, is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from mercast.overlay.cluster import NUMBER
from mercast.protocol.repeated import column_of, columns_of

UP, DEAD, UNKNOWN = "up", "dead", "unknown"

SILENT = 3.5
"""Seconds without a sign of life: three ticks, and what Kafka takes."""

FORGET = 900.0
"""Seconds that a dead broker is shown."""

MOST = 2_000
"""Brokers: more cannot be drawn."""

MOST_NEIGHBOURS = 512
"""Of a broker, as others tell: nonsense in a row must not fill the memory."""

TAPS, ADMIN = "taps", "admin"
"""Where a sign of life comes from."""

RATES = ("published", "delivered", "forwarded", "bytes_in", "bytes_out", "bytes_to_clients", "dropped")
STATES = (
    "clients",
    "subscriptions",
    "advertisements",
    "types",
    "queued_bytes",
    "loop_lag_us",
    "clock_offset_us",
    "tap_lost",
)

_OVER = 5.0
"""Seconds that the rate of a link from taps is a mean over."""

_MICRO = 1_000_000


@dataclass(slots=True)
class Link:
    cost: int | None = None
    rate: float | None = None
    """Events a second that came by it; None if nobody counts them."""
    queued: int | None = None
    rtt_ms: float | None = None
    counted: int = 0
    """Since the last look, from taps; or since the broker's start, from its admin port."""


@dataclass(slots=True)
class Broker:
    id: int
    incarnation: int = 0
    cluster: str = ""
    strategy: str = ""
    edge: bool = False
    heard: float | None = None
    """When it last spoke for itself."""
    by: str = ""
    """And where."""
    told: tuple[float, bool] | None = None
    """When others last told of it, and whether they reach it."""
    known: float = 0.0
    """Since when."""
    ready: str = ""
    """Why clients should not come here."""
    cpu: float | None = None
    """Share of a processor."""
    rates: dict[str, float] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)
    drops: dict[str, float] = field(default_factory=dict)
    """A second, by reason."""
    links: dict[int, Link] = field(default_factory=dict)
    stale: set[int] | None = None
    """Neighbours that the snapshot which is being told has not named yet."""
    counters: tuple[float, dict[str, int], dict[str, int]] | None = None
    """As its admin port last told: when, counters, drops."""


class Brokers:
    def __init__(self) -> None:
        self._all: dict[int, Broker] = {}
        self._looked = 0.0
        self.newest_tick: int | None = None
        """Microseconds since 1970, by a broker's clock."""
        self.asked_every = 1.0
        """Seconds between two questions to an admin port."""

    def __iter__(self) -> Iterator[Broker]:
        return iter(sorted(self._all.values(), key=lambda one: (one.cluster, one.id)))

    def __len__(self) -> int:
        return len(self._all)

    def get(self, id: int) -> Broker | None:
        return self._all.get(id)

    def state(self, one: Broker, now: float, away: frozenset[str] = frozenset()) -> str:
        """`away` are the sources that nothing can come from."""
        if one.heard is not None:
            if now - one.heard <= (SILENT if one.by == TAPS else SILENT + self.asked_every - 1.0):
                return UP
            return UNKNOWN if one.by in away else DEAD
        if one.told is not None:
            when, reached = one.told
            return UNKNOWN if now - when > SILENT else UP if reached else DEAD
        return UNKNOWN if TAPS in away or now - one.known <= SILENT else DEAD

    # -- taps --------------------------------------------------------------------------------------------------------

    def take_tap(self, message: Mapping[str, Any], now: float) -> None:
        one = self._speaker(message, now)
        if one is None:
            return
        for row in rows(message, "tick"):
            self._tick(one, row, now)
        for neighbour, many in Counter(column_of(message.get("received", {}), "neighbour")).items():
            link = one.links.get(neighbour & NUMBER)
            if link is not None and one.by != ADMIN:
                link.counted += many

    def _tick(self, one: Broker, row: Mapping[str, Any], now: float) -> None:
        self.newest_tick = max(row.get("at") or 0, self.newest_tick or 0)
        if one.by == ADMIN and one.heard is not None and now - one.heard <= SILENT:
            _fill(one.states, row, ("loop_lag_us", "clock_offset_us", "tap_lost"))
            return  # the admin port says the same, and of each link too
        if one.by == ADMIN:
            for link in one.links.values():
                link.counted = 0
        one.heard, one.by = now, TAPS
        seconds = max(row.get("interval_us") or _MICRO, 1) / _MICRO
        one.drops = {why: many / seconds for why, many in (row.get("dropped") or {}).items()}
        one.rates = {name: (row.get(name) or 0) / seconds for name in RATES[:-1]} | {"dropped": sum(one.drops.values())}
        one.cpu = (row.get("cpu_us") or 0) / _MICRO / seconds
        _fill(
            one.states, row, ("clients", "subscriptions", "queued_bytes", "loop_lag_us", "clock_offset_us", "tap_lost")
        )

    def take_control(self, message: Mapping[str, Any], now: float) -> None:
        """Rows of one time are those of a snapshot, between its beginning and its end."""
        one = self._speaker(message, now)
        if one is None:
            return
        found = [
            (row.get("at") or 0, bool(row.get("ends")), rank, change, row)
            for rank, (kind, change) in enumerate(_CONTROL.items())
            for row in rows(message, kind)
        ]
        for *_, change, row in sorted(found, key=lambda each: each[:3]):
            change(one, row)

    def _speaker(self, message: Mapping[str, Any], now: float) -> Broker | None:
        """Who wrote it; a new life of a broker begins with nothing, and what is left of an old one does not count."""
        return self._begin(message.get("broker"), message.get("incarnation"), message, now)

    def _begin(self, id: Any, incarnation: Any, head: Mapping[str, Any], now: float) -> Broker | None:
        if not isinstance(id, int) or not isinstance(incarnation, int):
            return None
        one = self._known(id, now)
        if one is None or incarnation < one.incarnation:
            return None
        if incarnation > one.incarnation:
            fresh = Broker(id, incarnation, known=now, edge=one.edge, told=one.told)
            one = self._all[id] = fresh
        one.cluster, one.strategy = str(head.get("cluster") or ""), str(head.get("strategy") or "")
        return one

    def _known(self, id: int, now: float) -> Broker | None:
        if id not in self._all:
            if len(self._all) >= MOST:
                return None
            self._all[id] = Broker(id, known=now)
        return self._all[id]

    # -- admin ports -------------------------------------------------------------------------------------------------

    def take_counters(self, said: Mapping[str, Any], now: float) -> None:
        """What `/counters` of a broker answered."""
        one = self._begin(said.get("broker"), said.get("incarnation"), said, now)
        if one is None:
            return
        counted, drops = said["counted"], said["dropped"]
        if one.counters is not None and now > one.counters[0]:
            when, before, dropped = one.counters
            seconds = now - when
            one.rates = {name: (counted[name] - before[name]) / seconds for name in RATES[:-1]}
            one.drops = {why: (many - dropped.get(why, 0)) / seconds for why, many in drops.items()}
            one.drops = {why: rate for why, rate in one.drops.items() if rate}
            one.rates["dropped"] = sum(one.drops.values())
            one.cpu = (counted["cpu_us"] - before["cpu_us"]) / _MICRO / seconds
        self._take_links(one, said["links"], now)
        _fill(one.states, said, STATES)
        one.ready = "" if said["ready"] else str(said["reason"])
        one.counters, one.heard, one.by = (now, counted, drops), now, ADMIN

    def _take_links(self, one: Broker, said: Iterable[Mapping[str, Any]], now: float) -> None:
        """An edge may be linked to the same broker in two clusters: here these are one."""
        totals: Counter[int] = Counter()
        queued: Counter[int] = Counter()
        for row in said:
            totals[row["neighbour"]] += row["received"]
            queued[row["neighbour"]] += row["queued_bytes"]
        before = one.links
        one.links = {}
        for neighbour, total in totals.items():
            old = before.get(neighbour)
            link = one.links[neighbour] = old or Link()
            link.queued = queued[neighbour]
            if old is not None and one.by == ADMIN and one.counters is not None and now > one.counters[0]:
                link.rate = max(0, total - link.counted) / (now - one.counters[0])
            link.counted = total

    def take_overlay(self, said: Mapping[str, Any], now: float) -> None:
        """What `/overlay` of a broker answered: the word of others about those who do not speak for themselves."""
        me = said["broker"]
        home = {"cluster": me["cluster"], **said}
        for view in (home, *said.get("others", ())):
            self._take_view(me, view, now)
        own = self._all.get(me["id"])
        for link in chain(said["links"], *(view["links"] for view in said.get("others", ()))):
            if own is not None and link["neighbour"] in own.links:
                own.links[link["neighbour"]].rtt_ms = link["rtt_ms"]

    def _take_view(self, me: Mapping[str, Any], view: Mapping[str, Any], now: float) -> None:
        also = {member["id"]: member["also_in"] for member in view["members"]}
        reached = {one["id"]: one["reachable"] for one in view["overlay"]["brokers"]}
        for id in sorted(also.keys() | reached.keys()):
            one = self._known(id, now)
            if one is None:
                continue
            one.told = now, reached.get(id, False)
            one.edge = one.edge or bool(also.get(id))
            if not one.cluster or one.heard is None:
                one.cluster = one.cluster or view["cluster"]
                one.strategy = one.strategy or me["strategy"]
        self._take_told_links(view["overlay"]["links"], reached)

    def _take_told_links(self, links: Iterable[Mapping[str, Any]], reached: Mapping[int, bool]) -> None:
        listed: dict[int, dict[int, int]] = {}
        for link in links:
            for end, other in (link["between"], link["between"][::-1]):
                listed.setdefault(end, {})[other] = link["cost"]
        for id in reached:
            one = self._all.get(id)
            if one is None:
                continue
            for neighbour, cost in listed.get(id, {}).items():
                if neighbour in one.links or one.heard is None:
                    one.links.setdefault(neighbour, Link()).cost = cost
            if one.heard is None:
                one.links = {other: link for other, link in one.links.items() if other in listed.get(id, {})}

    # -- time passes -------------------------------------------------------------------------------------------------

    def look(self, now: float, away: frozenset[str] = frozenset()) -> None:
        """Once a second or so: rates of links from taps; those who have been dead for long are forgotten."""
        seconds, self._looked = now - self._looked, now
        share = min(1.0, seconds / _OVER)
        for one in list(self._all.values()):
            state = self.state(one, now, away)
            if state != UP:
                one.rates, one.drops, one.cpu = {}, {}, None
                for link in one.links.values():
                    link.rate = None
            if one.by == TAPS:
                for link in one.links.values():
                    new = link.counted / seconds if seconds else 0.0
                    link.rate = (
                        None if state != UP else new if link.rate is None else link.rate + share * (new - link.rate)
                    )
                    link.rate = 0.0 if link.rate is not None and link.rate < _LEAST else link.rate
                    link.counted = 0
            last = max(one.heard or one.known, one.told[0] if one.told and one.told[1] else 0.0)
            if state == DEAD and now - last > FORGET:
                del self._all[one.id]


_LEAST = 0.05
"""Events a second: less is nothing."""


def rows(message: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Of a message, which holds them as columns; nothing of a kind that is not as it should be."""
    said = message.get(kind)
    if not isinstance(said, dict):
        return
    try:
        columns = columns_of(said)
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    lists = [one for one in columns.values() if isinstance(one, list)]
    if len(lists) == len(columns):
        for values in zip(*lists, strict=False):
            yield dict(zip(columns, values, strict=True))


def _fill(states: dict[str, int | None], said: Mapping[str, Any], names: Iterable[str]) -> None:
    states.update({name: said[name] for name in names if name in said})


# -- control rows ------------------------------------------------------------------------------------------------------


def _snapshot(one: Broker, row: Mapping[str, Any]) -> None:
    if not row.get("ends"):
        one.stale = set(one.links)
        if one.by != ADMIN:
            one.states |= {"advertisements": 0, "types": 0}
    elif one.stale is not None:
        for neighbour in one.stale:
            one.links.pop(neighbour, None)
        one.stale = None


def _linked(one: Broker, row: Mapping[str, Any]) -> None:
    neighbour = row["neighbour"] & NUMBER
    if len(one.links) < MOST_NEIGHBOURS or neighbour in one.links:
        one.links.setdefault(neighbour, Link()).cost = row.get("cost")
    one.edge = one.edge or row["neighbour"] != neighbour
    if one.stale is not None:
        one.stale.discard(neighbour)


def _unlinked(one: Broker, row: Mapping[str, Any]) -> None:
    one.links.pop(row["neighbour"] & NUMBER, None)


def _more(name: str, by: int) -> Any:
    def change(one: Broker, _: Mapping[str, Any]) -> None:
        if one.by != ADMIN:
            one.states[name] = max(0, (one.states.get(name) or 0) + by)

    return change


_CONTROL = {
    "snapshot": _snapshot,
    "linked": _linked,
    "unlinked": _unlinked,
    "advertised": _more("advertisements", 1),
    "unadvertised": _more("advertisements", -1),
    "declared": _more("types", 1),
}
