"""Workloads are seeded, plausible, and what the papers say they are."""

import random

import pytest

from mercast.content import check_attributes
from mercast.workloads import Stock, Uniform, Zipf

WORKLOADS = [Stock(), Uniform(), Zipf()]


@pytest.mark.parametrize("workload", WORKLOADS, ids=["stock", "uniform", "zipf"])
def test_the_same_seed_gives_the_same(workload):
    def drawn(seed):
        rng = random.Random(seed)
        return [(workload.filter(rng), workload.event(rng)) for _ in range(20)]

    assert drawn(1) == drawn(1) != drawn(2)
    for _, event in drawn(3):
        assert check_attributes(event) == event


def test_uniform_filters_are_as_asked():
    workload, rng = Uniform(attributes=6, predicates=3, width=0.25), random.Random(1)
    for _ in range(50):
        terms = workload.filter(rng).expression.terms
        assert len({term.name for term in terms}) == 3
        assert all(0 <= term.low <= term.high <= 1 and term.high - term.low == pytest.approx(0.25) for term in terms)
    assert set(workload.event(rng)) == {f"a{number}" for number in range(6)}


@pytest.mark.parametrize("bad", [{"attributes": 2, "predicates": 3}, {"predicates": 0}, {"width": 1.5}])
def test_uniform_refuses_what_cannot_be(bad):
    with pytest.raises(ValueError, match=r"not|cannot"):
        Uniform(**bad)


def test_stock_symbols_are_distinct():
    assert len({Stock(symbols=1_000)._symbols[n] for n in range(1_000)}) == 1_000
    assert Stock(symbols=700)._symbols[:3] == ["AA", "BA", "CA"]


def test_stock_symbols_follow_zipf_and_stay_near_their_price():
    workload, rng = Stock(symbols=100), random.Random(1)
    events = [workload.event(rng) for _ in range(5_000)]
    counts = sorted((sum(e["symbol"] == s for e in events) for s in {e["symbol"] for e in events}), reverse=True)
    assert counts[0] > 5 * counts[20]
    assert all(event["bid"] <= event["price"] <= event["ask"] and event["volume"] % 100 == 0 for event in events)
