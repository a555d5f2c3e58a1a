"""A load end that publishes: as fast as is acknowledged, or at a fixed rate. A helper process of the benches."""

import select
import time
from pathlib import Path
from typing import Any

from mercast_loadtest.bench.dialects import COUNT, DIALECTS, connect, received
from mercast_loadtest.bench.frames import Frames
from mercast_loadtest.bench.processes import begun, commands, say

_BURSTS = 4
"""A window is sent in about so many writes."""

TICK = 1e-3
"""Seconds between two writes at a fixed rate."""

PATIENCE = 10.0
"""Seconds without any acknowledgement before no more are waited for."""

FIRST = 2
"""The number of the first publish; the advertisement has 1."""


class Source:
    def __init__(self, told: dict[str, Any]) -> None:
        self._frames = Frames.load(Path(told["frames"]))
        self._dialect = DIALECTS[told["dialect"]]()
        self._connection = connect(told["address"])
        self._dialect.publisher(self._connection, told)
        self._sink = connect(told["sink"]) if told.get("sink") else None
        self._counts = b""
        self._sent = self._receipts = self._arrived = 0

    def flood(self, seconds: float, window: int) -> dict[str, Any]:
        """At most `window` events are without receipt (where there are receipts), and as many on their way to the
        sink (where it tells)."""
        before, began = self._sent, time.monotonic()
        burst = max(1, window // _BURSTS)
        while time.monotonic() < began + seconds:
            room = window - self._open()
            self._listen(0.0 if room >= burst else 0.1)
            if room >= burst:
                self._send(burst, time.monotonic_ns())
        return self._done(before, began)

    def steady(self, seconds: float, rate: float) -> dict[str, Any]:
        """What is late is late: times are those at which events were due."""
        before, began = self._sent, time.monotonic()
        for tick in range(round(seconds / TICK)):
            due = began + tick * TICK
            time.sleep(max(0.0, due - time.monotonic()))
            count = int((tick + 1) * rate * TICK) - int(tick * rate * TICK)
            if count:
                self._send(count, int(1e9 * due))
            self._listen(0.0)
        return self._done(before, began)

    def _open(self) -> int:
        """Events not acknowledged by whoever is slower."""
        behind = [self._sent - self._receipts] if self._dialect.receipts else []
        return max([*behind, self._sent - self._arrived] if self._sink else behind, default=0)

    def _send(self, count: int, due: int) -> None:
        self._connection.sendall(self._frames.run(FIRST + self._sent, count, due))
        self._sent += count

    def _listen(self, timeout: float) -> bool:
        """Take in what has been acknowledged; whether there was anything."""
        listened = [self._connection, self._sink] if self._sink else [self._connection]
        readable = select.select(listened, [], [], timeout)[0]
        for connection in readable:
            data = received(connection)
            if connection is self._connection:
                self._receipts += self._dialect.acknowledged(connection, data)
            else:
                self._count(self._counts + data)
        return bool(readable)

    def _count(self, counts: bytes) -> None:
        """The sink tells how many it has in all, again and again: the newest counts."""
        whole = len(counts) // COUNT.size * COUNT.size
        if whole:
            (self._arrived,) = COUNT.unpack_from(counts, whole - COUNT.size)
        self._counts = counts[whole:]

    def _done(self, before: int, began: float) -> dict[str, Any]:
        sending = time.monotonic() - began
        while self._open() and self._listen(PATIENCE):
            pass
        published, first = self._sent - before, FIRST + before
        return {"first": first, "published": published, "began": began, "sending": sending}


def main() -> None:
    source = Source(begun())
    say("ready")
    for command in commands():
        does = source.flood if command.pop("command") == "flood" else source.steady
        say(does(**command))


if __name__ == "__main__":
    main()
