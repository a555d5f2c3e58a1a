"""Taps of brokers that never were: seeded rows with known latencies, copies, losses and interest.

`make` answers tap messages as brokers write them, and the figures that follow from their rows, worked out by numpy
alone. So tests can ask whether the live metrics are right, and benches have as many rows as they want.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from mercast.protocol.columns import EVENT_ROWS, VERSION
from mercast.protocol.repeated import FROM, OF, ROWS, RUNS, SHORTER

SECOND = 1_000_000
Columns: TypeAlias = dict[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    seed: int = 1
    start: int = 1_767_225_600 * SECOND
    """Microseconds since 1970; the first window begins here."""
    seconds: int = 20
    window: int = 5
    clusters: dict[str, str] = field(default_factory=lambda: {"alpha": "merc"})
    """Their names, and the strategy of each."""
    brokers: int = 5
    """In each cluster; at least 5, so that an event's destinations differ."""
    rate: int = 200
    """Events a second in each cluster."""
    lost: float = 0.02
    """Share of the entries of destination lists that do not reach their broker."""
    doubled: float = 0.01
    """Share of receipts, and of deliveries, that come again."""
    relayed: float = 0.3
    """Share of the entries that take a way through a broker without interest."""
    negative: float = 0.001
    """Share of deliveries from before their event: clocks differ."""
    latency_us: float = 1500.0
    """Median; the others are spread about it, lognormally."""
    spread: float = 0.6
    flush: int = 250_000
    """Microseconds of rows in one message."""


class Message(NamedTuple):
    at: int
    """When it is sent, in microseconds."""
    broker: int
    value: bytes


Key: TypeAlias = tuple[int, str, str, int | None]
"""Start of the window, strategy, cluster, broker; no broker: the whole cluster."""


class Taps(NamedTuple):
    messages: list[Message]
    known: dict[Key, dict[str, Any]]
    rows: int


def make(setting: Setting) -> Taps:
    messages: list[Message] = []
    known: dict[Key, dict[str, Any]] = {}
    rows = 0
    for number, (cluster, strategy) in enumerate(setting.clusters.items()):
        brokers = np.arange(setting.brokers) + 1 + number * setting.brokers
        kinds = _rows(setting, np.random.default_rng((setting.seed, number)), brokers)
        messages += _messages(setting, kinds, brokers.tolist(), cluster, strategy)
        known |= dict(_known(setting, kinds, brokers.tolist(), cluster, strategy))
        rows += sum(len(columns["at"]) for columns in kinds.values())
    messages.sort(key=lambda message: message.at)
    return Taps(messages, known, rows)


def ending(setting: Setting) -> list[Message]:
    """A tick of each cluster's first broker, so late that all windows of `setting` close."""
    at = setting.start + (setting.seconds + 60) * SECOND
    found = []
    for number, (cluster, strategy) in enumerate(setting.clusters.items()):
        broker = 1 + number * setting.brokers
        tick = {name: [0] for name in _TICK} | {"at": [at], "dropped": [{}]}
        header = _header(broker, cluster, strategy) | {"first": 1_000_000_000, "count": 1, "tick": tick}
        found.append(Message(at, broker, orjson.dumps(header)))
    return found


_TICK = (
    "interval_us", "published", "delivered", "forwarded", "bytes_in", "bytes_out", "bytes_to_clients", "matches",
    "clients", "links", "subscriptions", "queued_bytes", "loop_lag_us", "tap_lost", "clock_offset_us", "cpu_us",
)  # fmt: skip
_WHY = ["hop limit", "no route", "stale"]


