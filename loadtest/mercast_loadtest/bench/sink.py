"""A load end that counts what arrives, and how late. A helper process of the benches."""

import select
import socket
import sys
import time
from typing import Any

import numpy as np

from mercast_loadtest.bench.dialects import COUNT, DIALECTS, READ, connect
from mercast_loadtest.bench.processes import begun, commands, say

_QUANTILES = (50, 95, 99)


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
        stdin = sys.stdin.buffer
        while True:
            readable = select.select([stdin, self.counters, self.events, *self._dialects], [], [])[0]
            for one in readable:
                if one is stdin:
                    if not self._obey():
                        return
                elif one is self.counters:
                    self._publishers.append(one.accept()[0])
                elif one is self.events:
                    self._add(one.accept()[0], self._make())
                else:
                    self._take(one)

    def _take(self, connection: socket.socket) -> None:
        data = connection.recv(READ)
        if not data:
            del self._dialects[connection], self._rest[connection]
            return
        now = time.monotonic_ns()
        late = self._late
        data = self._rest[connection] + data
        take = (lambda due: late.append(now - int.from_bytes(due, "big"))) if self._timing else None
        events, done = self._dialects[connection].count(connection, data, take)
        self._rest[connection] = data[done:]
        if not events:
            return
        self._arrived += events
        self._told += events
        self._last = now / 1e9
        for publisher in self._publishers:
            publisher.sendall(COUNT.pack(self._told))

    def _obey(self) -> bool:
        command = next(commands(), None)
        match command:
            case {"command": "reset", "timing": bool(timing)}:
                self.reset(timing)
                say("reset")
            case {"command": "report"}:
                say(self._report())
        return command is not None

    def _report(self) -> dict[str, Any]:
        late = np.percentile(self._late, _QUANTILES) / 1e6 if self._late else [0.0] * len(_QUANTILES)
        quantiles = {f"p{quantile}_ms": float(value) for quantile, value in zip(_QUANTILES, late, strict=True)}
        return {"arrived": self._arrived, "last": self._last} | quantiles


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def main() -> None:
    sink = Sink(begun())
    ports = [one.getsockname()[1] for one in (sink.counters, sink.events)]
    say([f"127.0.0.1:{port}" for port in ports])
    sink.serve()


if __name__ == "__main__":
    sys.exit(main())
