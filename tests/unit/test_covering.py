"""Covering and intersection where the answer is known."""

import pytest

from mercast.content import Filter
from mercast.content.boxes import box_contains
from mercast.limits import Limits
from mercast.matching import Index

COVERS = [
    ("", "x = 1"),
    ("x > 1", "x > 2"),
    ("x >= 1", "x = 1"),
    ("x > 1", "x BETWEEN 2 AND 3"),
    ("x > 1 OR y > 1", "y = 5"),
    ("x <> 5", "x < 5"),
    ("x IN (1, 2, 3)", "x IN (1, 3.0)"),
    ("x BETWEEN 1 AND 9", "x BETWEEN 1 AND 4 OR x BETWEEN 5 AND 9"),
    ("x IS NOT NULL", "x LIKE 'a%b'"),
    ("x LIKE 'a%'", "x LIKE 'ab%'"),
    ("x LIKE 'a%'", "x = 'abc'"),
    ("x LIKE '%b%'", "x IN ('abc', 'b')"),
    ("x LIKE '%b%'", "x LIKE '%b%' AND y = 1"),
    ("x LIKE 'a%'", "x LIKE 'a_c%'"),
    ("x LIKE '%'", "x > 'a'"),
    ("x NOT LIKE 'a%'", "x = 'b'"),
    ("NOT x LIKE '%a%'", "x = 'b'"),
    ("x IS NULL OR x > 1", "x IS NULL"),
    ("x IS NULL OR x > 1", "x > 2 AND y = 1"),
    ("a.b = TRUE", "a.b AND c"),
    ("x = 1", "x = 1 AND x = 2"),
    ("x = 1", "x = 'a' AND x LIKE 'b%'"),
    ("x < 9007199254740993", "x <= 9007199254740992"),
    ("x = 1", "FALSE"),
]

APART = [
    ("x > 1", "x < 1"),
    ("x > 1", "x <= 1"),
    ("x = 1", "x = '1'"),
    ("x = 1", "x IS NULL"),
    ("x", "NOT x"),
    ("x = 'abc'", "x LIKE 'b%'"),
    ("x LIKE 'a%'", "x LIKE 'b%'"),
    ("x LIKE 'a%'", "x NOT LIKE 'a%'"),
    ("x LIKE '%a'", "x = 'b'"),
    ("x IN (1, 2)", "x NOT IN (1, 2, 3)"),
    ("x = 9007199254740993", "x = 9007199254740992.0"),
    ("x = 1 AND y = 1", "y = 2"),
    ("FALSE", ""),
    ("x NOT IN (1, 'a')", ""),
    ("x BETWEEN 1 AND 'a'", ""),
]

NEITHER = [("x > 1", "y > 1"), ("x > 1", "x < 5"), ("x IS NULL", "y = 1"), ("x LIKE 'a%'", "x LIKE '%b'")]


def parsed(*texts):
    return [Filter.parse(text) for text in texts]


@pytest.mark.parametrize(("wide", "narrow"), COVERS)
def test_covers(wide, narrow):
    wide, narrow = parsed(wide, narrow)
    assert wide.covers(narrow)
    assert wide.covers(wide)
    assert narrow.covers(narrow)


@pytest.mark.parametrize(("wide", "narrow"), [pair for pair in COVERS if "FALSE" not in pair and pair[0] != "x = 1"])
def test_covering_goes_one_way(wide, narrow):
    wide, narrow = parsed(wide, narrow)
    united = "BETWEEN 5" in str(narrow)  # the two filters are equal but for a gap
    assert not narrow.covers(wide) or united


@pytest.mark.parametrize(("a", "b"), APART)
def test_filters_that_no_event_can_both_match(a, b):
    a, b = parsed(a, b)
    assert not a.intersects(b)
    assert not b.intersects(a)


@pytest.mark.parametrize(("a", "b"), NEITHER)
def test_filters_that_overlap(a, b):
    a, b = parsed(a, b)
    assert a.intersects(b)
    assert b.intersects(a)
    assert not a.covers(b)
    assert not b.covers(a)


def test_past_the_bound_on_boxes_answers_are_cautious():
    text = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(4))
    exact, widened = Filter.parse(text), Filter.parse(text, Limits(filter_boxes=8))
    narrow = Filter.parse(" AND ".join(f"a{n} = 1" for n in range(4)))
    assert (exact.boxes.exact, widened.boxes.exact) == (True, False)
    assert exact.covers(narrow)
    assert not widened.covers(narrow), "it cannot be decided, so it is not claimed"
    assert widened.covers(widened)
    assert widened.intersects(narrow)


def test_widened_patterns_lose_no_event():
    filter = Filter.parse("x LIKE '%a' OR x LIKE '%b'", Limits(filter_boxes=1))
    assert box_contains(filter.boxes.union[0], {"x": "a"})
    index = Index()
    index.add(1, filter)
    assert index.match_many([{"x": "a"}, {"x": "b"}, {"x": "c"}]) == [[1], [1], []]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 1),
        ("FALSE", 0),
        ("x = 1 OR x = 2 OR x > 7", 1),
        ("x = 1 OR y = 1", 2),
        ("x IN (1, 2, 'a')", 1),
        ("x <> 1 AND x <> 2", 1),
        ("(x = 1 OR y = 1) AND (x = 1 OR z = 1)", 4),
        ("x = 1 OR TRUE", 1),
        ("x LIKE '%a' OR x LIKE '%b'", 2),
        ("x LIKE '%a' AND x IN ('a', 'b')", 1),
        ("x LIKE '%c' AND x IN ('a', 'b')", 0),
    ],
)
def test_how_many_boxes(text, count):
    assert len(Filter.parse(text).boxes.union) == count
