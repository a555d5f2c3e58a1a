"""Spark's figures, as `mercast metrics` writes them down: lines of JSON in a file that grows. Kept as the page does."""

import json
from pathlib import Path
from typing import Any

from mercast.dashboard.figures import Figures as Windows
from mercast.dashboard.figures import Row
from mercast.dashboard.load import Choice


class Figures:
    def __init__(self, file: Path | None) -> None:
        self._file, self._read = file, 0
        self._windows = Windows()

    def look(self) -> None:
        """At what has come since."""
        if self._file is None:
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        self._read += len(whole) + bool(whole)
        for line in whole.splitlines():
            self._windows.take(json.loads(line))

    @property
    def clusters(self) -> list[str]:
        """That there are any of."""
        return [cluster for cluster, _ in self._windows.keys]

    def newest(self, cluster: str = "") -> Row | None:
        """Without a cluster, of all together."""
        return self._windows.newest(Choice(cluster))

    def points(self, name: str, cluster: str = "") -> list[tuple[float, float]]:
        """Seconds since 1970 in the middle of a window, and the figure; where there is one."""
        found: dict[str, list[Any]] = self._windows.history(Choice(cluster), 0)
        rows = zip(found["begin"], found["end"], found[name], strict=True)
        return [((begin + end) / 2_000, value) for begin, end, value in rows if value is not None]
