"""The door for attributes and events."""

from enum import Enum, IntEnum

import numpy
import pytest

from mercast.content import ContentError, Event, EventId, Filter, Kind, check_attributes, check_event, kind_of
from mercast.limits import Limits


class Colour(str, Enum):  # noqa: UP042 - its str() is "Colour.RED", unlike a StrEnum's
    RED = "red"


class Size(IntEnum):
    LARGE = 3


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, Kind.BOOL),
        (0, Kind.NUMBER),
        (2**63 - 1, Kind.NUMBER),
        (-(2**63), Kind.NUMBER),
        (1.7e308, Kind.NUMBER),
        (-1.7e308, Kind.NUMBER),
        ("", Kind.STRING),
        (Colour.RED, Kind.STRING),
        (numpy.float64(1), Kind.NUMBER),
    ],
)
def test_kinds(value, kind):
    assert kind_of(value) is kind


REFUSED = [
    (float("nan"), "floats are finite"),
    (float("inf"), "floats are finite"),
    (-float("inf"), "floats are finite"),
    (2**63, "ints have 64 bits"),
    (-(2**63) - 1, "ints have 64 bits"),
    (b"x", "bytes cannot be an attribute"),
    ([1], "list cannot be an attribute"),
    (numpy.int64(1), "numpy.int64 cannot be an attribute"),
    (numpy.bool_(True), "numpy.bool cannot be an attribute"),
    (10**5000, "ints have 64 bits"),
    (1j, "complex cannot be an attribute"),
    ("\ud800", "half of a surrogate pair"),
    ("a" * 65_537, "at most 65536 are allowed"),
]


@pytest.mark.parametrize(("value", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_other_values_are_refused_by_name(value, says):
    with pytest.raises(ContentError, match=f"attribute 'x'.*{says}"):
        check_attributes({"x": value})


NOT_VALUES = [(value, says) for value, says in REFUSED if "at most" not in says and "surrogate" not in says]


@pytest.mark.parametrize(("value", "says"), NOT_VALUES, ids=[says for _, says in NOT_VALUES])
def test_a_filter_refuses_them_too(value, says):
    with pytest.raises(ContentError, match=says):
        Filter.parse("NOT x = 1").matches({"x": value})


def test_nested_data_becomes_dotted_names_and_null_is_left_out():
    nested = {"order": {"id": 7, "to": {"city": "Oslo", "zip": None}}, "gift": True, "note": None}
    assert check_attributes(nested) == {"order.id": 7, "order.to.city": "Oslo", "gift": True}


def test_values_are_plain_afterwards():
    checked = check_attributes({"a": Colour.RED, "b": Size.LARGE, "c": numpy.float64(0.5), "d": True})
    assert [(value, type(value)) for value in checked.values()] == [("red", str), (3, int), (0.5, float), (True, bool)]


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"": 1}, "attribute '' is not a name"),
        ({1: 1}, "attribute 1 is not a name"),
        ({"a": {1: 1}}, "attribute 1 is not a name"),
        ({"a": {"": 1}}, "attribute '' is not a name"),
        ([1], "names with values, not list"),
        ({"a" * 256: 1}, "at most 255"),
        ({"\ud800": 1}, "surrogate"),
        ({"a.b": 1, "a": {"b": 2}}, "'a.b' is given twice"),
        ({str(n): 1 for n in range(257)}, "more than 256 attributes"),
    ],
)
def test_names_are_checked(attributes, says):
    with pytest.raises(ContentError, match=says):
        check_attributes(attributes)


def test_just_within_the_limits():
    check_attributes({str(n): 1 for n in range(256)})
    check_attributes({"a" * 255: "a" * 65_536})
    check_attributes(nested(16))
    with pytest.raises(ContentError, match="more than 16 levels"):
        check_attributes(nested(17))


def nested(levels):
    data = {"x": 1}
    for _ in range(levels):
        data = {"x": data}
    return data


def test_data_nested_in_itself_is_refused():
    endless = {}
    endless["x"] = endless
    with pytest.raises(ContentError, match="nested"):
        check_attributes(endless)


def event(**changes):
    fields = {"id": EventId(1, 2, 3), "type": "quote", "attributes": {"a": {"b": 1}}, "time": 0, "publisher": "p"}
    return Event(**(fields | changes))


def test_an_event_comes_through_the_door_flat():
    assert check_event(event(payload=b"\0", trace="00-1-2-01")) == event(
        attributes={"a.b": 1}, payload=b"\0", trace="00-1-2-01"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": ""}, "type '' is not a name"),
        ({"publisher": None}, "publisher None is not a name"),
        ({"content_type": ""}, "content type '' is not a name"),
        ({"trace": ""}, "trace context '' is not a name"),
        ({"attributes": {"x": []}}, "attribute 'x'"),
        ({"payload": None}, "a payload is bytes, not NoneType"),
        ({"time": "now"}, "a time in whole nanoseconds"),
        ({"id": None}, "an event has an EventId"),
        ({"payload": bytes(1_048_577)}, "the payload has 1048577 bytes, at most 1048576"),
    ],
)
def test_a_bad_event_is_refused(changes, says):
    with pytest.raises(ContentError, match=says):
        check_event(event(**changes))


def test_limits_can_be_changed():
    assert check_event(event(payload=bytes(1_048_576)))
    with pytest.raises(ContentError, match="at most 3 are allowed"):
        check_event(event(payload=b"1234"), Limits(payload_bytes=3))
    with pytest.raises(ContentError, match="more than 1 attributes"):
        check_event(event(attributes={"a": 1, "b": 2}), Limits(attributes=1))
    with pytest.raises(ContentError, match=r"trace context .* at most 40"):
        check_event(event(trace="t" * 41), Limits(name_length=40))
