"""The table of edge cases, through every evaluator in the house."""

import tomllib
from pathlib import Path

import pytest

from mercast.content import Filter
from mercast.content.boxes import box_contains
from mercast.content.evaluate import evaluate
from mercast.content.expression import Not
from mercast.matching import Index

GROUPS = tomllib.loads(Path(__file__).with_name("filter_cases.toml").read_text())["group"]
TRUTH = {"true": True, "false": False, "unknown": None}
CASES = [
    pytest.param(case["filter"], case["attributes"], TRUTH[case["is"]], id=f"{case['filter']} of {case['attributes']}")
    for group in GROUPS
    for case in group["cases"]
]
cases = pytest.mark.parametrize(("text", "attributes", "truth"), CASES)


@cases
def test_direct_evaluation(text, attributes, truth):
    assert evaluate(Filter.parse(text).expression, attributes) is truth


@cases
def test_boxes(text, attributes, truth):
    filter = Filter.parse(text)
    opposite = Filter(Not(filter.expression))
    assert any(box_contains(box, attributes) for box in filter.boxes.union) is (truth is True)
    assert any(box_contains(box, attributes) for box in opposite.boxes.union) is (truth is False)


@pytest.mark.parametrize("compiled", [True, False], ids=["numba", "numpy"])
def test_index(compiled):
    index = Index(compiled=compiled)
    for number, case in enumerate(CASES):
        index.add(number, Filter.parse(case.values[0]))
    matched = index.match_many([case.values[1] for case in CASES])
    for number, case in enumerate(CASES):
        assert (number in matched[number]) is (case.values[2] is True), case.id


def test_the_table_tells_truths_apart():
    assert {case.values[2] for case in CASES} == {True, False, None}
    assert len(CASES) > 150
