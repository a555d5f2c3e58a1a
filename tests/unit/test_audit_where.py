"""The audit's own reading of WHERE: what it takes, what it refuses, and bounds that are exact. Without Spark."""

import operator
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NUMBERS, filters, numbers
from test_filter_cases import CASES
from test_parser import ERRORS

from mercast_streaming.audit import translate
from mercast_streaming.audit.where import ANY, ONE, And, Compare, In, IsNull, Like, Not, Or, Truth, WhereError, read

OPERATORS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def test_a_filter_is_read():
    text = """NOT a.b >= -2.5 AND ("in" IN (1, 'it''s', TRUE) OR 5 < c) OR d IS NOT NULL AND e NOT LIKE '%x_\\%'"""
    within = Or((In("in", (1, "it's", True)), Compare("c", ">", 5)))
    like = Not(Like("e", (ANY, "x", ONE, "%")))
    assert read(text) == Or((And((Not(Compare("a.b", ">=", -2.5)), within)), And((Not(IsNull("d")), like))))


@pytest.mark.parametrize("text", ["", "  \n", "TRUE"])
def test_nothing_asked_is_true(text):
    assert read(text) == Truth(True)


def test_every_case_of_the_table_is_read():
    for case in CASES:
        read(case.values[0])


@pytest.mark.parametrize("text", [error[0] for error in ERRORS], ids=[error[0][:40] for error in ERRORS])
def test_what_brokers_refuse_is_refused_here(text):
    with pytest.raises(WhereError):
        read(text)


@given(filters)
def test_whatever_brokers_print_is_read(filter):
    read(str(filter))


@given(numbers, numbers, st.sampled_from(list(OPERATORS)))
def test_bounds_of_the_other_kind_are_exact(left, right, sign):
    bound = translate._for_ints if isinstance(left, int) else translate._for_floats
    if isinstance(left, float) == isinstance(right, float):
        return
    changed, value = bound(sign, right)
    assert isinstance(value, type(left)) or changed in ("always", "never")
    found = {"always": True, "never": False}.get(changed)
    assert (OPERATORS[changed](left, value) if found is None else found) is OPERATORS[sign](left, right)


def test_bounds_at_the_awkward_numbers():
    for left in NUMBERS:
        for right in NUMBERS:
            for sign in OPERATORS:
                test_bounds_of_the_other_kind_are_exact.hypothesis.inner_test(left, right, sign)


def test_patterns_become_expressions_that_never_look_back():
    where = read("x LIKE 'a%b_c%.d'")
    found = translate._expression(where.pattern)
    assert found == r"(?s)\A\x{61}(?>.*?\x{62}.\x{63}).*\x{2e}\x{64}\z"
    assert "'" not in re.sub(r"^\(x_string RLIKE '|'\)$", "", translate.translate(where, "{}_{}".format))
