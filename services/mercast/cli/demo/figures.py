"""Spark's figures, as `mercast metrics` writes them down: lines of JSON in a file that grows."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


class Figures:
    def __init__(self, file: Path | None) -> None:
        self._file, self._read = file, 0
        self.windows: dict[str, list[Row]] = {}
        """Of each cluster, in their order."""

    def look(self) -> None:
        """At what has come since."""
        if self._file is None:
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        self._read += len(whole) + bool(whole)
        for line in whole.splitlines():
            row = json.loads(line)
            if row["cluster"] is not None and row["broker"] is None:
                self.windows.setdefault(row["cluster"], []).append(row)

    def newest(self, cluster: str) -> Row | None:
        windows = self.windows.get(cluster)
        return windows[-1] if windows else None


def middle(row: Row) -> float:
    """Of its window, in seconds since 1970."""
    begin, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("window_start", "window_end"))
    return (begin + end) / 2
