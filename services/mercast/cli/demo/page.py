"""What the dashboard's page shows, heard as the page itself does: the terminal tells the same, from the same place."""

import json
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any
from urllib.request import urlopen

from mercast.dashboard.brokers import DEAD, UP

_AGAIN = 0.5
_SILENT = 10.0
"""Seconds after which the stream is begun anew."""


class Page:
    """`with Page(url) as page: page.rates …`, whatever was heard last."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._overlay: dict[str, Any] = {}
        self._pulse: dict[str, Any] = {}
        self._ended = Event()
        self._thread = Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "Page":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    # -- what it shows -----------------------------------------------------------------------------------------------

    @property
    def up(self) -> set[int]:
        return self._in(UP)

    @property
    def dead(self) -> set[int]:
        return self._in(DEAD)

    def rate(self, name: str, brokers: Iterable[int]) -> float:
        """Events a second, of some brokers together."""
        return sum(self._of(one).get(name) or 0.0 for one in brokers)

    @property
    def pulse(self) -> dict[str, Any]:
        return self._pulse

    def _in(self, state: str) -> set[int]:
        return {int(one) for one in self._pulse.get("brokers", ()) if self._of(int(one)).get("state") == state}

    def _of(self, broker: int) -> dict[str, Any]:
        told = self._pulse.get("brokers", {}).get(str(broker), ())
        return dict(zip(self._overlay.get("fields", ()), told, strict=False))

    # -- how it is heard ---------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                with urlopen(f"{self.url}events", timeout=_SILENT) as stream:
                    self._hear(stream)
            except (OSError, ValueError):
                self._ended.wait(_AGAIN)

    def _hear(self, stream: Iterable[bytes]) -> None:
        name = ""
        for line in stream:
            key, _, value = line.decode().rstrip().partition(": ")
            if key == "event":
                name = value
            elif key == "data" and name == "overlay":
                self._overlay = json.loads(value)
            elif key == "data":
                self._pulse = json.loads(value)
            if self._ended.is_set():
                return
