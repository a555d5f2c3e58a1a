"""Types: declared, inherited, checked, changed additively."""

import pytest

from mercast.content import (
    Advertisement,
    AttributeType,
    ContentError,
    Declaration,
    Filter,
    Interest,
    Subscription,
    Types,
    read_declarations,
)
from mercast.limits import Limits

INT, FLOAT, STRING, BOOL = AttributeType.INT, AttributeType.FLOAT, AttributeType.STRING, AttributeType.BOOL

QUOTE = Declaration("quote", None, {"symbol": STRING, "price": FLOAT})
STOCK = Declaration("stock", "quote", {"volume": INT, "halted": BOOL})
BOND = Declaration("bond", "quote", {"yield": FLOAT})


@pytest.fixture
def types():
    types = Types()
    for declaration in (QUOTE, STOCK, BOND, Declaration("loose", None, {"n": INT}, open=True)):
        types.declare(declaration)
    return types


def test_lineage_and_attributes(types):
    assert types.lineage("stock") == ("stock", "quote")
    assert types.lineage("never heard of") == ("never heard of",)
    assert types.attributes("stock") == {"symbol": STRING, "price": FLOAT, "volume": INT, "halted": BOOL}
    assert types.attributes("never heard of") == {}
    assert types.related("stock", "quote")
    assert types.related("quote", "stock")
    assert not types.related("stock", "bond")
    assert types.is_open("never heard of")
    assert not types.is_open("stock")
    assert dict(types.declared)["bond"] == BOND


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("stock", {"symbol": "A", "price": 1.5, "volume": 3, "halted": False}),
        ("stock", {}),
        ("quote", {"price": 1}),
        ("loose", {"n": 1, "anything": "goes"}),
        ("never heard of", {"x": 1}),
    ],
)
def test_events_that_their_type_allows(types, name, attributes):
    types.check_attributes(name, attributes)


@pytest.mark.parametrize(
    ("name", "attributes", "says"),
    [
        ("stock", {"prize": 1.5}, "'stock' declares no attribute 'prize'; did you mean 'price'?"),
        ("bond", {"volume": 1}, "declares no attribute 'volume'; it has price, symbol, yield"),
        ("stock", {"volume": 1.5}, "declares 'volume' as int, but the event has 1.5"),
        ("stock", {"volume": True}, "declares 'volume' as int, but the event has True"),
        ("stock", {"price": "1"}, "declares 'price' as float, but the event has '1'"),
        ("stock", {"halted": 1}, "declares 'halted' as bool, but the event has 1"),
        ("loose", {"n": "1"}, "declares 'n' as int"),
    ],
)
def test_events_that_their_type_refuses(types, name, attributes, says):
    with pytest.raises(ContentError, match=says.replace("?", r"\?")):
        types.check_attributes(name, attributes)


@pytest.mark.parametrize(
    "text",
    ["price > 1", "symbol LIKE 'A%' AND price IS NULL", "yield > 1 OR volume > 1", "price BETWEEN 1 AND 2.5", ""],
)
def test_filters_that_a_type_allows(types, text):
    types.check_filter("quote", Filter.parse(text).expression)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("quote", "NOT (prize > 1)", "no attribute 'prize'; did you mean 'price'"),
        ("stock", "yield > 1", "no attribute 'yield'"),
        ("quote", "price = 'high'", "'price' as float: it never compares with 'high'"),
        ("quote", "price LIKE 'h%'", "never compares with 'h%'"),
        ("quote", "symbol IN ('A', 1)", "'symbol' as string: it never compares with 1"),
        ("quote", "price BETWEEN 1 AND 'b'", "never compares with 'b'"),
        ("stock", "halted = 1", "'halted' as bool: it never compares with 1"),
        ("loose", "n = 'a'", "'n' as int"),
    ],
)
def test_filters_that_can_only_be_a_mistake(types, name, text, says):
    with pytest.raises(ContentError, match=says):
        types.check_filter(name, Filter.parse(text).expression)


