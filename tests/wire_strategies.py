"""Hypothesis strategies for what goes over the wire: right values, and damage done to them."""

import json

import orjson
from hypothesis import strategies as st
from strategies import filters

from mercast.content import Advertisement, AttributeType, Declaration, Event, EventId, Filter, Subscription
from mercast.content.values import INT_MAX, INT_MIN
from mercast.overlay.split import CARRY, pack
from mercast.protocol.messages import (
    Ask,
    Carried,
    Complete,
    Control,
    Drop,
    Forward,
    HeartBeat,
    Local,
    Look,
    Packet,
    Put,
    Record,
    Reply,
    Report,
    Same,
    Statement,
    Update,
)
from mercast.protocol.plain import to_plain
from mercast.protocol.rows import Copied, Delivered, Dropped, Published

BROKERS = (1, 2, 3, 4, 9)
"""Those of the small overlay in the tests, and one that nobody knows."""

u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
counts = st.integers(0, 3) | st.integers(0, 2**63 - 1)
brokers = st.sampled_from(BROKERS)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
names = st.sampled_from(["quote", "stock", "größe", "x" * 255, "c.1"]) | texts.filter(bool)
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.booleans() | st.integers(INT_MIN, INT_MAX) | finite | texts
attributes = st.dictionaries(names, values, max_size=5)
payloads = st.binary(max_size=50)

event_ids = st.builds(EventId, u16, u64, u64)
events = st.tuples(
    event_ids,
    names,
    attributes,
    st.integers(-(2**63), 2**63 - 1),
    names,
    st.just("application/octet-stream") | names,
    st.none() | names,
    payloads,
).map(lambda said: Event(*said))  # not built, which would make up the bytes that it came in
packets = st.builds(Packet, events, st.booleans(), st.lists(u16, max_size=4).map(tuple))

locals_ = st.builds(Local, st.sampled_from(["p.1", "s.1", "größe.2"]), st.integers(-3, 5))
origins = st.tuples(brokers, locals_)
carried = st.builds(Carried, origins, st.lists(st.integers(0, 3) | u16, min_size=1, max_size=3).map(tuple))
statements = st.builds(Statement, counts, brokers, counts)
types = st.sampled_from(["quote", "stock"])
written = filters.map(lambda one: Filter.parse(str(one)))
advertisements = st.builds(Advertisement, types, written)
subscriptions = st.builds(Subscription, st.none() | types, written)
declarations = st.builds(
    Declaration,
    types,
    st.none() | types,
    st.dictionaries(st.sampled_from("ab"), st.sampled_from(AttributeType)),
    st.booleans(),
)
puts = (
    st.builds(Put, locals_, advertisements | subscriptions)
    | st.builds(Put, statements, declarations)
    | st.builds(Put, st.tuples(st.just("advertisement"), origins), advertisements)
    | st.builds(Put, st.tuples(st.just("subscription"), origins, origins), subscriptions)
    | st.builds(Put, carried, advertisements | subscriptions)
)
items = puts | puts.map(lambda put: Drop(put.key)) | st.just(Complete())

streams = st.tuples(st.integers(-1, 2) | counts, st.integers(-1, 3) | counts)
controls = st.builds(
    Control,
    brokers,
    brokers,
    st.integers(0, 20),
    streams,
    st.integers(1, 3) | st.integers(),
    st.lists(items, max_size=4).map(tuple),
    streams,
    st.integers(-1, 5) | st.integers(-(2**63), 2**63),
    st.lists(st.integers(-1, 5), max_size=3).map(tuple),
    st.booleans(),
    st.none() | u64,
).map(lambda control: control._replace(first=max(-(2**63), min(control.first, 2**63))))

