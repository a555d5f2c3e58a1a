"""What is passed on under covering: a function of the present interests, safe for any relation, at few comparisons."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import conjunctions, filters

from mercast.content import Declaration, Filter, Subscription, Types
from mercast.routing.filtering.covering import Covering

TYPES = Types()
TYPES.declare(Declaration("quote"))
TYPES.declare(Declaration("stock", "quote"))

NESTED = [Filter.parse(f"x BETWEEN {low} AND {high}") for low in range(3) for high in range(low, 4)]
SAME = [Filter.parse(text) for text in ("x > 1", "x > 1 AND x > 0", "x > 1.0 OR x > 1", "NOT x <= 1")]
alike = st.sampled_from([*NESTED, *SAME, Filter(), Filter.parse("x = 1 OR y = 1"), Filter.parse("FALSE")])
subscriptions = st.builds(Subscription, st.sampled_from([None, "quote", "stock", "other"]), alike)
keys = st.integers(0, 9)


def covers(one, other):
    return one.covers(TYPES, other)


def updates(interests):
    """Some interests come, change or go at once, again and again."""
    return st.lists(st.dictionaries(keys, interests | st.none(), max_size=4), max_size=20)


def play(covering, updates):
    """The present interests, and what one who only sees the changes thinks is passed on."""
    present, passed = {}, {}
    for update in updates:
        present = {key: one for key, one in (present | update).items() if one is not None}
        changes = covering.update(update)
        told = [one is not None for one in changes.values()]
        assert told == sorted(told, reverse=True), "first what comes, then what goes"
        assert all(passed.get(key) != one for key, one in changes.items()), "only what changes"
        passed = {key: one for key, one in (passed | changes).items() if one is not None}
        covering.validate()
    return present, passed


@settings(max_examples=60)
@given(updates(subscriptions))
def test_what_no_other_covers_is_passed_on_and_of_equals_the_first(updates):
    covering = Covering(covers)
    present, passed = play(covering, updates)

    def hidden(key, one):
        others = ((k, other) for k, other in present.items() if k != key and covers(other, one))
        return any(k < key or not covers(one, other) for k, other in others)

    assert covering.interests == present
    assert passed == covering.passed == {key: one for key, one in present.items() if not hidden(key, one)}
    assert all(covers(present[covering.root(key)], one) for key, one in present.items())


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), updates(st.integers(0, 5)))
def test_under_any_relation_what_is_hidden_is_covered_by_a_chain_to_what_is_passed_on(pairs, updates):
    """To cover may be said of some pairs and not of others, and in cycles. Chains may lead over what has gone since."""
    covering = Covering(lambda one, other: one == other or (one, other) in pairs)
    present, passed = play(covering, updates)
    chain = {(one, one) for one in range(6)} | pairs
    for middle, one, other in product(range(6), repeat=3):
        if (one, middle) in chain and (middle, other) in chain:
            chain.add((one, other))
    assert passed == covering.passed
    assert all((passed[covering.root(key)], one) in chain for key, one in present.items())


@settings(max_examples=60)
@given(st.lists(alike | conjunctions | filters, min_size=3, max_size=6))
def test_to_cover_is_transitive(filters):
    """Why the choice does not depend on history."""
    for a, b, c in product(filters, repeat=3):
        assert a.covers(c) or not (a.covers(b) and b.covers(c))


class Counted:
    """Points of the plane; one covers all that is not further out. Counts how often that is asked."""

    def __init__(self):
        self.comparisons = 0

    def __call__(self, one, other):
        self.comparisons += 1
        return one[0] >= other[0] and one[1] >= other[1]


def test_a_new_interest_is_compared_with_those_passed_on_only():
    counted = Counted()
    covering = Covering(counted)
    covering.update({("root", n): (100 + n, 200 - n) for n in range(10)})
    for n in range(1000):
        covering.update({("hidden", n): (n % 97, n % 89)})
        assert counted.comparisons <= 10 * 10 * 2 + 20 * (n + 1)
    counted.comparisons = 0
    assert covering.update({("hidden", n): None for n in range(0, 1000, 2)}) == {}
    assert counted.comparisons == 0


def test_the_likes_of_a_root_that_goes_are_compared_with_the_one_that_takes_its_place():
    counted = Counted()
    covering = Covering(counted)
    covering.update({("other", n): (100 + n, 200 - n) for n in range(50)})
    covering.update({("same", n): (500, 1) for n in range(1000)})
    counted.comparisons = 0
    assert covering.update({("same", 0): None}) == {("same", 1): (500, 1), ("same", 0): None}
    assert counted.comparisons <= 2 * (50 + 1000)