def _rows(setting: Setting, rng: np.random.Generator, brokers: np.ndarray) -> dict[str, Columns]:
    """What the brokers of one cluster would write, by kind; `broker` is who writes the row."""
    events = setting.rate * setting.seconds
    time = setting.start + np.sort(rng.integers(0, setting.seconds * SECOND, events))
    publisher = rng.integers(0, len(brokers), events)
    destinations = rng.integers(1, 4, events)
    event = {"event_broker": brokers[publisher], "event_incarnation": np.full(events, setting.start // 1000)}
    event |= {"event_sequence": np.arange(events), "time": time}
    published = event | {
        "broker": brokers[publisher],
        "at": time,
        "destinations": destinations,
        "bytes": rng.integers(100, 900, events),
        "matches": rng.integers(0, 5, events),
    }
    # An entry per destination: distinct brokers, never the publisher's.
    of = np.repeat(np.arange(events), destinations)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(destinations) - destinations, destinations)
    offset = 1 + (rng.integers(0, len(brokers) - 1, events)[of] + nth) % (len(brokers) - 1)
    broker = brokers[(publisher[of] + offset) % len(brokers)]
    reached = rng.random(len(of)) >= setting.lost
    received = _received(setting, rng, {name: column[of][reached] for name, column in event.items()}, broker[reached])
    wanted = received["taken"] & received["interested"] & (received["copy"] == 1)
    dropped = {name: column[of][~reached] for name, column in event.items()}
    dropped |= {"broker": dropped["event_broker"], "at": dropped["time"] + rng.integers(0, 900, len(dropped["time"]))}
    dropped["why"] = rng.choice(_WHY, len(dropped["at"]))
    return {
        "published": published,
        "received": received,
        "delivered": _delivered(setting, rng, {name: column[wanted] for name, column in received.items()}),
        "dropped": dropped,
        "tick": _ticks(setting, rng, brokers),
    }


def _received(setting: Setting, rng: np.random.Generator, event: Columns, broker: np.ndarray) -> Columns:
    relayed = rng.random(len(broker)) < setting.relayed
    taken = np.concatenate([np.ones(len(broker), bool), np.zeros(relayed.sum(), bool)])
    rows = {name: np.concatenate([column, column[relayed]]) for name, column in event.items()}
    count = len(taken)
    rows |= {
        "broker": np.concatenate([broker, broker[relayed]]),
        "at": rows["time"] + rng.integers(50, 5000, count),
        "neighbour": rng.integers(1, 9, count),
        "hops": rng.integers(1, 6, count),
        "list_length": rng.integers(1, 9, count),
        "copy": np.ones(count, int),
        "interested": taken & (rng.random(count) < 0.9),  # noqa: PLR2004 - an edge that carries, too, is a destination
        "taken": taken,
        "made": np.where(rng.random(count) < 0.05, 2, 0) * taken,  # noqa: PLR2004
    }
    # What an edge makes is neither reached nor lost here: it is somebody else's row.
    again = rng.random(count) < setting.doubled
    for name, column in rows.items():
        rows[name] = np.concatenate([column, column[again]])
    rows["copy"][count:] = 2
    return rows


def _delivered(setting: Setting, rng: np.random.Generator, event: Columns) -> Columns:
    names = ("event_broker", "event_incarnation", "event_sequence", "time", "broker", "hops")
    rows = {name: event[name] for name in names}
    count = len(rows["time"])
    latency = np.exp(rng.normal(np.log(setting.latency_us), setting.spread, count)).astype(int)
    latency = np.where(rng.random(count) < setting.negative, -1 - latency, latency)
    client = np.char.add("client-", rng.integers(0, 50, count).astype(str))
    rows |= {"at": rows["time"] + latency, "client": client, "copy": np.ones(count, int)}
    again = rng.random(count) < setting.doubled
    rows = {name: np.concatenate([column, column[again]]) for name, column in rows.items()}
    rows["copy"][count:] = 2
    return rows


def _ticks(setting: Setting, rng: np.random.Generator, brokers: np.ndarray) -> Columns:
    at = setting.start + SECOND * np.repeat(np.arange(setting.seconds), len(brokers)) + SECOND // 2
    count = len(at)
    rows: Columns = {name: rng.integers(0, 1000, count) for name in _TICK}
    rows |= {"interval_us": np.full(count, SECOND), "at": at, "broker": np.tile(brokers, setting.seconds)}
    rows["dropped"] = np.array([{why: int(rng.integers(1, 5)) for why in _WHY[: n % 4]} for n in range(count)])
    return rows


def _header(broker: int, cluster: str, strategy: str) -> dict[str, Any]:
    return {"version": VERSION, "broker": broker, "incarnation": 1, "cluster": cluster, "strategy": strategy}


def _messages(
    setting: Setting, kinds: dict[str, Columns], brokers: list[int], cluster: str, strategy: str
) -> Iterator[Message]:
    """Each broker's rows in the order in which they happened, a message per flush."""
    for broker in brokers:
        first = 0
        flushes: dict[int, dict[str, Columns]] = {}
        for kind, columns in kinds.items():
            mine = np.flatnonzero(columns["broker"] == broker)
            mine = mine[np.argsort(columns["at"][mine], kind="stable")]
            turns = columns["at"][mine] // setting.flush
            starts = np.flatnonzero(np.diff(turns, prepend=-1)).tolist()
            for begin, end in zip(starts, [*starts[1:], len(mine)], strict=True):
                chosen = mine[begin:end]
                some = {name: column[chosen] for name, column in columns.items() if name != "broker"}
                flushes.setdefault(int(turns[begin]), {})[kind] = some
        for turn, packed_kinds in sorted(flushes.items()):
            count = sum(len(columns["at"]) for columns in packed_kinds.values())
            header = _header(broker, cluster, strategy) | {"first": first, "count": count}
            packed = {kind: _packed(kind, columns) for kind, columns in packed_kinds.items()}
            value = orjson.dumps(header | packed, option=orjson.OPT_SERIALIZE_NUMPY)
            yield Message((turn + 1) * setting.flush, broker, value)
            first += count


def _packed(kind: str, columns: Columns) -> dict[str, Any]:
    """As brokers write them: as runs, of rows about events, where the same value follows itself again and again, or the
    numbers of events follow each other."""
    packed: dict[str, Any] = {}
    runs: dict[str, Any] = {}
    for name, column in columns.items():
        rises = name == "event_sequence"
        follows = column[1:] == (column[:-1] + 1 if rises else column[:-1])
        starts = np.flatnonzero(np.append(True, ~follows))
        if kind in EVENT_ROWS and len(starts) * SHORTER <= len(column):
            runs[name] = {FROM if rises else OF: _plain(column[starts]), ROWS: np.diff(starts, append=len(column))}
        else:
            packed[name] = _plain(column)
    return packed | ({RUNS: runs} if runs else {})


def _plain(column: np.ndarray) -> Any:
    """orjson writes arrays of numbers and bools as they are, and others as lists."""
    return column.tolist() if column.dtype.kind in "OU" else np.ascontiguousarray(column)


# -- what follows from the rows ----------------------------------------------------------------------------------------


def _known(
    setting: Setting, kinds: dict[str, Columns], brokers: list[int], cluster: str, strategy: str
) -> Iterator[tuple[Key, dict[str, Any]]]:
    """By the names that the live metrics have for it."""
    length = setting.window * SECOND
    placed = {kind: columns["at" if kind in ("delivered", "tick") else "time"] for kind, columns in kinds.items()}
    starts = {kind: when // length * length for kind, when in placed.items()}
    for start in sorted(set(np.concatenate(list(starts.values())).tolist())):
        for broker in (*brokers, None):
            here = {
                kind: {name: column[(starts[kind] == start) & _by(broker, columns)] for name, column in columns.items()}
                for kind, columns in kinds.items()
            }
            if any(len(columns["at"]) for columns in here.values()):
                yield (start, strategy, cluster, broker), _figures(here)


def _by(broker: int | None, columns: Columns) -> Any:
    return True if broker is None else columns["broker"] == broker


def _figures(kinds: dict[str, Columns]) -> dict[str, Any]:
    published, received, delivered, tick = (kinds[kind] for kind in ("published", "received", "delivered", "tick"))
    first = received["copy"] == 1
    latency = delivered["at"] - delivered["time"]
    made = int(published["destinations"].sum() + received["made"][first].sum())
    reached = int(received["taken"][first].sum())
    drops: dict[str, int] = {}
    for dropped in tick["dropped"]:
        for why, count in dropped.items():
            drops[why] = drops.get(why, 0) + count
    return {
        "published": len(published["at"]),
        "payload_bytes": int(published["bytes"].sum()),
        "receipts": int(first.sum()),
        "doubled_receipts": int((~first).sum()),
        "deliveries": int((delivered["copy"] == 1).sum()),
        "doubled_deliveries": int((delivered["copy"] != 1).sum()),
        "latency_p50_us": _percentile(latency, 50),
        "latency_p95_us": _percentile(latency, 95),
        "latency_p99_us": _percentile(latency, 99),
        "latency_max_us": int(latency.max()) if len(latency) else None,
        "negative_latencies": int((latency < 0).sum()),
        "accuracy": _share(received["interested"][first].sum(), first.sum()),
        "hops": _share(received["hops"].sum(), len(first)),
        "list_length": _share(received["list_length"].sum(), len(first)),
        "entries_made": made,
        "entries_reached": reached,
        "completeness": _share(reached, made),
        "dropped": len(kinds["dropped"]["at"]),
        "all_drops": drops,
        "matches_per_event": _share(tick["matches"].sum(), tick["published"].sum()),
        "bytes_per_delivery": _share(tick["bytes_out"].sum(), tick["delivered"].sum()),
        **{f"all_{name}": int(tick[name].sum()) for name in _COUNTED},
        **{name: int(tick[name].sum()) for name in ("cpu_us", "tap_lost")},
        **{name: int(tick[name].max()) if len(tick["at"]) else None for name in _PEAKS},
        **{name: _sum_of_means(tick, name) for name in ("clients", "links", "subscriptions")},
        "ticks": len(tick["at"]),
        **dict.fromkeys(("late", "ahead", "malformed", "newer"), 0),
    }


_COUNTED = ("published", "delivered", "forwarded", "matches", "bytes_in", "bytes_out", "bytes_to_clients")
_PEAKS = ("queued_bytes", "loop_lag_us", "clock_offset_us")


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def _percentile(values: np.ndarray, rank: int) -> float | None:
    return float(np.percentile(values, rank)) if len(values) else None


def _sum_of_means(tick: Columns, name: str) -> float | None:
    means = [float(tick[name][tick["broker"] == broker].mean()) for broker in np.unique(tick["broker"])]
    return round(sum(means), 3) if means else None


# -- against what a job has found --------------------------------------------------------------------------------------

STATED = 0.01
"""Error of latencies: half a cell of the histogram, of the latency and a microsecond."""


def key_of(row: dict[str, Any]) -> Key:
    return round(row["window_start"].timestamp()) * SECOND, row["strategy"], row["cluster"], row["broker"]


def differences(found: dict[Key, dict[str, Any]], known: dict[Key, dict[str, Any]]) -> list[str]:
    """What is missing, or too much, or not as known."""
    said = [f"missing: {key}" for key in known if key not in found] + [f"undue: {key}" for key in found.keys() - known]
    for key in known.keys() & found:
        for name, right in known[key].items():
            if not _equal(name, found[key][name], right):
                said.append(f"{key}: {name} is {found[key][name]}, not {right}")
    return said


def _equal(name: str, found: Any, right: Any) -> bool:
    if not isinstance(right, float) or found is None:
        return bool(found == right)
    error = STATED * (abs(right) + 1) + 0.1 if name.startswith("latency") else 1e-6 * abs(right)
    return bool(abs(found - right) <= error)
