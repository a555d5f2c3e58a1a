"""How long things took: counted in cells of a logarithmic histogram, each 1% wide, so that memory is bounded."""

from typing import Any

import numpy as np

PERCENTILES = (50, 95, 99)

_CELLS = 100
"""Per factor e."""
_LEAST = 1_000
"""Nanoseconds: what is less counts as that much."""
_MOST_CELLS = 2_600
"""Up to more than two days."""
_MS = 1e-6


class Latency:
    def __init__(self) -> None:
        self._counts = np.zeros(_MOST_CELLS, np.int64)
        self._most = 0

    @property
    def count(self) -> int:
        return int(self._counts.sum())

    def add(self, nanoseconds: Any) -> None:
        """An array of them."""
        if len(nanoseconds):
            cells = (np.log(np.maximum(nanoseconds, _LEAST) / _LEAST) * _CELLS).astype(np.int64)
            self._counts += np.bincount(np.minimum(cells, _MOST_CELLS - 1), minlength=_MOST_CELLS)
            self._most = max(self._most, int(nanoseconds.max()))

    def percentile(self, percent: float) -> float | None:
        """In milliseconds; None if nothing was counted."""
        if not self.count:
            return None
        rank = max(1.0, percent / 100 * self.count)
        cell = int(np.searchsorted(np.cumsum(self._counts), rank))
        return float(min(_LEAST * np.exp((cell + 0.5) / _CELLS), self._most)) * _MS

    @property
    def longest(self) -> float | None:
        """In milliseconds."""
        return self._most * _MS if self.count else None
