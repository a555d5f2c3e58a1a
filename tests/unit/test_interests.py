"""Many interests are found by type as they would be one by one."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import filters

from mercast.content.interest import Interest
from mercast.content.interests import Interests
from mercast.content.types import Declaration, Types

NAMES = ["a", "a.b", "a.b.c", "d", "e"]
interests = st.builds(Interest, st.none() | st.sampled_from(NAMES), filters)


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | interests), max_size=20), interests, st.booleans())
def test_those_that_another_concerns_are_found(changes, other, declared_first):
    types, found, plain = Types(), Interests(), {}

    def declare():
        for name, parent in (("a.b", "a"), ("a.b.c", "a.b")):
            types.declare(Declaration(name, parent, {}, open=True))

    if declared_first:
        declare()
    for key, interest in changes:
        if interest is not None:
            found.put(key, interest)
            plain[key] = interest
        elif key in plain:
            assert found.drop(key) == plain.pop(key)
    if not declared_first:
        declare()
    assert found == plain
    expected = {key: one for key, one in plain.items() if one.intersects(types, other)}
    assert dict(found.concerning(types, other)) == expected
    assert found.any_concerning(types, other) is bool(expected)
