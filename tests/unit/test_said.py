"""What a peer has told us is measured rightly, whatever it says."""

from hypothesis import given
from hypothesis import strategies as st

from mercast.content import Filter
from mercast.content.interest import Subscription
from mercast.content.types import AttributeType, Declaration
from mercast.overlay.said import ITEM_BYTES, Said, Total

VALUES = [
    Subscription("quote"),
    Subscription("quote", Filter.parse("price < 100")),
    Declaration("quote", None, {"price": AttributeType.FLOAT}),
]
keys = st.integers(0, 5).map(lambda number: ("key", number))
steps = st.one_of(
    st.tuples(st.just("put"), keys, st.sampled_from(VALUES)),
    st.tuples(st.just("drop"), keys),
    st.tuples(st.just("repeat"), keys),
    st.tuples(st.just("begin_anew")),
    st.tuples(st.just("end")),
)


def fresh(items):
    said = Said()
    for key, value in items:
        said.put(key, value)
    return said.size


@given(st.lists(steps, max_size=40))
def test_the_size_is_that_of_what_is_there_but_may_still_be_repeated(story):
    total = Total()
    said, old = Said(total), None
    Said(total).put(("other",), VALUES[0])
    for what, *how in story:
        if what == "end":
            assert said.end() == sorted(old or ())
            old = None
        else:
            getattr(said, what)(*how)
            if what == "begin_anew":
                old = set(said)
            elif old is not None:
                old -= {how[0]}
        assert said.is_whole == (old is None)
        assert (total.items, total.bytes) == (said.size[0] + 1, said.size[1] + ITEM_BYTES)
        assert said.size == fresh((key, value) for key, value in said.items() if key not in (old or ()))


def test_long_filters_and_many_attributes_weigh_more():
    (_, plain), (_, filtered), (_, declared) = (fresh([(("key", 1), value)]) for value in VALUES)
    assert plain == ITEM_BYTES < min(filtered, declared)