def test_open_and_undeclared_types_allow_any_name(types):
    types.check_filter("loose", Filter.parse("what = 'ever'").expression)
    types.check_filter("never heard of", Filter.parse("what = 'ever'").expression)


@pytest.mark.parametrize(
    "again",
    [
        STOCK,
        Declaration("stock", "quote", {"volume": INT, "halted": BOOL, "lot": INT}),
        Declaration("stock", "quote", {"volume": INT, "halted": BOOL}, open=True),
        Declaration("stock", "quote", {"volume": INT, "halted": BOOL, "price": FLOAT}),
    ],
)
def test_a_declaration_may_be_repeated_with_more(types, again):
    types.declare(again)
    assert types.declared["stock"] == again


@pytest.mark.parametrize(
    ("declaration", "says"),
    [
        (Declaration("stock", "quote", {"volume": INT}), "'halted' as bool, which cannot become absent"),
        (
            Declaration("stock", "quote", {"volume": FLOAT, "halted": BOOL}),
            "'volume' as int, which cannot become float",
        ),
        (Declaration("stock", None, {"volume": INT, "halted": BOOL}), "parent 'quote', which cannot become None"),
        (Declaration("loose", None, {"n": INT}), "is open and cannot be closed"),
        (Declaration("future", "stock", {"price": INT}), "'future' declares 'price' as int, but inherits it as float"),
        (
            Declaration("quote", None, {"symbol": STRING, "price": FLOAT, "volume": FLOAT}),
            "'stock' declares 'volume' as int, but inherits it as float",
        ),
        (Declaration("self", "self"), "would be its own ancestor: self -> self"),
        (Declaration(""), "type '' is not a name"),
        (Declaration("x", None, {"n": "int"}), "'n' is 'int', expected an AttributeType"),
        (Declaration("x", ""), "parent type '' is not a name"),
        (Declaration("x", None, {"": INT}), "attribute '' is not a name"),
        (Declaration("x", None, {str(n): INT for n in range(257)}), "257 attributes, at most 256"),
    ],
)
def test_what_would_break_a_type_is_refused_whole(types, declaration, says):
    before = dict(types.declared)
    with pytest.raises(ContentError, match=says):
        types.declare(declaration)
    assert dict(types.declared) == before


def test_a_parent_may_be_declared_after_its_children():
    types = Types()
    types.declare(STOCK)
    assert types.is_open("stock"), "an undeclared parent may have any attributes"
    types.declare(QUOTE)
    assert types.lineage("stock") == ("stock", "quote")
    assert not types.is_open("stock")


def test_a_circle_is_refused_however_it_is_closed():
    types = Types()
    types.declare(Declaration("a", "b"))
    types.declare(Declaration("b", "c"))
    with pytest.raises(ContentError, match="own ancestor"):
        types.declare(Declaration("c", "a"))


def test_limits():
    types = Types(Limits(types=3, type_depth=2))
    types.declare(Declaration("b", "a"))
    types.declare(Declaration("c", "b"))
    with pytest.raises(ContentError, match="more than 2 ancestors"):
        types.declare(Declaration("d", "c"))
    types.declare(Declaration("a"))
    with pytest.raises(ContentError, match="3 types are declared already"):
        types.declare(Declaration("e"))
    types.declare(Declaration("a", None, {"x": INT}))


def test_a_closed_type_with_an_open_subtype_may_be_asked_for_anything(types):
    types.declare(Declaration("exotic", "quote", open=True))
    types.check_filter("quote", Filter.parse("anything = 1").expression)


def test_a_declaration_is_the_trees_own(types):
    attributes = {"x": INT}
    types.declare(Declaration("mine", None, attributes))
    attributes["y"] = INT
    assert types.attributes("mine") == {"x": INT}


# -- subscriptions and advertisements ----------------------------------------------------------------------------------


def test_a_subscription_gets_subtypes(types):
    subscription = Subscription("quote", Filter.parse("price > 10"))
    assert subscription.matches(types, "stock", {"price": 11})
    assert subscription.matches(types, "quote", {"price": 11})
    assert not subscription.matches(types, "stock", {"price": 9})
    assert not subscription.matches(types, "loose", {"price": 11})
    assert not Subscription("stock").matches(types, "quote", {})
    assert Subscription().matches(types, "never heard of", {})


