"""Stock quotes: a few symbols are quoted and watched far more than the rest (Zipf), prices wander about a base price.

A subscriber names a symbol and mostly a range of prices near where it trades; some ask for large volumes only.
"""

import math
import random

from mercast.content import Filter, Value
from mercast.content.expression import And, Between, Compare, Expression
from mercast.workloads.base import zipf_weights

WITH_PRICE, WITH_VOLUME = 0.8, 0.2
"""Shares of the subscribers that name a range of prices, and a least volume."""

_HALTED = 0.001
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Stock:
    def __init__(self, symbols: int = 2_000) -> None:
        self._symbols = [_symbol(number) for number in range(symbols)]
        self._weights = zipf_weights(symbols)
        # A golden-ratio walk spreads the base prices between 1 and 1000 without drawing any chance.
        self._base = {name: 10 ** (3 * (number * 0.618034 % 1)) for number, name in enumerate(self._symbols)}

    def filter(self, rng: random.Random) -> Filter:
        symbol = self._draw(rng)
        terms: list[Expression] = [Compare("symbol", "=", symbol)]
        if rng.random() < WITH_PRICE:
            middle = self._price(symbol, rng)
            terms.append(Between("price", round(middle * 0.97, 2), round(middle * 1.03, 2)))
        if rng.random() < WITH_VOLUME:
            terms.append(Compare("volume", ">=", 100 * rng.randint(1, 100)))
        return Filter(And(tuple(terms)))

    def event(self, rng: random.Random) -> dict[str, Value]:
        symbol = self._draw(rng)
        price = self._price(symbol, rng)
        return {
            "symbol": symbol,
            "price": price,
            "volume": 100 * max(1, int(rng.paretovariate(1.2))),
            "bid": round(price * 0.999, 2),
            "ask": round(price * 1.001, 2),
            "exchange": rng.choice(("XNYS", "XNAS", "XLON")),
            "halted": rng.random() < _HALTED,
        }

    def _draw(self, rng: random.Random) -> str:
        return rng.choices(self._symbols, cum_weights=self._weights)[0]

    def _price(self, symbol: str, rng: random.Random) -> float:
        return round(self._base[symbol] * math.exp(rng.gauss(0, 0.05)), 2)


def _symbol(number: int) -> str:
    """AA, BA, … ZZ, AAA, …: short names first, as short names are the oldest and most traded."""
    length, letters = 2, len(_LETTERS)
    while number >= letters**length:
        number -= letters**length
        length += 1
    return "".join(_LETTERS[number // letters**place % letters] for place in range(length))
