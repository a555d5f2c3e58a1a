"""What a bad filter is told, and what a filter looks like when printed."""

import pickle
import tracemalloc
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content import ContentError, Filter, FilterError
from mercast.content.expression import And, Between, Compare, In, IsNull, Like, Not, Or
from mercast.content.lexer import plain_list
from mercast.content.parser import parse
from mercast.limits import Limits
from mercast.matching import Index

ERRORS = [
    # text, line, column, found, part of what is expected, part of the hint
    ('symbol = "ACME"', 1, 10, '"ACME"', "a string in single quotes", "for a string write 'ACME'"),
    ('symbol = "O\'Neil"', 1, 10, '"O\'Neil"', "a value", "write 'O''Neil'"),
    ("symbol = ACME", 1, 10, "the name ACME", "a value", "for a string write 'ACME'"),
    ("price == 5", 1, 7, "==", "", "one ="),
    ("price => 5", 1, 7, "=>", "", "write >="),
    ("price =< 5", 1, 7, "=<", "", "write <="),
    ("a && b", 1, 3, "&&", "", "write AND"),
    ("a || b", 1, 3, "||", "", "write OR"),
    ("! a", 1, 1, "!", "", "write NOT"),
    ("x = ‘a’", 1, 5, "‘", "", "straight single quotes"),
    ("x IN [1]", 1, 6, "[", "", "IN (1, 2)"),
    ("`x` = 1", 1, 1, "`", "", "double quotes"),
    ("x ~ 'a'", 1, 3, "~", "", "LIKE"),
    ("x = 1;", 1, 6, ";", "", "no semicolon"),
    ("price * 2 > 5", 1, 7, "*", "", "arithmetic"),
    ("x = #", 1, 5, "'#'", "a part of a filter", ""),
    ("1 < x < 5", 1, 7, "<", "AND, OR", "BETWEEN 1 AND 5"),
    ("x < 1 < 5", 1, 7, "<", "AND, OR", "BETWEEN 1 AND 5"),
    ("x = NULL", 1, 5, "NULL", "a value", "IS NULL"),
    ("x =", 1, 4, "the end of the filter", "a value", ""),
    ("x = (1)", 1, 5, "(", "a value", "no parentheses"),
    ("price > 5 AND", 1, 14, "the end of the filter", "a condition", "after AND, OR or NOT is missing"),
    ("AND x = 1", 1, 1, "AND", "a condition", "missing before it"),
    ("(a", 1, 3, "the end of the filter", "a closing parenthesis", ""),
    ("a)", 1, 2, ")", "the end of the filter", "no parenthesis is open"),
    ("x NOT = 5", 1, 7, "=", "BETWEEN, IN or LIKE", "NOT price = 5"),
    ("x IN ()", 1, 7, ")", "a value", "lacks a value"),
    ("x IN 1", 1, 6, "the number 1", "in parentheses", "IN (1, 2)"),
    ("x IN (1 2)", 1, 9, "the number 2", "a comma or a closing parenthesis", ""),
    ("x BETWEEN 1", 1, 12, "the end of the filter", "AND", "BETWEEN 1 AND 5"),
    ("lower(x) = 'a'", 1, 6, "(", "a comparison", "functions are not part"),
    ("x LIKE 5", 1, 8, "the number 5", "a pattern in single quotes", ""),
    (r"x LIKE 'a\b'", 1, 8, r"the string 'a\b'", "a pattern", "stands before 'b'"),
    ("x LIKE 'a\\'", 1, 8, "the string 'a\\'", "a pattern", "at the end"),
    ("x LIKE 'a' ESCAPE 'ab'", 1, 19, "the string 'ab'", "one escape character", ""),
    ("x LIKE 'a' ESCAPE !", 1, 19, "!", "", "write NOT"),
    ("x LIKE 'a' ESCAPE 5", 1, 19, "the number 5", "the escape character", ""),
    ("x = 12abc", 1, 5, "12abc", "a number", ""),
    ("x = 1.2.3", 1, 5, "1.2.3", "a number", ""),
    ("x = 'abc", 1, 5, "a single quote that is never closed", "a closing '", "written twice"),
    ('"abc = 1', 1, 1, "a double quote that is never closed", 'a closing "', "written twice"),
    ("x = 1e999", 1, 5, "the number 1e999", "a finite number", "1.8e308"),
    ("x = -1e999", 1, 6, "the number 1e999", "a finite number", "1.8e308"),
    ("x = 9223372036854775808", 1, 5, "the number 9223372036854775808", "64 bits", "write a float"),
    ("x = -9223372036854775809", 1, 6, "the number 9223372036854775809", "64 bits", "write a float"),
    ("x = " + "9" * 5000, 1, 5, "the number 9999999999", "64 bits", "write a float"),
    ("x = nan", 1, 5, "the name nan", "a value", "NaN and infinity"),
    ("x = -Infinity", 1, 6, "the name Infinity", "a number after the sign", ""),
    ("x IS TRUE", 1, 6, "TRUE", "NULL", "by its name alone"),
    ("a-b = 3", 1, 2, "-", "AND, OR", '"a-b"'),
    ("in = 3", 1, 1, "in", "a condition", '"in"'),
    ("x ilike 'a'", 1, 3, "the name ilike", "AND, OR", "LIKE"),
    ("a b", 1, 3, "the name b", "AND, OR or the end", ""),
    ("x 5", 1, 3, "the number 5", "AND, OR or the end", "is an operator missing"),
    ("5", 1, 2, "the end of the filter", "a comparison", "starts with an attribute"),
    ("5 < 6", 1, 5, "the number 6", "the name of an attribute", "5 is a value"),
    ("x = 1 AND\n  (y = 2\n  OR z == 3)", 3, 8, "==", "", "one ="),
    ('"" = 1', 1, 1, '""', "the name of an attribute", "attribute '' is not a name"),
    ("NOT", 1, 4, "the end of the filter", "a condition such as price > 10", "is missing"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected", "hint"), ERRORS, ids=[e[0][:40] for e in ERRORS]
)
def test_an_error_names_the_place_and_what_would_be_right(text, line, column, found, expected, hint):
    with pytest.raises(FilterError) as raised:
        Filter.parse(text)
    error = raised.value
    assert (error.line, error.column) == (line, column)
    assert found in error.found
    assert expected in error.expected
    assert hint in error.hint
    assert bool(error.hint) is bool(hint)
    assert f"line {line}, column {column}: found {error.found}, expected {error.expected}" in str(error)
    assert error.hint in str(error)


def test_an_error_shows_the_line_with_a_caret():
    with pytest.raises(FilterError) as raised:
        Filter.parse("price > 1 AND\nsymbol = ACME")
    assert str(raised.value).splitlines()[1:] == ["  symbol = ACME", "           ^"]


def test_of_a_very_long_line_the_part_around_the_place_is_shown():
    with pytest.raises(FilterError) as raised:
        Filter.parse(" AND ".join(["price > 1"] * 50) + " AND symbol == 1" + " AND price > 1" * 50)
    _, shown, caret = str(raised.value).splitlines()
    assert len(shown) < 120
    assert shown[caret.index("^") :].startswith("== 1")
    assert shown.startswith("  …")
    assert shown.endswith("…")


LIMITS = [
    ("x = 1" + " " * 70_000, "65536 are allowed"),
    ("(" * 33 + "x" + ")" * 33, "at most 32 nested"),
    ("NOT " * 33 + "x", "at most 32 nested"),
    ("(" * 60_000, "at most 32 nested"),
    ("x IN (" + ", ".join("1" for _ in range(8_193)) + ")", "at most 8192 values"),
    (" OR ".join("x" for _ in range(8_193)), "at most 8192 values"),
    ("x LIKE '" + "a" * 1025 + "'", "at most 1024 characters"),
    ("a" * 256 + " = 1", "at most 255 are allowed"),
    ("x = '\ud800'", "^filter: character 6 is half of a surrogate"),
]


@pytest.mark.parametrize(("text", "says"), LIMITS, ids=[says for _, says in LIMITS])
def test_what_is_too_large_or_too_deep_is_refused(text, says):
    with pytest.raises(ContentError, match=says):
        Filter.parse(text)


def test_what_is_just_small_enough_is_taken():
    assert Filter.parse("(" * 32 + "x = 1" + ")" * 32).matches({"x": 1})
    assert Filter.parse("NOT " * 32 + "x").matches({"x": True})
    assert Filter.parse("(x) AND " * 40 + "NOT (x = 1)").matches({"x": True}) is False
    assert Filter.parse("x IN (" + ", ".join("1" for _ in range(8_192)) + ")").matches({"x": 1})
    assert Filter.parse("x LIKE '" + "a" * 1024 + "'").matches({"x": "a" * 1024})
    assert Filter.parse("a" * 255 + " = 1").matches({"a" * 255: 1})
    assert Filter.parse("x = 000000000000000000000000000001").matches({"x": 1})


def test_limits_can_be_changed():
    with pytest.raises(FilterError, match="at most 2 nested") as raised:
        Filter.parse("(((x)))", Limits(filter_depth=2))
    assert (raised.value.column, raised.value.found) == (3, "(")


def test_true_and_false_alone_are_no_values():
    Filter.parse("x IN (1, 2) AND TRUE", Limits(filter_values=2))
    with pytest.raises(FilterError, match="at most 3 values"):
        Filter.parse("x IN (1, 2) AND TRUE AND x IN (1, 2)", Limits(filter_values=3))


def test_a_quote_may_be_the_escape():
    assert Filter.parse("x LIKE 'a''%' ESCAPE ''''").matches({"x": "a%"})


@pytest.mark.parametrize("word", ["ilike", "rlike", "RLIKE", "regexp", "similar", "contains", "matches"])
def test_pattern_words_of_other_languages(word):
    with pytest.raises(FilterError) as raised:
        Filter.parse(f"x {word} 'a'")
    assert raised.value.hint == "for patterns write LIKE"


@pytest.mark.parametrize("text", [None, 5, b"x = 1"])
def test_a_filter_is_a_text(text):
    with pytest.raises(ContentError, match="a filter is a text"):
        Filter.parse(text)


@pytest.mark.timeout(250)
def test_a_huge_or_of_ands_is_normalised_within_bounds():
    """It takes a fraction of a second; without the bound on boxes it would not end."""
    clause = "(" + " OR ".join(f"a{n} = 1 AND b{n} = 2" for n in range(60)) + ")"
    filter = Filter.parse(" AND ".join([clause] * 30))
    assert not filter.boxes.exact
    assert filter.matches({"a3": 1, "b3": 2})


@pytest.mark.timeout(250)
def test_like_takes_time_bounded_by_text_times_pattern():
    """A backtracking regular expression takes minutes for this."""
    for pattern in ("%a_a" * 100 + "%b", "%" + "a_" * 510 + "b%", "%" + "a" * 1000 + "_b%"):
        assert not Filter.parse(f"x LIKE '{pattern}'").matches({"x": "a" * 65_536})


EXPRESSIONS = [
    ("", And(())),
    ("a = 1", Compare("a", "=", 1)),
    ("a", Compare("a", "=", True)),
    ("1.5 >= a", Compare("a", "<=", 1.5)),
    ("a AND b = 1 AND c = 2", And((Compare("a", "=", True), Compare("b", "=", 1), Compare("c", "=", 2)))),
    ("a = 1 OR b = 1 AND c = 1", Or((Compare("a", "=", 1), And((Compare("b", "=", 1), Compare("c", "=", 1)))))),
    ("NOT a = 1 OR b = 1", Or((Not(Compare("a", "=", 1)), Compare("b", "=", 1)))),
    ("a NOT BETWEEN 1 AND 2", Not(Between("a", 1, 2))),
    ("a NOT IN ('x', 2)", Not(In("a", ("x", 2)))),
    ("a NOT LIKE 'x!%' ESCAPE '!'", Not(Like("a", "x!%", "!"))),
    ("a IS NOT NULL", Not(IsNull("a"))),
]


@pytest.mark.parametrize(("text", "expression"), EXPRESSIONS)
def test_expressions(text, expression):
    assert Filter.parse(text).expression == expression


PRINTED = [
    ("a  =  1", "a = 1"),
    ("A and not B", "A AND NOT B"),
    ("a = true or a <> TRUE or a = 1", "a OR a <> TRUE OR a = 1"),
    ("(a = 1 or b = 2) and c = 3", "(a = 1 OR b = 2) AND c = 3"),
    ("(a = 1 and b = 2) or c = 3", "a = 1 AND b = 2 OR c = 3"),
    ("not (a = 1 or b = 2)", "NOT (a = 1 OR b = 2)"),
    ("not not a = 1", "NOT NOT a = 1"),
    ("not (a in (1, 2))", "a NOT IN (1, 2)"),
    ("not a is null", "a IS NOT NULL"),
    ("not a between 1 and 2", "a NOT BETWEEN 1 AND 2"),
    ("a not like 'x\\%%'", "a NOT LIKE 'x\\%%'"),
    ("a like 'x!%' escape '!'", "a LIKE 'x!%' ESCAPE '!'"),
    ("\"in\" = 'it''s'", "\"in\" = 'it''s'"),
    ('"a b" = 1 and "a""b" = 2', '"a b" = 1 AND "a""b" = 2'),
    ("a.b = 1e-7", "a.b = 1e-07"),
    ("a = -5 and b = -0.0", "a = -5 AND b = -0.0"),
    ("FALSE or a = TRUE", "FALSE OR a"),
    ("TRUE", ""),
    ("NOT TRUE", "NOT TRUE"),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_printing(text, printed):
    assert str(Filter.parse(text)) == printed
    assert str(Filter.parse(printed)) == printed


def test_true_is_not_one():
    """To Python they are equal; a filter that mixed them up would cover what it does not match."""
    truth, one = Filter.parse("x = TRUE"), Filter.parse("x = 1")
    assert truth != one
    assert not truth.covers(one)
    assert not one.covers(truth)
    assert Filter.parse("x IN (FALSE)") != Filter.parse("x IN (0)")


def test_an_error_can_be_pickled():
    with pytest.raises(FilterError) as raised:
        Filter.parse("x ==")
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value)


def test_keywords_are_plain_letters():
    with pytest.raises(FilterError):
        Filter.parse("x ıs null")


def test_filters_are_equal_and_hash_equal_if_written_the_same_way():
    a, b = Filter.parse("x = 1 AND y = 2"), Filter.parse("x=1  and y=2")
    assert a == b
    assert hash(a) == hash(b)
    assert a != Filter.parse("y = 2 AND x = 1")
    assert a != "x = 1 AND y = 2"
    assert repr(a) == "Filter.parse('x = 1 AND y = 2')"


LARGEST = [
    " OR ".join(f"x={n}" for n in range(6_000)),
    " AND ".join(f"x<>{n}" for n in range(5_000)),
    " AND ".join(f"a{n}" for n in range(6_000)),
    " AND ".join(f"x LIKE '%{n}%'" for n in range(3_000)),
    "x IN (" + ", ".join(f"'a{n}a'" for n in range(3_000)) + ") AND " + " AND ".join(["x LIKE '%a%_%'"] * 1_500),
    " AND ".join(f"a{n}" for n in range(2_500)) + " AND " + " AND ".join(f"(b{n} OR c{n})" for n in range(1_500)),
    "x IN (" + ",".join(map(str, range(8_000))) + ") AND " + " AND ".join(f"(a{n} OR b{n})" for n in range(6)),
    " OR ".join(f"(x IN ({','.join(str(m * 64 + n) for m in range(60))}) AND b{n})" for n in range(64)),
]


@pytest.mark.timeout(250)
@pytest.mark.parametrize("text", LARGEST, ids=[text[:20] for text in LARGEST])
def test_the_largest_filters_cost_their_size_not_its_square(text):
    """Each takes about a second; what grows with the square would take many minutes."""
    filter, again = Filter.parse(text), Filter.parse("TRUE AND (" + text + ")")
    assert filter.covers(filter)
    assert filter.intersects(again)
    assert Filter.parse(str(filter)) == filter
    index = Index()
    index.add(1, filter)
    assert index.match({}) == []
    assert index.nbytes < 5_000_000


spaces = st.sampled_from(["", " ", "\n\t"])
values = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(["-0", "007", "- 5", "+5", "1.5", "12x", "TRUE", "''", "'it''s'", "'a, b'", "'('", "x", ""]),
    st.text(alphabet="ab'(), \u00e9", max_size=5).map(lambda text: f"'{text}'"),
)


