"""Sets on a line agree with sets of values."""

from hypothesis import given
from hypothesis import strategies as st

from mercast.content.line import AFTER, BEFORE, EMPTY, FULL, Line, above, below, between, point, points

cuts = st.tuples(st.integers(0, 4), st.sampled_from((BEFORE, AFTER)))
lines = st.builds(lambda start, some: Line(start, tuple(sorted(some))), st.booleans(), st.sets(cuts, max_size=5))
PROBES = [number / 2 for number in range(-1, 10)]
"""The values that cuts lie at, and one between each two of them: no line can differ elsewhere."""


def inside(line):
    return {value for value in PROBES if value in line}


@given(lines, lines)
def test_and_or_not_subset(a, b):
    assert inside(a & b) == inside(a) & inside(b)
    assert inside(a | b) == inside(a) | inside(b)
    assert inside(~a) == set(PROBES) - inside(a)
    assert (a <= b) is (inside(a) <= inside(b))
    assert ((a & b) == EMPTY) is inside(a).isdisjoint(inside(b))
    assert a.meets(b) is not inside(a).isdisjoint(inside(b))


@given(lines)
def test_intervals_are_the_set(line):
    def holds(low, high, value):
        after_low = low is None or value > low[0] or (value == low[0] and low[1] == BEFORE)
        before_high = high is None or value < high[0] or (value == high[0] and high[1] == AFTER)
        return after_low and before_high

    assert inside(line) == {v for v in PROBES if any(holds(low, high, v) for low, high in line.intervals())}


@given(st.sets(st.integers(0, 4)))
def test_points(values):
    assert points(values).points() == sorted(values)
    assert inside(points(values)) == values
    assert (~points(values)).points() is None


def test_the_simple_ones():
    assert inside(point(2)) == {2}
    assert inside(between(1, 2)) == {1, 1.5, 2}
    assert between(2, 1) == EMPTY
    assert between(2, 2) == point(2)
    assert inside(below((1, BEFORE))) == {-0.5, 0, 0.5}
    assert inside(above((4, AFTER))) == {4.5}
    assert between(1, 3).points() is None
    assert inside(FULL) == set(PROBES)