@pytest.mark.parametrize(
    ("a", "b", "covers", "intersects"),
    [
        (("quote", "price > 1"), ("stock", "price > 2"), True, True),
        (("stock", "price > 1"), ("quote", "price > 2"), False, True),
        (("stock", ""), ("bond", ""), False, False),
        ((None, "price > 1"), ("stock", "price > 2"), True, True),
        (("stock", "price > 1"), (None, "price > 2"), False, True),
        ((None, ""), (None, "price > 2"), True, True),
        (("quote", "price > 2"), ("quote", "price < 2"), False, False),
    ],
)
def test_covering_and_intersection_look_at_types_too(types, a, b, covers, intersects):
    one, other = (Subscription(name, Filter.parse(text)) for name, text in (a, b))
    assert one.covers(types, other) is covers
    assert one.intersects(types, other) is intersects
    assert other.intersects(types, one) is intersects


def test_an_advertisement_names_a_type(types):
    with pytest.raises(ContentError, match="an advertisement names a type"):
        Advertisement()
    assert Advertisement("quote").intersects(types, Subscription("stock", Filter.parse("volume > 1")))


def test_a_subscription_to_a_declared_type_is_checked(types):
    with pytest.raises(ContentError, match="did you mean 'price'"):
        Subscription("quote", Filter.parse("prise > 1")).check(types)
    Interest(None, Filter.parse("prise > 1")).check(types)


# -- files -------------------------------------------------------------------------------------------------------------

FILE = """
types:
  quote:
    attributes: {symbol: string, price: float}
  stock:
    parent: quote
    open: true
    attributes:
      volume: int
      halted: bool
  bare:
"""


def test_a_file_of_declarations():
    assert read_declarations(FILE) == [
        QUOTE,
        Declaration("stock", "quote", {"volume": INT, "halted": BOOL}, open=True),
        Declaration("bare"),
    ]


BAD_FILES = [
    ("types: [", "not YAML"),
    ("quote: {}", "the file: 'quote' is unknown, expected types"),
    ("", "the file: found NoneType, expected names"),
    ("types: [quote]", "types: found list, expected names"),
    ("types: {a: 5}", "type 'a': found int"),
    ("types: {a: {kind: b}}", "type 'a': 'kind' is unknown, expected attributes, open, parent"),
    ("[" * 5000, "not YAML"),
    ("types: {a: 2024-13-45}", "not YAML"),
    ("types: {a: {attributes: false}}", "type 'a': attributes: found bool"),
    ("types:\n  a: {}\n  b: {}\n  a: {open: true}", "line 4: 'a' is given twice"),
    ("types: {a: {attributes: {x: int, x: float}}}", "line 1: 'x' is given twice"),
    ("types: &a {a: *a}", "type 'a': 'a' is unknown"),
    ("types: {[a]: {}}", "not YAML"),
    ("types: {a: {open: 5}}", "open is 5, expected true or false"),
    ("types: {a: {attributes: [x]}}", "type 'a': attributes: found list"),
    (
        "types: {a: {attributes: {x: number}}}",
        "attribute 'x' is 'number', expected one of bool, int, float, string",
    ),
    ("types: {5: {}}", "type 5 is not a name"),
    ("types: {a: {parent: [b]}}", "parent type .* is not a name"),
]


@pytest.mark.parametrize(("text", "says"), BAD_FILES, ids=[text[:20] for text, _ in BAD_FILES])
def test_a_bad_file_is_told_what_is_wrong(text, says):
    with pytest.raises(ContentError, match=says):
        read_declarations(text)


def test_parts_that_a_file_refers_to_many_times_are_looked_at_once():
    levels = "".join(
        f"l{level}: &l{level} {{{', '.join(f'k{n}: *l{level - 1}' for n in range(9))}}}\n" for level in range(1, 40)
    )
    with pytest.raises(ContentError, match="'l0' is unknown"):
        read_declarations(f"l0: &l0 {{a: 1}}\n{levels}")
