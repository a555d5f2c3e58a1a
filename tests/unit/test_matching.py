"""The index answers as the plain scan does, whatever is added and removed, by either loop."""

import gc
import math
import random
import subprocess
import sys
import weakref
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import events, filters

from mercast.content import ContentError, Filter
from mercast.content.expression import And, Between, Compare, In, Like
from mercast.limits import Limits
from mercast.matching import Index, Scan, TypedMatcher

LOOPS = [pytest.param(True, id="numba"), pytest.param(False, id="numpy")]
both_loops = pytest.mark.parametrize("compiled", LOOPS)


def parsed(*texts):
    return [Filter.parse(text) for text in texts]


def filled(matcher, filters):
    for id, filter in enumerate(filters):
        matcher.add(id, filter, id % 3)
    return matcher


def same_answers(index, scan, some_events):
    assert index.match_many(some_events) == scan.match_many(some_events)
    assert index.destinations_many(some_events) == scan.destinations_many(some_events)
    for event in some_events[:2]:
        assert index.match(event) == scan.match(event)
        assert index.destinations(event) == scan.destinations(event)


@both_loops
@settings(max_examples=40)
@given(st.lists(filters, max_size=12), st.lists(events, min_size=1, max_size=6))
def test_index_equals_scan(compiled, some_filters, some_events):
    same_answers(filled(Index(compiled=compiled), some_filters), filled(Scan(), some_filters), some_events)


steps = st.lists(
    st.tuples(st.just("add"), filters)
    | st.tuples(st.just("remove"), st.integers(0, 20))
    | st.tuples(st.just("move"), st.integers(0, 20))
    | st.tuples(st.just("ask"), events),
    max_size=40,
)


@both_loops
@settings(max_examples=40)
@given(st.lists(filters, max_size=30), steps)
def test_index_equals_scan_while_filters_come_and_go(compiled, first, steps):
    index, scan = filled(Index(compiled=compiled), first), filled(Scan(), first)
    index.match({})  # lays the first filters out, so that the rest go into the room at the end
    next_id = len(first)
    for step, what in steps:
        if step == "add":
            index.add(next_id, what, next_id % 3)
            scan.add(next_id, what, next_id % 3)
            next_id += 1
        elif step == "ask":
            same_answers(index, scan, [what])
        elif what not in scan:
            continue
        elif step == "remove":
            index.remove(what)
            scan.remove(what)
        else:
            index.move(what, what % 5)
            scan.move(what, what % 5)
    assert len(index) == len(scan)
    same_answers(index, scan, [{}, {"a": 1, "b": "ab"}, {"a": "a", "c.d": True}])


