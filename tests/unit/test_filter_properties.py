"""Laws that every filter keeps, over awkward values."""

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import conjunctions, events, expressions, filters, leaves, patterns, strings

from mercast.content import Filter
from mercast.content.boxes import box_contains, normalise
from mercast.content.evaluate import evaluate
from mercast.content.expression import And, Not, Or
from mercast.content.like import compile_like

many = settings(max_examples=200)


@many
@given(filters, events)
def test_boxes_agree_with_direct_evaluation(filter, event):
    assert filter.boxes.exact
    assert any(box_contains(box, event) for box in filter.boxes.union) is filter.matches(event)


@many
@given(expressions, events, st.integers(1, 4))
def test_widened_boxes_hold_every_event_that_matches(expression, event, most):
    boxes = normalise(expression, most)
    inside = any(box_contains(box, event) for box in boxes.union)
    matches = evaluate(expression, event) is True
    assert len(boxes.union) <= most
    assert inside or not matches
    assert inside is matches or not boxes.exact


@many
@given(filters | conjunctions, filters | conjunctions, events)
def test_covers_is_never_wrongly_true(a, b, event):
    if a.covers(b) and b.matches(event):
        assert a.matches(event)


@many
@given(filters | conjunctions, filters | conjunctions, events)
def test_intersects_is_never_wrongly_false(a, b, event):
    if a.matches(event) and b.matches(event):
        assert a.intersects(b)


@many
@given(conjunctions)
def test_a_filter_covers_itself_written_another_way(filter):
    assert filter.covers(filter)
    assert Filter(And((filter.expression, filter.expression))).covers(filter)
    assert filter.covers(Filter(Or((filter.expression, filter.expression))))


@given(conjunctions, leaves)
def test_asking_for_more_is_covered(filter, more):
    assert filter.covers(Filter(And((*filter.expression.terms, more))))


@many
@given(expressions, events)
def test_not_turns_true_and_false_and_keeps_unknown(expression, event):
    truth = evaluate(expression, event)
    assert evaluate(Not(expression), event) is (None if truth is None else not truth)


@many
@given(expressions, events)
def test_printed_text_parses_to_the_same_meaning(expression, event):
    again = Filter.parse(str(Filter(expression)))
    assert evaluate(again.expression, event) is evaluate(expression, event)
    assert Filter.parse(str(again)) == again


@many
@given(patterns, strings)
def test_like_agrees_with_a_backtracking_matcher(pattern, text):
    assert compile_like(pattern).matches(text) is _backtracking(_symbols(pattern), text)


def _symbols(pattern):
    symbols, escaped = [], False
    for character in pattern:
        if escaped or character not in "\\%_":
            symbols.append((character,))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            symbols.append(character)
    return symbols


def _backtracking(symbols, text):
    if not symbols:
        return text == ""
    first, rest = symbols[0], symbols[1:]
    if first == "%":
        return any(_backtracking(rest, text[start:]) for start in range(len(text) + 1))
    return text != "" and (first == "_" or first == (text[0],)) and _backtracking(rest, text[1:])