@given(st.lists(st.tuples(spaces, values, spaces), max_size=6), st.sampled_from(["", " AND b", " OR", ")"]))
def test_a_plain_list_is_read_at_once_as_it_is_token_by_token(listed, rest):
    def read(at_once):
        with mock.patch("mercast.content.parser.plain_list", plain_list if at_once else lambda *_: None):
            try:
                return repr(parse(text, Limits(filter_values=4)))
            except FilterError as error:
                return str(error)

    text = f"a NOT IN ({','.join(map(''.join, listed))}){rest}"
    assert read(at_once=True) == read(at_once=False)


def test_long_lists_are_plain():
    for value in ("'{}'", "-{}", " {} "):
        values = ",".join(value.format(number) for number in range(5_000))
        assert plain_list(f"a IN ({values}) AND b", 5)[1] == len(values) + 7


def filters_of_many_kinds():
    numbers = ",".join(map(str, range(8_000)))
    yield f"n IN ({numbers})"
    yield " AND ".join(f"a{n} = {n}" for n in range(2_000))
    yield " OR ".join(f"(a{n} = {n} AND b{n} > 3)" for n in range(60))
    yield " OR ".join(f"a{n}={n}" for n in range(4_000))
    yield f"n IN ({numbers[:400]}) AND ({' OR '.join(f'b{n}=1' for n in range(60))})"


@pytest.mark.parametrize("text", list(filters_of_many_kinds()), ids=lambda text: text[:20])
def test_a_filter_knows_about_how_much_memory_it_takes(text):
    Index(compiled=False).add(1, Filter.parse(text))  # what is remembered of names and patterns
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        filter, index = Filter.parse(text), Index(compiled=False)
        index.add(1, filter)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < filter.nbytes * 1.25
    assert filter.nbytes < taken * 4
