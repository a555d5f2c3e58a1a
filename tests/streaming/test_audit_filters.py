"""Both engines of filters, the brokers' and the audit's: they agree, on the table of edge cases and on anything."""

import tomllib
from pathlib import Path

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import events, filters

from mercast.content import Filter
from mercast.content.evaluate import evaluate
from mercast_streaming.audit.evaluate import Question, answered, kinds, questions
from mercast_streaming.audit.near import Group, bounds_of, together
from mercast_streaming.audit.where import read

TABLE = Path(__file__).parent.parent / "unit" / "filter_cases.toml"
TRUTH = {"true": True, "false": False, "unknown": None}


def by_audit(auditing, texts, attributes):
    """A row for each event: what each filter is of it."""
    # Whether a filter is false can be asked, too: unknown is what is neither.
    opposites = [f"NOT ({text})" if text.strip() else "FALSE" for text in texts]
    asked = questions(Question(None, text) for text in (*texts, *opposites))
    assert asked.unreadable == {}
    rows = [(number, "t", orjson.dumps(one).decode()) for number, one in enumerate(attributes)]
    table = auditing.createDataFrame(rows, "number int, type string, attributes string")
    found = {
        row["number"]: set(row["answers"]) for row in answered(table, asked, kinds(table, asked.names), {}).collect()
    }
    of = [[asked.asked[Question(None, text)] for text in some] for some in (texts, opposites)]
    return [
        [True if yes in found[number] else False if no in found[number] else None for yes, no in zip(*of, strict=True)]
        for number in range(len(attributes))
    ]


def by_brokers(texts, attributes):
    parsed = [Filter.parse(text).expression for text in texts]
    return [[evaluate(expression, one) for expression in parsed] for one in attributes]


def differences(texts, attributes, found):
    """What is not the same, to be read by a person."""
    return [
        f"{text!r} of {one!r}: {theirs}, {ours} by the audit"
        for one, row, other in zip(attributes, by_brokers(texts, attributes), found, strict=True)
        for text, theirs, ours in zip(texts, row, other, strict=True)
        if theirs is not ours
    ]


def test_the_table_of_edge_cases_each_filter_with_all_attributes(auditing):
    cases = [case for group in tomllib.loads(TABLE.read_text())["group"] for case in group["cases"]]
    texts, attributes = [case["filter"] for case in cases], [case["attributes"] for case in cases]
    found = by_audit(auditing, texts, attributes)
    assert differences(texts, attributes, found) == []
    assert [found[number][number] for number in range(len(cases))] == [TRUTH[case["is"]] for case in cases]


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.lists(filters, min_size=20, max_size=40), st.lists(events, min_size=20, max_size=40))
def test_any_filters_and_any_events(auditing, some, attributes):
    texts = [str(filter) for filter in some]
    assert differences(texts, attributes, by_audit(auditing, texts, attributes)) == []


@given(filters, st.lists(events, min_size=1, max_size=20))
def test_what_a_filter_implies_holds_wherever_it_is_true(one, attributes):
    bounds = bounds_of(read(str(one)))
    for event in attributes:
        if bounds is not None and evaluate(one.expression, event) is True:
            assert bounds.low <= event[bounds.name] <= bounds.high


def test_similar_filters_stand_together():
    texts = [f"x BETWEEN {n} AND {n + 1}.5 AND s LIKE 'a%'" for n in range(20)]
    texts += ["x = 3 AND s = 'a'", "s = 'b'", "s IN ('c', 'd') AND y > 1", "y > 1", "x = '7'", "x IN (1, 'a')", ""]
    asked = dict(enumerate(map(read, texts)))
    found = list(together(asked))
    assert found[0] == (None, [23, 25, 26])
    assert sorted(number for group in found for number in inside(group)) == sorted(asked)
    assert (read("x >= '7' AND x <= '7'"), [24]) in found
    assert (read("s >= 'b' AND s <= 'd'"), [21, 22]) in found
    (numbers,) = [group for group in found if group.implied == read("x >= 0 AND x <= 20.5")]
    assert inside(numbers) == [0, 1, 2, 20, *range(3, 20)]
    assert numbers.of[1] == (read("x >= 15 AND x <= 20.5"), [(read("x >= 15 AND x <= 19.5"), [15, 16, 17, 18]), 19])


def inside(group):
    return [number for one in group.of for number in (inside(one) if isinstance(one, Group) else [one])]
