"""The path of an event: its rows, found in messages as they were written, be they in memory, files or Parquet.

Messages are kept as bytes: that is small, costs nothing as they come, and few are ever looked into.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from mercast.content.event import EventId
from mercast.dashboard.brokers import rows
from mercast.overlay.cluster import NUMBER
from mercast.protocol.columns import EVENT_ROWS
from mercast.protocol.repeated import column_of

RECENT_BYTES = 32 * 1024 * 1024
"""Some 270,000 rows of a load of stock quotes."""

MOST_ROWS = 1_000
"""Of one event: a path that long is read by nobody."""

_ID = ("event_broker", "event_incarnation", "event_sequence")


def parse_id(text: str) -> EventId:
    """Broker, incarnation and sequence, however they are parted; ValueError says what would be right."""
    numbers = re.findall(r"\d+", text[:200])
    if len(numbers) != len(_ID):
        raise ValueError("an event id is three numbers: broker, incarnation, sequence, such as 3.1763380000000.17")
    return EventId(*map(int, numbers))


class Recent:
    """The newest messages; the oldest go when there are too many bytes."""

    def __init__(self, most: int = RECENT_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._messages: deque[bytes] = deque()
        self._last: EventId | None = None

    def take(self, value: bytes, message: Mapping[str, Any]) -> None:
        if not any(kind in message for kind in EVENT_ROWS):
            return
        self._messages.append(value)
        self._bytes += len(value)
        while self._bytes > self._most:
            self._bytes -= len(self._messages.popleft())
        published = message.get("published")
        if published and column_of(published, "event_sequence"):
            self._last = EventId(*(column_of(published, name)[-1] for name in _ID))

    @property
    def last(self) -> EventId | None:
        """The newest event that was published."""
        return self._last

    def __iter__(self) -> Iterator[bytes]:
        return iter(tuple(self._messages))


def path(event: EventId, messages: Iterable[bytes]) -> list[dict[str, Any]]:
    """Its rows, in the order of time, and each once: what is in memory may be in files too."""
    sequence = str(event.sequence).encode()
    found: dict[bytes, dict[str, Any]] = {}
    for value in messages:
        if sequence in value and len(found) < MOST_ROWS:
            for row in _rows(event, value):
                found[orjson.dumps(row)] = row
    return sorted(found.values(), key=lambda row: (row["at"], _ORDER[row["kind"]]))


_ORDER = {kind: place for place, kind in enumerate(("published", "received", "delivered", "dropped"))}


def _rows(event: EventId, value: bytes) -> Iterator[dict[str, Any]]:
    try:
        message = orjson.loads(value)
    except orjson.JSONDecodeError:
        return
    for kind in EVENT_ROWS:
        if event.sequence in column_of(message.get(kind, {}), "event_sequence"):
            for row in rows(message, kind):
                if tuple(row.get(name) for name in _ID) == event:
                    yield _told(kind, message["broker"], row)


def _told(kind: str, broker: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Without attributes: the page shows ways, not contents."""
    at = row["time"] if kind == "published" else row["at"]  # its row is written after the turn, others may be before
    told = {"kind": kind, "broker": broker, "at": at, "time": row["time"]}
    told |= {name: row[name] for name in _TOLD if name in row}
    if "neighbour" in row:
        told["neighbour"] = row["neighbour"] & NUMBER
    return told


_TOLD = ("type", "destinations", "matches", "hops", "list_length", "copy", "interested", "made", "client", "why")
