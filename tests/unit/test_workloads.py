"""Workloads are seeded, plausible, and what the papers say they are."""

import random

import pytest

from mercast.content import check_attributes
from mercast.workloads import QuotesError, Stock, Uniform, Zipf, quotes_of, read_quotes

QUOTES = """symbol, price ,volume,exchange,halted
ACME,12.5,300,XNYS,false
BETA,99,1000,,TRUE

"GAMMA, Inc",0.5,1e3,5,
"""
WORKLOADS = [Stock(), Uniform(), Zipf(), read_quotes(QUOTES.splitlines(keepends=True), "quotes.csv")]


@pytest.mark.parametrize("workload", WORKLOADS, ids=["stock", "uniform", "zipf", "quotes"])
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
    assert len(set(Stock(symbols=1_000)._symbols)) == 1_000
    assert Stock(symbols=700)._symbols[:3] == ["AA", "BA", "CA"]


def test_stock_symbols_follow_zipf_and_stay_near_their_price():
    workload, rng = Stock(symbols=100), random.Random(1)
    events = [workload.event(rng) for _ in range(5_000)]
    counts = sorted((sum(e["symbol"] == s for e in events) for s in {e["symbol"] for e in events}), reverse=True)
    assert counts[0] > 5 * counts[20]
    assert all(event["bid"] <= event["price"] <= event["ask"] and event["volume"] % 100 == 0 for event in events)


def test_real_quotes_are_read_as_they_are():
    assert WORKLOADS[3].quotes == [
        {"symbol": "ACME", "price": 12.5, "volume": 300, "exchange": "XNYS", "halted": False},
        {"symbol": "BETA", "price": 99, "volume": 1000, "halted": True},
        {"symbol": "GAMMA, Inc", "price": 0.5, "volume": 1000.0, "exchange": 5},
    ]
    lines = iter(QUOTES.splitlines(keepends=True))
    few = read_quotes(lines, "quotes.csv", most=1)
    assert [quote["symbol"] for quote in few.quotes] == ["ACME"]
    assert next(lines).startswith("BETA")  # a long file is not read to its end


def test_a_spreadsheets_mark_is_not_part_of_the_first_columns_name(tmp_path):
    (tmp_path / "q.csv").write_text(QUOTES, encoding="utf-8-sig")
    assert quotes_of(tmp_path / "q.csv").quotes == WORKLOADS[3].quotes


def test_real_quotes_are_asked_for_near_their_price():
    workload, rng = WORKLOADS[3], random.Random(1)
    filters = [workload.filter(rng) for _ in range(200)]
    assert all(any(filter.matches(quote) for quote in workload.quotes) for filter in filters)
    assert not all(filter.matches(workload.quotes[0]) for filter in filters)


HEAD = "symbol,price,volume\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "q.csv, line 1: there is no column symbol and no price and no volume; "),
        ("symbol,price\n", "q.csv, line 1: there is no column volume; "),
        ("symbol,price,volume,price\n", "q.csv, line 1, column 4: price is there twice"),
        ("symbol,price,volume,\n", "q.csv, line 1, column 4: it has no name"),
        (HEAD, "q.csv: there are no quotes below the heading"),
        (HEAD + "A,1,2\nB,dear,2\n", "q.csv, line 3, column 2 (price): 'dear' is not a number of 0 or more"),
        (HEAD + "A,1,-2\n", "q.csv, line 2, column 3 (volume): '-2' is not a number of 0 or more"),
        (HEAD + "A,nan,2\n", "q.csv, line 2, column 2 (price): 'nan' is not a number of 0 or more"),
        (HEAD + "A,,2\n", "q.csv, line 2, column 2 (price): '' is not a number of 0 or more"),
        (HEAD + " ,1,2\n", "q.csv, line 2, column 1 (symbol): a quote needs a symbol"),
        (HEAD + "A,1\n", "q.csv, line 2: 2 cells, but the heading names 3 columns"),
        (HEAD + '"A,1,2\n', "q.csv, line 2: unexpected end of data"),
    ],
)
def test_what_is_wrong_with_quotes_is_told_with_its_place(text, told):
    with pytest.raises(QuotesError) as caught:
        read_quotes(text.splitlines(keepends=True), "q.csv")
    assert str(caught.value).startswith(told)


def test_quotes_that_are_no_text():
    def lines():
        yield HEAD
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    with pytest.raises(QuotesError, match=r"q.csv, after line 1: this is not text in UTF-8 \(invalid start byte\)"):
        read_quotes(lines(), "q.csv")
