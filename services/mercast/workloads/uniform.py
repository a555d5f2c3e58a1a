"""Floats uniform in 0..1; a filter is a conjunction of ranges of one width on some of the attributes.

The customary stress for matching engines: no attribute is more telling than another, and filters overlap a lot.
"""

import random

from mercast.content import Filter, Value
from mercast.content.expression import And, Between


class Uniform:
    def __init__(self, attributes: int = 20, predicates: int = 10, width: float = 0.5) -> None:
        if not 0 < predicates <= attributes:
            raise ValueError(f"a filter cannot ask about {predicates} of {attributes} attributes")
        if not 0 <= width <= 1:
            raise ValueError(f"the width of a range is between 0 and 1, not {width}")
        self._names = [f"a{number}" for number in range(attributes)]
        self._predicates = predicates
        self._width = width

    def filter(self, rng: random.Random) -> Filter:
        terms = []
        for name in rng.sample(self._names, self._predicates):
            low = rng.random() * (1 - self._width)
            terms.append(Between(name, low, low + self._width))
        return Filter(And(tuple(terms)))

    def event(self, rng: random.Random) -> dict[str, Value]:
        return {name: rng.random() for name in self._names}
