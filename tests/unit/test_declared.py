"""Declarations that all brokers come to share: same statements, same types, in whatever order they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content import AttributeType, ContentError, Declaration
from mercast.limits import Limits
from mercast.protocol.messages import Statement
from mercast.routing.declared import Declared

DECLARATIONS = st.builds(
    Declaration,
    st.sampled_from("abc"),
    st.sampled_from([None, *"abc"]),
    st.dictionaries(st.sampled_from("xy"), st.sampled_from(AttributeType), max_size=2),
    st.booleans(),
)


@given(st.lists(DECLARATIONS, max_size=8), st.randoms(use_true_random=False))
def test_brokers_with_the_same_statements_have_the_same_types(declarations, chance):
    """Some know of each other's statements when they make their own, some do not."""
    brokers = [Declared() for _ in range(3)]
    made = []
    for declaration in declarations:
        broker = chance.randrange(3)
        try:
            statement = brokers[broker].declare(broker, 1, declaration)
        except ContentError:
            continue
        if statement is not None:
            made.append((statement, declaration))
        if chance.random() < 0.5:
            known = brokers[broker].statements
            for one in known:
                brokers[chance.randrange(3)].learn(one, known[one])
    for broker in brokers:
        for statement, declaration in chance.sample(made, len(made)):
            broker.learn(statement, declaration)
        assert not any(broker.learn(*one) for one in made)
    assert brokers[0].types.declared == brokers[1].types.declared == brokers[2].types.declared
    assert brokers[0].statements == brokers[1].statements == brokers[2].statements


def test_a_change_comes_after_what_it_changes():
    first, second = Declared(), Declared()
    plain, more = Declaration("a"), Declaration("a", None, {"x": AttributeType.INT})
    assert first.declare(9, 1, plain) == Statement(1, 9, 1)
    second.learn(Statement(1, 9, 1), plain)
    assert second.declare(2, 1, more) == Statement(2, 2, 1)
    assert second.declare(2, 1, more) == Statement(2, 2, 1)
    assert second.types.declared["a"] == more


def test_declarations_are_bounded():
    declared = Declared(Limits(declarations=1))
    declared.declare(1, 1, Declaration("a"))
    with pytest.raises(ContentError, match="which is the limit"):
        declared.declare(1, 1, Declaration("b"))
    assert set(declared.types.declared) == {"a"}
    assert not declared.learn(Statement(2, 2, 1), Declaration("b"))
    assert not Declared(Limits(declarations=5)).learn(Statement(6, 2, 1), Declaration("b"))
    assert set(declared.types.declared) == {"a"}


def test_what_is_declared_again_adds_nothing_and_the_first_to_say_so_counts():
    """As by a broker that declares its types whenever it starts."""
    declared, quote = Declared(), Declaration("quote", None, {"x": AttributeType.INT})
    assert declared.learn(Statement(2, 1, 5), quote) == (None,)
    assert declared.learn(Statement(2, 1, 6), quote) is None
    assert declared.declare(3, 1, quote) == Statement(2, 1, 5)
    assert declared.learn(Statement(1, 2, 1), quote) == (Statement(2, 1, 5),)
    assert declared.statements == {Statement(1, 2, 1): quote}
    assert declared.learn(Statement(2, 1, 5), quote) is None
    assert dict(declared.types.declared) == {"quote": quote}
