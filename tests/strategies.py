"""Hypothesis strategies for content: few names and awkward values, so that filters and events meet."""

from hypothesis import strategies as st

from mercast.content import Filter
from mercast.content.expression import And, Between, Compare, Expression, In, IsNull, Like, Not, Or

NAMES = ("a", "b", "c.d")

BIG = 2**53
NUMBERS = (
    *(0, -0.0, 1, 1.0, 2, 2.5, -1, 0.1, 5e-324, 1.7e308, -1.7e308),
    *(BIG - 1, BIG, float(BIG), BIG + 1, BIG + 2, BIG + 3, float(BIG + 4), -BIG - 1, -float(BIG)),
    *(2**60, 2**60 + 1, float(2**60), 2**63 - 1, -(2**63), float(2**63)),
)
STRINGS = (
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "ba",
    "A",
    "é",
    "\U0010ffff",
    "\U0010ffffa",
    "a\0",
    "it's",
    "%",
    "_",
    "a%b",
    "\ue000",
)
BOOLS = (False, True)

names = st.sampled_from(NAMES)
numbers = st.sampled_from(NUMBERS) | st.integers(-3, 3) | st.floats(-3, 3)
strings = st.sampled_from(STRINGS) | st.text("ab%_\\", max_size=4)
values = numbers | strings | st.sampled_from(BOOLS)

_pattern_part = st.sampled_from(("a", "b", "ab", "%", "_", "\\%", "\\_", "\\\\", "é"))
patterns = st.lists(_pattern_part, max_size=5).map("".join)

leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Compare, names, st.sampled_from(("=", "<>", "<", "<=", ">", ">=")), values),
    st.builds(Between, names, values, values),
    st.builds(In, names, st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, names, patterns),
    st.builds(IsNull, names),
)


def _branches(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(children, max_size=3).map(tuple)
    return st.builds(Not, children) | st.builds(And, several) | st.builds(Or, several)


expressions = st.recursive(leaves, _branches, max_leaves=8)
filters = expressions.map(Filter)
conjunctions = st.lists(leaves, max_size=4).map(lambda terms: Filter(And(tuple(terms))))

events = st.dictionaries(names, values)
