"""What brokers do, added up by strategy and cluster, second by second, for an hour: known at once, without Spark."""

from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from mercast.dashboard.brokers import RATES, Broker

SECONDS = 3_600
"""That are kept of each."""

MOST_SERIES = 64
"""Strategies times clusters."""

MOST_POINTS = 720
"""Of a line: no screen shows more."""


class Choice(NamedTuple):
    """What somebody wants to see; empty means all."""

    cluster: str = ""
    strategy: str = ""

    def fits(self, cluster: str, strategy: str) -> bool:
        return self.cluster in ("", cluster) and self.strategy in ("", strategy)


class Point(NamedTuple):
    at: int
    """Milliseconds since 1970."""
    rates: tuple[float, ...]
    """In the order of RATES."""
    cpu: float
    """Processors."""


class Load:
    def __init__(self) -> None:
        self._series: dict[tuple[str, str], deque[Point]] = {}

    def look(self, brokers: Iterable[Broker], at: int) -> None:
        """Those that are up."""
        sums: dict[tuple[str, str], list[float]] = {}
        for one in brokers:
            total = sums.setdefault((one.cluster, one.strategy), [0.0] * (len(RATES) + 1))
            for place, name in enumerate(RATES):
                total[place] += one.rates.get(name, 0.0)
            total[-1] += one.cpu or 0.0
        for key, total in sums.items():
            if key in self._series or len(self._series) < MOST_SERIES:
                points = self._series.setdefault(key, deque(maxlen=SECONDS))
                points.append(Point(at, tuple(total[:-1]), total[-1]))
        for key, points in list(self._series.items()):
            if points[-1].at < at - SECONDS * 1_000:
                del self._series[key]

    def newest(self, choice: Choice, at: int) -> dict[str, float] | None:
        """Of this moment: None if there is nothing."""
        points = [points[-1] for key, points in self._series.items() if choice.fits(*key) and points[-1].at == at]
        if not points:
            return None
        sums = [sum(values) for values in zip(*(point.rates for point in points), strict=True)]
        return dict(zip(RATES, sums, strict=True)) | {"cpu": sum(point.cpu for point in points)}

    def history(self, choice: Choice, since: int) -> dict[str, list[float | None]]:
        """As columns; means over so many seconds that there are not too many points."""
        by_time: dict[int, list[float]] = {}
        for key, points in self._series.items():
            if choice.fits(*key):
                for point in points:
                    if point.at >= since:
                        total = by_time.setdefault(point.at, [0.0] * (len(RATES) + 1))
                        for place, value in enumerate((*point.rates, point.cpu)):
                            total[place] += value
        times = sorted(by_time)
        step = max(1, ceil(len(times) / MOST_POINTS))
        columns: dict[str, list[float | None]] = {name: [] for name in ("at", *RATES, "cpu")}
        for begin in range(0, len(times), step):
            group = times[begin : begin + step]
            columns["at"].append(group[-1])
            for place, name in enumerate((*RATES, "cpu")):
                columns[name].append(round(sum(by_time[at][place] for at in group) / len(group), 3))
        return columns
