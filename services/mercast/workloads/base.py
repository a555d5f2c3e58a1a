"""What every workload offers."""

import random
from typing import Protocol

from mercast.content import Filter, Value


class Workload(Protocol):
    """Filters and events are drawn one by one; the same seeds give the same ones."""

    def filter(self, rng: random.Random) -> Filter: ...

    def event(self, rng: random.Random) -> dict[str, Value]: ...


def zipf_weights(count: int) -> list[float]:
    """Cumulative weights of Zipf's law (exponent 1) for `random.choices`."""
    total, weights = 0.0, []
    for rank in range(1, count + 1):
        total += 1 / rank
        weights.append(total)
    return weights
