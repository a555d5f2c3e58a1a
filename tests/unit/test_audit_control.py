"""Who was subscribed when, as far as that is known: without Spark."""

from mercast_streaming.audit.control import NEVER, Known, Span, assemble, descendants, known
from mercast_streaming.audit.paths import last
from mercast_streaming.audit.report import CLEAN, TOO_LITTLE, WRONG, Named, Report, Step

SECOND = 1_000_000


def life(**changes):
    return {
        "broker": 1, "incarnation": 7, "what": "subscription", "client": "c", "request": 1, "since": 10, "said": 10,
        "settled": 20, "ended": None, "cluster": "alpha", "type": "quote", "filter": "", "echo": True,
    } | changes  # fmt: skip


def extent(*gaps, broker=1, incarnation=7, to=1000, lost=()):
    return {"broker": broker, "incarnation": incarnation, "to": to, "lost": lost, "interval": 100, "gaps": gaps}


def gap(start, end, control=True, partition=0):
    return {"control": control, "partition": partition, "from": start, "to": end}


def snapshot(at, broker=1, incarnation=7):
    return {"broker": broker, "incarnation": incarnation, "at": at}


def test_all_is_known_where_no_row_is_lost():
    assert known([extent()], [snapshot(5)]) == {(1, 7): Known(0, 1000, snapshots=[5])}


def test_state_is_known_from_the_first_snapshot_on_if_the_beginning_is_missing():
    (one,) = known([extent(gap(None, 90))], [snapshot(300), snapshot(100)]).values()
    assert (one.begins, one.doubts) == (100, [])


def test_nothing_is_known_of_a_broker_without_control_rows():
    (one,) = known([extent()], []).values()
    assert one.begins == NEVER


def test_lost_control_rows_leave_doubts_until_the_next_snapshot():
    (one,) = known([extent(gap(200, 250), gap(500, 550))], [snapshot(5), snapshot(400)]).values()
    assert one.doubts == [Span(200, 400), Span(500, NEVER)]


def test_lost_rows_of_events_are_gaps_of_their_partition_and_told_losses_of_any():
    (one,) = known([extent(gap(200, 250, False, 3), gap(300, None, False, 1), lost=[700])], []).values()
    assert one.gaps == [(None, Span(600, 700)), (3, Span(200, 250)), (1, Span(300, NEVER))]


def test_a_broker_is_replaced_by_its_next_incarnation():
    extents = [extent(), extent(incarnation=9, to=3000), extent(incarnation=8, to=2000), extent(broker=2)]
    found = known(extents, [snapshot(1500, incarnation=8), snapshot(2500, incarnation=9)])
    assert [found[who].replaced for who in ((1, 7), (1, 8), (1, 9), (2, 7))] == [1500, 2500, NEVER, NEVER]


def test_a_subscription_is_sure_until_it_ends_or_the_taps_do():
    brokers = {(1, 7): Known(0, 1000, replaced=1500)}
    (open_,) = assemble([life()], brokers, 5)
    assert (open_.settled, open_.ended, open_.sure, open_.gone) == (20, NEVER, 1000, 1500)
    (ended,) = assemble([life(ended=600)], brokers, 5)
    assert (ended.ended, ended.sure, ended.gone) == (600, 600, 600)


def test_what_a_snapshot_does_not_have_ended_before_it():
    (gone,) = assemble([life(said=100)], {(1, 7): Known(0, 1000, snapshots=[50, 100, 400, 700])}, 5)
    assert (gone.ended, gone.sure, gone.gone) == (NEVER, 100, 400)


def test_a_number_used_again_is_another_subscription():
    first, second = assemble([life(since=50), life(ended=40)], {(1, 7): Known(0, 1000)}, 5)
    assert (first.since, first.before, second.since, second.before) == (10, 50, 50, NEVER)


def test_without_a_word_subscriptions_never_settle_and_advertisements_after_the_grace():
    rows = [life(settled=None), life(settled=None, what="advertisement")]
    assert [one.settled for one in assemble(rows, {(1, 7): Known(0, 1000)}, 5)] == [15, NEVER]


def test_subtypes_of_subtypes_since_the_last_declaration_between():
    rows = [("a", None, 1), ("b", "a", 30), ("b", "a", 20), ("c", "b", 10), ("loop", "pool", 1), ("pool", "loop", 1)]
    found = descendants({"type": type_, "parent": parent, "at": at} for type_, parent, at in rows)
    assert found == {"a": {"b": 20, "c": 20}, "b": {"c": 10}, "pool": {"loop": 1}, "loop": {"pool": 1}}


def test_the_last_that_had_it_is_nearest_by_links():
    links = {1: {2}, 2: {1, 3, 5}, 3: {2, 4}, 4: {3}, 5: {2}}
    path = [Step(1, 0, "published", ""), Step(2, 5, "received", ""), Step(5, 9, "received", "")]
    missing = Named("missing", "", (1, 7, 1), 4, "c", path=path)
    assert last(missing, links) == 2
    assert last(missing, {}) == 5
    missing.path.append(Step(4, 10, "received", ""))
    assert last(missing, links) == 4
    assert last(Named("missing", "", (1, 7, 1), 4, "c"), links) is None


def test_exit_codes():
    assert Report().exit_code(0.5) == TOO_LITTLE  # nothing was judged
    assert Report(right=99, unknown={"rows lost": 1}).exit_code(0.01) == CLEAN
    assert Report(right=98, unknown={"rows lost": 2}).exit_code(0.01) == TOO_LITTLE
    assert Report(right=98, unknown={"rows lost": 2}, missing=1).exit_code(0.01) == WRONG
