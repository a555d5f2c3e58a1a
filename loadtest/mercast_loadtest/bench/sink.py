"""A load end that counts what arrives, and how late. A helper process of the benches."""

import select
import socket
import sys
import time
from typing import Any

import numpy as np

from mercast_loadtest.bench.dialects import COUNT, DIALECTS, READ, connect
from mercast_loadtest.bench.processes import begun, commands, say

QUANTILES = (50, 95, 99)


class Sink:
    def __init__(self, told: dict[str, Any]) -> None:
        self._make = DIALECTS[told["dialect"]]
        self._dialects: dict[socket.socket, Any] = {}
        self._rest: dict[socket.socket, bytes] = {}
        self._told = 0
        """Of the events, in all: what publishers hear."""
        self.counters = _listening()
        """Where publishers hear how many have arrived."""
        self.events = _listening()
        """Where events come in, if nobody is asked for them."""
        self._publishers: list[socket.socket] = []
        self.reset(False)
        for asked in told.get("connections", ()):
            connection, dialect = connect(asked["address"]), self._make()
            dialect.subscriber(connection, asked)
            self._add(connection, dialect)

    def _add(self, connection: socket.socket, dialect: Any) -> None:
        self._dialects[connection], self._rest[connection] = dialect, b""

    def reset(self, timing: bool) -> None:
        """Count from nought; with `timing` also how late each event is."""
        self._arrived, self._last = 0, 0.0
        self._timing, self._late = timing, list[int]()

    def serve(self) -> None:
        """Until there are no more commands."""
        told = commands()
        stdin = sys.stdin.fileno()
        by_number = {one.fileno(): one for one in (self.counters, self.events, *self._dialects)}
        while True:
            for number in select.select([stdin, *by_number], [], [])[0]:
                one = by_number.get(number)
                if one is None:
                    command = next(told, None)
                    if command is None:
                        return
                    self._obey(command)
                elif one is self.counters:
                    self._publishers.append(one.accept()[0])
                elif one is self.events:
                    came = one.accept()[0]
                    self._add(came, self._make())
                    by_number[came.fileno()] = came
                elif not self._take(one):
                    del by_number[number]

    def _take(self, connection: socket.socket) -> bool:
        """What can be read now; whether there may be more."""
        data = connection.recv(READ)
        if not data:
            del self._dialects[connection], self._rest[connection]
            return False
        now = time.monotonic_ns()
        late = self._late
        data = self._rest[connection] + data
        take = (lambda due: late.append(now - int.from_bytes(due, "big"))) if self._timing else None
        events, done = self._dialects[connection].count(connection, data, take)
        self._rest[connection] = data[done:]
        if events:
            self._arrived += events
            self._told += events
            self._last = now / 1e9
            for publisher in self._publishers:
                publisher.sendall(COUNT.pack(self._told))
        return True

    def _obey(self, command: dict[str, Any]) -> None:
        if command["command"] == "reset":
            self.reset(command["timing"])
            say("reset")
        else:
            say(self._report())

    def _report(self) -> dict[str, Any]:
        late = np.percentile(self._late, QUANTILES) / 1e6 if self._late else [0.0] * len(QUANTILES)
        quantiles = {f"p{quantile}_ms": float(value) for quantile, value in zip(QUANTILES, late, strict=True)}
        return {"arrived": self._arrived, "last": self._last} | quantiles


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def main() -> None:
    sink = Sink(begun())
    ports = [one.getsockname()[1] for one in (sink.counters, sink.events)]
    say([f"127.0.0.1:{port}" for port in ports])
    sink.serve()


if __name__ == "__main__":
    main()