def crowd(count, seed):
    """Filters of all sorts over more values than there are cells."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abc", k=rng.randint(1, 6))) for _ in range(600)]

    def leaf():
        low = rng.random()
        return rng.choice(
            [
                Between("x", low, low + 0.3),
                Compare("y", rng.choice(["<", "<=", ">", ">=", "<>"]), rng.randint(0, 2000)),
                Compare("word", "=", rng.choice(words)),
                In("word", tuple(rng.choices(words, k=5))),
                Like("word", rng.choice(words)[:3] + "%"),
                Like("word", "%" + rng.choice(words)[:2]),
                Compare(f"rare{rng.randint(0, 500)}", "=", True),
            ]
        )

    def event():
        return {
            "x": rng.choice([rng.random(), "text", None]),
            "y": rng.randint(0, 2000),
            "word": rng.choice(words) + rng.choice(["", "", "b"]),
            f"rare{rng.randint(0, 500)}": True,
        }

    return [Filter(And(tuple(leaf() for _ in range(rng.randint(1, 3))))) for _ in range(count)], [
        event() for _ in range(30)
    ]


@both_loops
@pytest.mark.parametrize(
    "limits", [Limits(), Limits(bitmap_bytes=20_000), Limits(batch_bytes=1)], ids=["", "coarse", "parts"]
)
def test_a_crowd_with_more_bounds_than_cells(compiled, limits):
    some_filters, some_events = crowd(1500, seed=1)
    index, scan = filled(Index(limits, compiled=compiled), some_filters), filled(Scan(), some_filters)
    same_answers(index, scan, some_events)
    assert index._table.bitmaps.excluded.nbytes <= limits.bitmap_bytes
    newcomers, _ = crowd(450, seed=2)
    for id, filter in enumerate(newcomers, 10_000):
        for matcher in (index, scan):
            matcher.add(id, filter, id % 3)
            matcher.remove(id - 9_000)
        if id % 50 == 0:
            same_answers(index, scan, some_events[:3])
    same_answers(index, scan, some_events)


@both_loops
def test_an_event_may_match_more_filters_than_the_loop_finds_in_one_go(compiled):
    index, filters = Index(compiled=compiled), parsed("", "x > 1")
    if compiled:
        index._loop._found = np.empty(32_768, np.int32)  # room for one stretch, as small as it may be
    for id in range(40_000):
        index.add(id, filters[id % 2])
    assert index.match_many([{"x": 2}, {}, {"x": 2}]) == [
        list(range(40_000)),
        list(range(0, 40_000, 2)),
        list(range(40_000)),
    ]


@both_loops
def test_values_on_bounds_and_beside_them(compiled):
    """More bounds than fine cells: a bound may lie inside its cell, or be where two meet."""
    rng = random.Random(5)
    filters = [Filter(And((Between("x", low := rng.random(), low + 0.1), Compare("y", ">", low)))) for _ in range(3000)]
    index, scan = filled(Index(compiled=compiled), filters), filled(Scan(), filters)
    bounds = [
        bound for filter in filters[:15] for bound in (filter.expression.terms[0].low, filter.expression.terms[0].high)
    ]
    beside = [math.nextafter(bound, end) for bound in bounds for end in (-math.inf, math.inf)]
    same_answers(index, scan, [{"x": x, "y": rng.choice([x, 2])} for x in bounds + beside])


@both_loops
@pytest.mark.parametrize("columns", [1, 7, 8, 17, 40])
def test_any_number_of_columns(compiled, columns):
    """The compiled loop takes eight at a time, and compares at most 32 on the fine grid."""
    rng = random.Random(columns)
    names = [f"a{number}" for number in range(columns)]

    def leaf():
        low = rng.randint(0, 60)
        return Between(rng.choice(names), low, low + rng.randint(0, 90))

    filters = [Filter(And((leaf(), leaf(), leaf()))) for _ in range(400)]
    index, scan = filled(Index(compiled=compiled), filters), filled(Scan(), filters)
    same_answers(index, scan, [{name: rng.randint(0, 99) for name in names} for _ in range(50)])


@both_loops
def test_long_lists_of_values_and_gaps(compiled):
    filters = [
        Filter(And((In("x", tuple(range(start, 3000, 7))), In("s", tuple(f"s{n}" for n in range(start, 300, 5))))))
        for start in range(5)
    ]
    filters += parsed(
        "x NOT IN (3, 5, 8) OR x IS NULL", "x IN (2, TRUE, 'a') OR x IS NULL", "NOT (x BETWEEN 3 AND 4 OR x = 9)"
    )
    index, scan = filled(Index(compiled=compiled), filters), filled(Scan(), filters)
    values = [None, *range(20), 2996, 2997, 3000, 2.5, True, False, "a", "b"]
    same_answers(
        index,
        scan,
        [{"x": x, "s": s} if x is not None else {"s": s} for x in values for s in ("s10", "s11", "s299", "")],
    )


@both_loops
def test_strings_between_known_strings_never_run_out_of_room(compiled):
    """Each new string lies between the last one and 'b': the codes must be spaced anew in time."""
    index, scan = Index(compiled=compiled), Scan()
    text = "a"
    for id in range(400):
        text += "a" if id % 3 else "b"
        for matcher in (index, scan):
            matcher.add(id, Filter(And((Compare("s", ">", text), Compare("s", "<", "b")))))
        assert index.match({"s": text + "a"}) == scan.match({"s": text + "a"})
    same_answers(index, scan, [{"s": text[:length]} for length in range(0, 401, 7)])


@pytest.mark.parametrize("step", [1, -1], ids=["up", "down"])
def test_names_that_count_up_or_down_seldom_space_the_dictionary_anew(step):
    """All lie in one gap, below the end of the prefix: halving it each time would need a new dictionary every 20."""
    index, spaced = Index(), []
    space = index._table._space_strings
    index._table._space_strings = lambda *asked: (spaced.append(asked), space(*asked))
    index.add(-1, Filter.parse("id LIKE 'order-%'"))
    numbers = range(5_000, 5_000 + 3_000 * step, step)
    for number in numbers:
        index.add(number, Filter.parse(f"id = 'order-{number:08d}'"))
    assert len(spaced) <= 2
    assert index.match({"id": f"order-{numbers[77]:08d}"}) == [-1, numbers[77]]


def test_names_that_count_up_in_turn_seldom_space_the_dictionary_anew():
    index, spaced = Index(), []
    space = index._table._space_strings
    index._table._space_strings = lambda *asked: (spaced.append(asked), space(*asked))
    for number in range(3_000):
        index.add(number, Filter.parse(f"id = 'order-{'ABC'[number % 3]}-{number:08d}'"))
    assert len(spaced) <= 2
    assert index.match({"id": "order-C-00000077"}) == [77]


@both_loops
def test_ints_between_two_floats(compiled):
    big = 2**53
    texts = [
        f"n {op} {bound}" for op in ("=", "<>", "<", "<=", ">", ">=") for bound in (big, big + 1, big + 2, f"{big}.0")
    ]
    index, scan = filled(Index(compiled=compiled), parsed(*texts)), filled(Scan(), parsed(*texts))
    same_answers(index, scan, [{"n": n} for n in (big - 1, big, float(big), big + 1, big + 2, float(big + 2), big + 3)])


def test_ids_of_any_kind_that_sorts():
    index = Index()
    for id in ("m", "z", "a"):
        index.add(id, Filter.parse("x > 1 OR y > 1"))
    assert index.match({"x": 2, "y": 2}) == ["a", "m", "z"]
    index.remove("m")
    assert index.match({"x": 2}) == ["a", "z"]


def test_a_filter_of_several_boxes_is_answered_once():
    index = Index()
    index.add(7, Filter.parse("x > 1 OR y > 1"))
    assert index.match({"x": 2, "y": 2}) == [7]


def test_destinations_are_answered_once_each():
    index = Index()
    for id, destination in enumerate(["west", "east", "west", "north"]):
        index.add(id, Filter.parse(f"x > {id}"), destination)
    assert index.destinations({"x": 3}) == ["east", "west"]
    assert index.destinations_many([{"x": 9}, {}]) == [["east", "north", "west"], []]


def test_a_loose_filter_does_not_hide_its_destination():
    """The first slot of a destination may turn out not to match: the others still count."""
    index = Index()
    index.add(0, Filter.parse("word LIKE '%q%'"), "one")
    index.add(1, Filter.parse("word LIKE '%a%'"), "one")
    index.add(2, Filter.parse("word > ''"), "one")
    assert index.destinations({"word": "a"}) == ["one"]


@pytest.mark.parametrize("matcher", [Index, Scan])
def test_ids_are_held_once(matcher):
    some = matcher()
    some.add(1, Filter.parse("x > 1"))
    with pytest.raises(ValueError, match="remove it first"):
        some.add(1, Filter.parse("x > 2"))
    assert some.match({"x": 2}) == [1]
    with pytest.raises(KeyError):
        some.remove(2)
    some.remove(1)
    assert (len(some), 1 in some, some.match({"x": 2})) == (0, False, [])
    some.add(1, Filter.parse("x > 2"))
    assert some.match({"x": 2}) == []


@both_loops
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, [1], b"x"])
def test_values_that_no_event_can_have_are_refused(compiled, value):
    index = filled(Index(compiled=compiled), parsed("x > 1", "x IS NOT NULL"))
    with pytest.raises(ContentError):
        index.match({"x": value})
    with pytest.raises(ContentError):
        index.match_many([{"x": value}, {"x": value}])
    assert index.match({"x": 2}) == [0, 1]


@both_loops
def test_no_filters_and_no_events(compiled):
    index = Index(compiled=compiled)
    assert (index.match({"x": 1}), index.match_many([]), index.destinations({})) == ([], [], [])
    index.add(1, Filter())
    index.remove(1)
    assert index.match({}) == []


def test_a_removed_filter_is_let_go():
    filter = Filter.parse("x LIKE '%a%'")
    index, seen = Index(), weakref.ref(filter)
    index.add(1, filter)
    index.remove(1)
    del filter
    gc.collect()
    assert seen() is None


def test_what_is_gone_gives_its_memory_back():
    index = Index()
    for number in range(6_000):
        index.add(number, Filter.parse(f"name{number} = 'text{number}'"), number)
        index.remove(number)
    index.add(-1, Filter.parse("x = 'y'"), "one")
    index.match({})
    table = index._table
    assert len(table._ids) <= 1_100
    assert len(table.coding.numbers) <= 1_100
    assert len(table._destinations) <= 1_100


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [
        ("x = 3", 3, True),
        ("x = 4 AND y = 1", 3, False),
        ("x < 9007199254740993", 3, True),
        ("x = 9007199254740993 OR x = 1", 2**53, False),
        ("y = 1 AND x <> 3", 3, False),
    ],
)
def test_floats_of_numpy_are_compared_as_floats_are(text, value, matches):
    event = {"x": np.float64(value), "y": 1}
    for matcher in (Index(), Scan()):
        matcher.add(1, Filter.parse(text))
        assert matcher.match(event) == matcher.match_many([event, event])[0] == ([1] if matches else [])


def test_a_mapping_that_makes_up_what_is_missing_is_neither_asked_nor_changed():
    index = filled(Index(), parsed("x = 0", "y IS NULL"))
    event = defaultdict(int, {"z": 1})
    assert index.match(event) == [1]
    assert index.match_many([event, event]) == [[1], [1]]
    assert event == {"z": 1}


def test_what_cannot_be_a_destination_leaves_the_index_as_it_was():
    index = filled(Index(), parsed("x > 0"))
    with pytest.raises(TypeError):
        index.add("bad", Filter.parse("x > 1"), [])
    index.add(7, Filter.parse("x > 2"))
    assert (len(index), "bad" in index, index.match({"x": 9})) == (2, False, [0, 7])


def test_an_id_is_held_under_one_type():
    matcher = TypedMatcher()
    matcher.add(1, "a", Filter())
    with pytest.raises(ValueError, match="remove it first"):
        matcher.add(1, "b", Filter())
    matcher.remove(1)
    assert matcher.match(("a",), {}) == []


def test_numbers_of_any_class_and_none():
    import numpy

    index = filled(Index(), parsed("x = 1", "x IS NULL"))
    assert index.match({"x": numpy.float64(1)}) == [0]
    assert index.match_many([{"x": None}, {"x": True}]) == [[1], []]


@both_loops
@pytest.mark.parametrize("spread", [1, 2**20, 2**40, 2**61])
def test_ids_are_ascending_however_far_apart_they_lie(compiled, spread):
    """They are sorted together with their events as one number, as long as both fit."""
    index, scan = Index(compiled=compiled), Scan()
    for matcher in (index, scan):
        for number in (3, -1, 2, -2, 0):
            matcher.add(number * spread, Filter.parse(f"x >= {number}"))
    same_answers(index, scan, [{"x": x % 5 - 2} for x in range(40)])


def test_a_typed_matcher_asks_along_the_lineage():
    matcher = TypedMatcher()
    for number in range(40):
        type = ("child", "parent", None)[number % 3]
        matcher.add(number, type, Filter.parse(f"x >= {number}"), f"d{number % 2}")
    at = {"child": 0, "parent": 1, None: 2}
    for lineage in (("child", "parent"), ("parent",), ("other",)):
        wanted = {at.get(type) for type in (*lineage, None)}
        ids = [number for number in range(21) if number % 3 in wanted]
        assert matcher.match(lineage, {"x": 20}) == ids
        assert matcher.destinations(lineage, {"x": 20}) == sorted({f"d{number % 2}" for number in ids})
    assert matcher.match(("child",), {"x": 0}) == [0]
    assert matcher.destinations(("child",), {"x": 0}) == ["d0"]


def test_rows_of_one_batch_may_mix_floats_with_other_kinds():
    texts = ("x > 1", "x = 'a'", "y > 1", "y IS NULL", "x")
    index, scan = filled(Index(), parsed(*texts)), filled(Scan(), parsed(*texts))
    same_answers(index, scan, [{"x": 2.0, "y": 2.0}, {"x": "a", "y": 0.5}, {"x": True, "y": 3.0}])


def test_what_is_prepared_is_what_events_need():
    """In a process of its own: else another test would have had the loop compiled."""
    pytest.importorskip("numba")
    code = """
from mercast.content import Filter
from mercast.matching import Index, prepare
prepare()
from mercast.matching import compiled
before = list(compiled._find.signatures)
index = Index()
for number in range(100):
    index.add(number, Filter.parse(f"a > {number} AND s LIKE 'x%' OR b"), number % 3)
index.match_many([{"a": 5, "s": "xy"}, {"b": True}])
index.destinations_many([{"a": 5.5}])
print(len(before), compiled._find.signatures == before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 True\n"