lists = st.lists(brokers | brokers.map(lambda broker: broker | CARRY) | u16, max_size=5).map(pack)
records = st.builds(
    Record,
    brokers,
    counts,
    counts,
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.lists(st.tuples(brokers, st.integers(1, 255)), max_size=4).map(tuple),
)
updates = st.builds(Update, lists, st.integers(0, 20), st.lists(records, max_size=4).map(tuple))
beats = st.builds(HeartBeat, st.binary(max_size=8), finite, st.none() | finite, finite)
small_ids = st.builds(EventId, brokers, counts, counts)
copies = st.integers(1, 2)
rows = (
    # Every field is given: of one with a default that is left out, hypothesis draws any int, which no frame can hold.
    st.builds(Published, small_ids, counts, names, attributes, counts, counts, counts, st.none() | names)
    | st.builds(Copied, small_ids, counts, brokers, counts, counts, copies, st.booleans(), st.booleans(), counts)
    | st.builds(Delivered, small_ids, counts, names, st.lists(counts, max_size=2).map(tuple), counts, copies)
    | st.builds(Dropped, small_ids, counts, names)
)
reports = st.builds(Report, brokers, st.integers(0, 20), names, brokers, rows)
notes = st.none() | st.just("to the owner") | texts | origins
forwards = st.builds(
    Forward,
    lists,
    st.sampled_from([0, 1, 16, 17, 0xFFFE, 0xFFFF]),
    st.lists(packets, max_size=3).map(tuple),
    notes,
    st.booleans(),
)
routed = brokers, brokers, st.integers(0, 20)
digests = st.binary(max_size=8)
counted = st.lists(st.tuples(brokers, brokers, counts), max_size=4).map(tuple)
organising = (
    st.builds(Ask, *routed, counts, digests, finite, finite, st.none() | brokers, counted)
    | st.builds(Reply, *routed, counts, digests, st.booleans(), st.none() | brokers)
    | st.builds(Look, *routed, digests)
    | st.builds(Same, *routed, digests)
)
plain_messages = controls | updates | beats | reports

# -- damage ------------------------------------------------------------------------------------------------------------

DEEP = [[]]
for _ in range(200):
    DEEP = [DEEP]


def word(is_, **fields):
    return {"is": is_, **fields}


def filter_(text):
    return word("Filter", text=text)


JUNK = [
    *(None, True, False, 0, 1, -1, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 2**31, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)),
    *(0.5, -0.0, 1e308, "", "x", "x" * 300, "\0", "advertisement", "subscription", "größe", [], [[]], {}, {"a": 1}),
    *([1, 2], [1, 2, 3], [[1, 1], [1, 1]], [[2, 0]], [[2, 1]] * 300, DEEP, {"is": []}, word("Nothing"), word("Tick")),
    *(word("Complete"), *(word("bytes", hex=text) for text in ("", "0", "00", "zz", None))),
    *(word("float", text=text) for text in ("nan", "-inf", "1", {})),
    *(word("list", of=[]), word("list", of=3), word("dict", of=[[[], 1]]), word("dict", of=[[word("list", of=[]), 1]])),
    *(word("Local", client="advertisement", request=1), word("Local", client="subscription", request=2)),
    *(filter_("x >"), filter_("NOT " * 300), filter_(5), filter_("x IN (" + "1, " * 50 + "1)")),
    *(word("Subscription", type=None, filter=filter_("")), word("Subscription", type="x" * 300, filter=filter_(""))),
    *(word("Advertisement", type="quote", filter=filter_("a")), word("AttributeType", name="int")),
    *(word("Declaration", name="quote", parent="quote"), word("Declaration", name="", attributes=word("dict", of=[]))),
    word("Statement", number=2**64 - 1, broker=1, incarnation=1),
    word("Record", broker=2, incarnation=2**63 - 1, sequence=9, clusters=[], links=[[2, 1], [2, 255]]),
]
"""Of every sort that JSON has and that the protocol has, at the edges of their ranges."""


def places(plain, at=()):
    """Every place in plain data."""
    yield at
    children = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, child in children:
        yield from places(child, (*at, key))


def put_at(plain, at, new):
    if not at:
        return new
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[at[0]] = put_at(copy[at[0]], at[1:], new)
    return copy


def look(plain, at):
    for key in at:
        plain = plain[key]
    return plain


def without(plain, key):
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    del copy[key]
    return copy


@st.composite
def damaged_plain(draw, messages=None):
    """The JSON of a message, of any kind unless said otherwise, with something else at one place or two."""
    plain = orjson.loads(orjson.dumps(to_plain(draw(messages or plain_messages))))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.sampled_from(list(places(plain))))
        if at and draw(st.integers(0, 4)) == 0:
            parent = look(plain, at[:-1])
            less = (
                {key: one for key, one in parent.items() if key != at[-1]} if isinstance(parent, dict) else parent[1:]
            )
            plain = put_at(plain, at[:-1], less)
        else:
            other = st.sampled_from(list(places(plain))).map(lambda there, plain=plain: look(plain, there))
            plain = put_at(plain, at, draw(st.sampled_from(JUNK) | other))
    try:
        return orjson.dumps(plain)
    except TypeError:  # junk in junk: nested deeper than orjson says
        return json.dumps(plain).encode()


@st.composite
def damaged_bytes(draw, valid):
    """Some bytes changed, lost or put in."""
    data = bytearray(draw(valid))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = bytes([draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))])
            case 1:
                del data[at:]
            case 2:
                data[at:at] = draw(st.binary(max_size=9))
            case _:
                del data[at : at + draw(st.integers(1, 9))]
    return bytes(data)
