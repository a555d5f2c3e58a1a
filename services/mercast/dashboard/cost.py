"""What the page itself costs: processor, memory and bytes of the server, as a mean over some seconds."""

import os
from collections import deque
from time import monotonic, process_time
from typing import Any

_OVER = 10
"""Looks, of a second each."""


class Cost:
    def __init__(self) -> None:
        self.sent = 0
        """Bytes to all pages."""
        self.pages = 0
        self._looks: deque[tuple[float, float, int, int]] = deque(maxlen=_OVER)

    def look(self, read: int) -> None:
        """`read` are bytes from all sources."""
        self._looks.append((monotonic(), process_time(), self.sent, read))

    def told(self) -> dict[str, Any]:
        first, last = self._looks[0], self._looks[-1]
        seconds = max(last[0] - first[0], 0.001)
        cpu, sent, read = ((after - before) / seconds for before, after in zip(first[1:], last[1:], strict=True))
        return {"pages": self.pages, "cpu": round(cpu, 4), "sent": round(sent), "read": round(read), "rss": _rss()}


def _rss() -> int:
    """Bytes of memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0
