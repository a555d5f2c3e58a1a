"""Fifteen attributes of four values, by Zipf's law: the workload of the IP multicast paper, section 4.

A subscription names a value for the first attribute with probability 0.98; from each attribute to the next this
probability falls to `decrease` of what it was. At 78% an event matches 2.2% of the subscriptions, at 88% 0.21%.
"""

import random

from mercast.content import Filter, Value
from mercast.content.expression import And, Compare
from mercast.workloads.base import zipf_weights


class Zipf:
    def __init__(self, attributes: int = 15, values: int = 4, first: float = 0.98, decrease: float = 0.78) -> None:
        self._concrete = [(f"a{number}", first * decrease**number) for number in range(attributes)]
        self._values = range(1, values + 1)
        self._weights = zipf_weights(values)

    def filter(self, rng: random.Random) -> Filter:
        named = [name for name, probability in self._concrete if rng.random() < probability]
        return Filter(And(tuple(Compare(name, "=", self._value(rng)) for name in named)))

    def event(self, rng: random.Random) -> dict[str, Value]:
        return {name: self._value(rng) for name, _ in self._concrete}

    def _value(self, rng: random.Random) -> int:
        return rng.choices(self._values, cum_weights=self._weights)[0]
