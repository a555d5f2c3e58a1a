"""What tokens allow: patterns, subtypes, and deny that wins."""

import pytest

from mercast.content.rules import Rules, check_pattern, matches
from mercast.content.types import Declaration
from mercast.protocol.stimuli import Advertise, Declare, Leave, Subscribe
from mercast.routing.declared import Declared
from mercast.security import guard as guarding
from mercast.security.guard import Guard
from mercast.security.tokens import Token


@pytest.mark.parametrize(
    ("pattern", "name", "does"),
    [
        ("stock", "stock", True),
        ("stock", "stock.quote", False),
        ("stock.*", "stock.quote", True),
        ("stock.*", "stock.", True),
        ("stock.*", "stock", False),
        ("*", "anything", True),
        ("Stock", "stock", False),
    ],
)
def test_patterns(pattern, name, does):
    assert matches(check_pattern(pattern), name) is does


@pytest.mark.parametrize("wrong", ["", "*.quote", "a*b", "**", None, 3])
def test_what_is_no_pattern(wrong):
    with pytest.raises(ValueError, match="is not a pattern: write a type such as"):
        check_pattern(wrong)


def guard(publish=(), subscribe=(), deny_publish=(), deny_subscribe=(), declared=None):
    token = Token(
        "one", b"", Rules(tuple(publish), tuple(deny_publish)), Rules(tuple(subscribe), tuple(deny_subscribe))
    )
    declared = declared or Declared()
    return Guard(token, lambda: declared)


def tree(*pairs):
    declared = Declared()
    for name, parent in pairs:
        declared.declare(1, 1, Declaration(name, parent))
    return declared


def test_what_is_not_allowed_is_denied():
    one = guard(publish=["a.*"])
    assert one.publish("a.b") == ""
    assert one.publish("b") == "token 'one' may not publish b: allowed is only a.*"
    assert one.subscribe("a.b") == "token 'one' may not subscribe to a.b: nothing is allowed"


def test_deny_wins():
    one = guard(publish=["*"], deny_publish=["a.*"], subscribe=["a.b"], deny_subscribe=["a.b"])
    assert one.publish("a.b") == "token 'one' may not publish a.b: denied by 'a.*'"
    assert one.publish("b") == ""
    assert one.subscribe("a.b") == "token 'one' may not subscribe to a.b: denied by 'a.b'"


def test_rules_hold_for_subtypes():
    declared = tree(("quote", None), ("stock", "quote"), ("nyse", "stock"))
    one = guard(publish=["quote"], subscribe=["stock"], deny_publish=["nyse"], declared=declared)
    assert one.publish("stock") == ""
    assert "denied by 'nyse'" in one.publish("nyse")
    assert one.subscribe("nyse") == ""
    assert "allowed is only stock" in one.subscribe("quote")
    other = guard(subscribe=["*"], deny_subscribe=["stock"], declared=declared)
    assert "denied by 'stock'" in other.subscribe("nyse")
    assert "it would bring its subtype stock, which is denied by 'stock'" in other.subscribe("quote")
    assert other.subscribe("bond") == ""


def test_any_type():
    assert guard(subscribe=["*"]).subscribe(None) == ""
    assert "needs '*'" in guard(subscribe=["a.*"]).subscribe(None)
    assert "would bring a, b.*, which is denied" in guard(subscribe=["*"], deny_subscribe=["a", "b.*"]).subscribe(None)


def test_nobody_makes_a_type_their_own_by_declaring_it():
    """Else whoever may read quotes would declare payrolls to be quotes."""
    one = guard(publish=["quote", "mine.*"], declared=tree(("quote", None)))
    assert one.declare("mine.quote", "quote") == ""
    assert one.declare("mine.quote", None) == ""
    assert "may not declare payroll" in one.declare("payroll", "quote")
    assert "may not publish payroll" in one.declare("mine.payroll", "payroll")


def test_requests():
    one = guard()
    assert "subscribe to a" in one.against(Subscribe("c", 1, "a", None))
    assert "publish a" in one.against(Advertise("c", 1, "a", None))
    assert "declare a" in one.against(Declare("c", 1, Declaration("a", None)))
    assert one.against(Leave("c")) == ""


def test_decisions_are_forgotten_with_the_tree_they_were_made_by():
    declared = tree(("quote", None))
    one = guard(publish=["*"], deny_publish=["quote"], declared=declared)
    assert one.publish("stock") == ""
    declared.declare(1, 1, Declaration("stock", "quote"))
    one.look()
    assert "denied by 'quote'" in one.publish("stock")


def test_decisions_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr(guarding, "_MOST", 3)
    one = guard(publish=["a*"])
    for number in range(10):
        assert one.publish(f"a{number}") == ""
        assert one.publish(f"b{number}") != ""
        assert len(one._publish) <= 3
