"""Taps of brokers that never were, with control rows, and with faults at chosen events: can the audit fail?

Brokers stand in a line and carry every event toward those that want it. Numpy says who does, from the numbers that
the filters were written with. What goes wrong is known, and the audit should find that and nothing else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from mercast.protocol.columns import COLUMNS
from mercast_streaming.synthetic import SECOND

Columns: TypeAlias = dict[str, Any]
Wrong: TypeAlias = tuple[str, tuple[int, int, int], int, str]
"""What, the event, the broker, the client."""

DROP, DOUBLE, MISROUTE, MISDELIVER = FAULTS = ("drop", "double", "misroute", "misdeliver")


@dataclass(frozen=True)
class Setting:
    seed: int = 1
    brokers: int = 5
    events: int = 500
    subscriptions: int = 40
    each: int = 2
    """Subscriptions of a client."""
    share: float = 0.05
    """Of the events that a subscription matches, about."""
    attributes: int = 6
    rate: int = 1_000
    """Events a second."""
    flush: int = 500
    """Rows in a message."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """How many of each."""
    start: int = 1_767_225_600 * SECOND


class Message(NamedTuple):
    topic: str
    broker: int
    value: bytes


class Taps(NamedTuple):
    messages: list[Message]
    wrong: set[Wrong]
    pairs: int
    """Of an event and a subscription that matches, before anything went wrong."""

    def write(self, folder: Path) -> None:
        """As brokers do."""
        folder.mkdir(parents=True, exist_ok=True)
        for message in self.messages:
            with (folder / f"{message.topic}-{message.broker}.jsonl").open("ab") as out:
                out.write(message.value + b"\n")


_TYPES = ("quote", "stock")  # a stock is a quote
_INCARNATION = 7
_SYMBOLS = np.array([f"s{number}" for number in range(10)])


def make(setting: Setting) -> Taps:
    world = _World(setting)
    return Taps(list(world.messages()), world.wrong, world.pairs)


class _World:
    def __init__(self, setting: Setting) -> None:
        self.setting, self.rng = setting, np.random.default_rng(setting.seed)
        self.wrong: set[Wrong] = set()
        self._invent_subscriptions()
        self._invent_events()
        self._match()
        self._fail()

    # -- what there is -------------------------------------------------------------------------------------------------

    def _invent_subscriptions(self) -> None:
        setting, rng, count = self.setting, self.rng, self.setting.subscriptions
        clients = np.arange(count) // setting.each
        self.client, self.request = clients, 1 + np.arange(count) % setting.each * 2
        self.home = clients % setting.brokers  # brokers by their places in the line
        self.type = [(*_TYPES, None)[number % 3] for number in range(count)]
        self.asks = rng.integers(0, setting.attributes, count)
        width = setting.share * 1000
        self.low = np.round(rng.uniform(0, 1000 - width, count), 2)
        self.high = np.round(self.low + width, 2)
        self.least = rng.integers(0, 100, count)

    def where(self, number: int) -> str:
        name, low, high = f"n{self.asks[number]}", self.low[number], self.high[number]
        return f"{name} BETWEEN {low} AND {high} AND volume >= {self.least[number]} AND symbol LIKE 's%'"

    def _invent_events(self) -> None:
        setting, rng, count = self.setting, self.rng, self.setting.events
        self.time = setting.start + 10 * SECOND + np.arange(count) * SECOND // setting.rate
        self.at = rng.integers(0, setting.brokers, count)
        self.of_type = rng.integers(0, len(_TYPES), count)
        self.numbers = np.round(rng.uniform(0, 1000, (setting.attributes, count)), 2)
        self.volume, self.symbol = rng.integers(0, 1000, count), rng.integers(0, len(_SYMBOLS), count)

    def _match(self) -> None:
        """Pairs of an event and a subscription, in order; a delivery for each event and client."""
        events, subscriptions = [], []
        for number in range(self.setting.subscriptions):
            asked = self.numbers[self.asks[number]]
            found = (asked >= self.low[number]) & (asked <= self.high[number]) & (self.volume >= self.least[number])
            if self.type[number] == _TYPES[1]:
                found &= self.of_type == 1
            events.append(np.flatnonzero(found))
            subscriptions.append(np.full(len(events[-1]), number))
        event, subscription = np.concatenate(events), np.concatenate(subscriptions)
        order = np.lexsort((subscription, event))
        event, subscription = event[order], subscription[order]
        self.pairs = len(event)
        client = self.client[subscription]
        first = np.flatnonzero((np.diff(event, prepend=-1) != 0) | (np.diff(client, prepend=-1) != 0))
        self.to_event, self.to_client = event[first], client[first]
        requests = self.request[subscription]
        self.to_requests = np.array([one.tolist() for one in np.split(requests, first[1:])] or [], dtype=object)
        if len(first) and len({len(one) for one in self.to_requests}) == 1:  # else numpy made a table of them
            packed = np.empty(len(first), dtype=object)
            packed[:] = [one.tolist() for one in np.split(requests, first[1:])]
            self.to_requests = packed
        self.to_home = self.home[np.minimum(self.to_client * self.setting.each, self.setting.subscriptions - 1)]
        self.wants = np.zeros((self.setting.events, self.setting.brokers), bool)
        self.wants[self.to_event, self.to_home] = True

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def _fail(self) -> None:
        self.kept, self.again = np.ones(len(self.to_event), bool), np.zeros(len(self.to_event), bool)
        self.given = self.to_client.copy()
        self.lost: list[tuple[int, int]] = []
        """Events, and the brokers that they do not reach."""
        self.strayed: list[tuple[int, int]] = []
        """Events, and the brokers that they come to and should not."""
        wanted = sum(self.setting.faults.values())
        events = np.unique(self.to_event)
        some = events[:: max(1, len(events) // max(1, 10 * wanted))]  # spread over all of the time
        far = [int(event) for event in some if self._end_of_way(int(event)) is not None]
        chosen = iter(far[:: max(1, len(far) // max(1, wanted))])
        for fault in FAULTS:
            for _ in range(self.setting.faults.get(fault, 0)):
                getattr(self, f"_{fault}")(next(chosen))

    def _end_of_way(self, event: int) -> int | None:
        """The broker furthest from the publisher's that wants it: if it does not get there, nobody else misses it."""
        wanted = [int(broker) for broker in np.flatnonzero(self.wants[event]) if broker != self.at[event]]
        return max(wanted, key=lambda broker: abs(broker - self.at[event]), default=None)

    def _deliveries(self, event: int, broker: int) -> list[int]:
        return np.flatnonzero((self.to_event == event) & (self.to_home == broker)).tolist()

    def _note(self, what: str, delivery: int, client: int) -> None:
        self.wrong.add(
            (what, self._id(int(self.to_event[delivery])), int(self.to_home[delivery]) + 1, f"client-{client}")
        )

    def _drop(self, event: int) -> None:
        broker = self._end_of_way(event)
        assert broker is not None
        self.lost.append((event, broker))
        for delivery in self._deliveries(event, broker):
            self.kept[delivery] = False
            self._note("missing", delivery, self.to_client[delivery])

    def _misroute(self, event: int) -> None:
        self._drop(event)
        ways = self._had(event)
        others = np.flatnonzero(~ways)
        others = others[others != self._end_of_way(event)]
        if len(others):
            self.strayed.append((event, int(others[0])))

    def _double(self, event: int) -> None:
        broker = self._end_of_way(event)
        assert broker is not None
        delivery = self._deliveries(event, broker)[0]
        self.again[delivery] = True
        self._note("doubled", delivery, self.to_client[delivery])

    def _misdeliver(self, event: int) -> None:
        broker = self._end_of_way(event)
        assert broker is not None
        delivery = self._deliveries(event, broker)[0]
        self.given[delivery] = 1_000_000 + broker  # a client without subscriptions
        self._note("missing", delivery, self.to_client[delivery])
        self._note("undue", delivery, self.given[delivery])

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _id(self, event: int) -> tuple[int, int, int]:
        return int(self.at[event]) + 1, _INCARNATION, event

    def _had(self, event: int) -> Any:
        return self._ways(np.array([event]))[0] | (np.arange(self.setting.brokers) == self.at[event])

    def _ways(self, events: Any) -> Any:
        """For each event and broker, whether a copy comes by."""
        wants, at = self.wants[events], self.at[events][:, None]
        brokers = np.arange(self.setting.brokers)
        right = np.logical_or.accumulate(wants[:, ::-1], axis=1)[:, ::-1] & (brokers > at)
        left = np.logical_or.accumulate(wants, axis=1) & (brokers < at)
        return right | left

    def _event_columns(self, events: Any) -> Columns:
        return {
            "event_broker": self.at[events] + 1,
            "event_incarnation": np.full(len(events), _INCARNATION),
            "event_sequence": events,
            "time": self.time[events],
        }

    def _published(self, broker: int) -> Columns:
        mine = np.flatnonzero(self.at == broker)
        rows = self._event_columns(mine)
        names = [f"n{number}" for number in range(self.setting.attributes)]
        table = self.numbers[:, mine].T.tolist()
        volumes, symbols = self.volume[mine].tolist(), _SYMBOLS[self.symbol[mine]].tolist()
        attributes = [
            orjson.dumps(dict(zip(names, values, strict=True), volume=volume, symbol=symbol)).decode()
            for values, volume, symbol in zip(table, volumes, symbols, strict=True)
        ]
        others = self.wants[mine].copy()
        others[:, broker] = False
        return rows | {
            "type": np.array(_TYPES)[self.of_type[mine]], "attributes": attributes,
            "destinations": others.sum(axis=1), "bytes": np.full(len(mine), 100),
            "matches": np.zeros(len(mine), int), "publisher": [f"publisher-{broker + 1}"] * len(mine),
            "at": rows["time"] + 20,
        }  # fmt: skip

    def _received(self, broker: int, ways: Any) -> Columns:
        coming = ways[:, broker].copy()
        for event, reached in self.lost:
            coming[event] &= reached != broker
        for event, reached in self.strayed:
            coming[event] |= reached == broker
        mine = np.flatnonzero(coming)
        rows, hops = self._event_columns(mine), np.abs(self.at[mine] - broker)
        wanted = self.wants[mine, broker]
        return rows | {
            "neighbour": broker + 1 - np.sign(broker - self.at[mine]), "hops": hops,
            "list_length": np.ones(len(mine), int), "copy": np.ones(len(mine), int), "interested": wanted,
            "taken": wanted, "made": np.zeros(len(mine), int), "at": rows["time"] + 100 + 300 * hops,
        }  # fmt: skip

    def _delivered(self, broker: int) -> Columns:
        mine = np.flatnonzero(self.kept & (self.to_home == broker))
        mine = np.sort(np.concatenate([mine, mine[self.again[mine]]]))
        rows = self._event_columns(self.to_event[mine])
        hops = np.abs(self.at[self.to_event[mine]] - broker)
        return rows | {
            "client": [f"client-{client}" for client in self.given[mine].tolist()],
            "subscriptions": self.to_requests[mine].tolist(), "hops": hops, "copy": np.ones(len(mine), int),
            "at": rows["time"] + 110 + 300 * hops,
        }  # fmt: skip

    def _control(self, broker: int) -> dict[str, list[dict[str, Any]]]:
        at = self.setting.start
        mine = np.flatnonzero(self.home == broker).tolist()
        neighbours = [one for one in (broker, broker + 2) if 1 <= one <= self.setting.brokers]
        return {
            "snapshot": [{"ends": ends, "rows": 0, "at": at} for ends in (False, True)],
            "declared": [
                {"type": "quote", "parent": None, "attributes": "{}", "at": at + 1},
                {"type": "stock", "parent": "quote", "attributes": "{}", "at": at + 1},
            ],
            "linked": [{"neighbour": one, "cost": 1, "at": at + 2} for one in neighbours],
            "advertised": [
                {"client": f"publisher-{broker + 1}", "request": 1, "type": "quote", "filter": "", "at": at + 3}
            ],
            "subscribed": [
                {
                    "client": f"client-{self.client[one]}", "request": int(self.request[one]), "type": self.type[one],
                    "filter": self.where(one), "echo": True, "settled_at": None, "at": at + 4,
                }
                for one in mine
            ],
            "settled": [
                {"client": f"publisher-{broker + 1}", "request": 1, "missing": [], "at": at + 9},
                *(
                    {"client": f"client-{self.client[one]}", "request": int(self.request[one]), "missing": [],
                     "at": at + SECOND}
                    for one in mine
                ),
            ],
        }  # fmt: skip

    def _ticks(self) -> Columns:
        """The last is so late that all events have had their time."""
        at = [self.setting.start, int(self.time[-1]) + 60 * SECOND]
        numbers: Columns = {column.name: [0, 0] for column in COLUMNS["tick"]}
        return numbers | {"dropped": [{}, {}], "clock_offset_us": [50, 50], "interval_us": [SECOND] * 2, "at": at}

    # -- messages ------------------------------------------------------------------------------------------------------

    def messages(self) -> Iterator[Message]:
        ways = self._ways(np.arange(self.setting.events))
        for broker in range(self.setting.brokers):
            control = {
                kind: {name: [row[name] for row in rows] for name in rows[0]}
                for kind, rows in self._control(broker).items()
                if rows
            }
            yield self._message("mercast.control", broker, 0, control)
            first = 0
            kinds = {
                "tick": self._ticks(), "published": self._published(broker), "received": self._received(broker, ways),
                "delivered": self._delivered(broker),
            }  # fmt: skip
            for kind, columns in kinds.items():
                for begin in range(0, len(columns["at"]), self.setting.flush):
                    part = {name: column[begin : begin + self.setting.flush] for name, column in columns.items()}
                    yield self._message("mercast.taps", broker, first, {kind: part})
                    first += len(part["at"])

    def _message(self, topic: str, broker: int, first: int, kinds: Mapping[str, Columns]) -> Message:
        count = sum(len(columns["at"]) for columns in kinds.values())
        header = {"version": 1, "broker": broker + 1, "incarnation": _INCARNATION, "cluster": "default"}
        plain = {
            kind: {name: column.tolist() if isinstance(column, np.ndarray) else column for name, column in some.items()}
            for kind, some in kinds.items()
        }
        value = orjson.dumps(header | {"strategy": "ddbr", "first": first, "count": count} | plain)
        return Message(topic, broker + 1, value)
