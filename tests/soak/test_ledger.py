"""The tally: what is due, and what of it has arrived, once."""

import pytest
from soak.ledger import Ledger, Part, Window

from mercast.content import Filter

LOW, HIGH, ALL = 0, 1, 2
CHEAP, DEAR = 0, 1


@pytest.fixture
def ledger():
    return Ledger([{"price": 5}, {"price": 50}], [Filter.parse(text) for text in ("price < 10", "price > 10", "")])


def published(ledger, *quotes):
    """At 0, 10, 20, …"""
    return [ledger.publish(quote, 10 * at) for at, quote in enumerate(quotes)]


def delivered(ledger, *deliveries):
    for event, filter in deliveries:
        ledger.deliver(event, filter, 100)


def test_all_is_well(ledger):
    one, other = published(ledger, CHEAP, DEAR)
    assert ledger.due == 4
    delivered(ledger, (other, ALL), (one, LOW), (one, ALL), (other, HIGH))
    report = ledger.report()
    assert report == (Part(2, 4, 4), Part(0, 0, 0), 0, 0, 0, ())
    assert report.as_promised
    assert (ledger.published, ledger.delivered) == (2, 4)


def test_missing(ledger):
    one, other = published(ledger, CHEAP, DEAR)
    delivered(ledger, (one, LOW), (one, ALL), (other, HIGH))
    report = ledger.report()
    assert (report.quiet.missing, report.missing_times) == (1, (10,))
    assert not report.as_promised


@pytest.mark.parametrize(("window", "excused"), [(Window(5, 15), True), (Window(11, 15), False), (Window(0, 9), False)])
def test_missing_around_the_fault_is_counted_apart(ledger, window, excused):
    before, during, after = published(ledger, CHEAP, CHEAP, CHEAP)
    delivered(ledger, (before, LOW), (before, ALL), (during, ALL), (after, LOW), (after, ALL))
    report = ledger.report(window)
    assert (report.fault.missing, report.quiet.missing) == ((1, 0) if excused else (0, 1))
    assert report.as_promised is excused
    assert report.missing_times == (() if excused else (10,))


def test_there_may_be_several_faults(ledger):
    published(ledger, CHEAP, CHEAP, CHEAP)
    report = ledger.report(Window(0, 5), Window(15, 25))
    assert (report.quiet, report.fault) == (Part(1, 2, 0), Part(2, 4, 0))


def test_doubled_and_undue_are_never_excused(ledger):
    [event] = published(ledger, CHEAP)
    delivered(ledger, (event, LOW), (event, ALL), (event, LOW), (event, LOW), (event, HIGH))
    report = ledger.report(Window(0, 1000))
    assert (report.doubled, report.undue) == (2, 1)
    assert not report.as_promised
    assert not report._replace(undue=0).as_promised
    assert not report._replace(doubled=0).as_promised


def test_what_nobody_has_published_is_undue(ledger):
    published(ledger, CHEAP)
    delivered(ledger, (0, LOW), (0, ALL), (7, ALL))
    assert ledger.report().undue == 1


def test_what_was_not_accepted_is_due_to_nobody_but_told(ledger):
    one, other = published(ledger, CHEAP, DEAR)
    ledger.not_accepted(other)
    assert ledger.due == 2
    delivered(ledger, (one, LOW), (one, ALL), (other, HIGH))  # it may have arrived nevertheless
    report = ledger.report()
    assert (report.quiet, report.not_accepted, report.undue) == (Part(2, 2, 2), 1, 0)
    assert not report.as_promised


def test_nothing_was_published(ledger):
    assert ledger.report() == (Part(0, 0, 0), Part(0, 0, 0), 0, 0, 0, ())
    assert (ledger.latency(), ledger.slowest(10)) == ([], 0)


def test_latency_is_told_in_milliseconds(ledger):
    event = ledger.publish(CHEAP, 1_000_000)
    for milliseconds in range(101):
        ledger.deliver(event, ALL, 1_000_000 * (milliseconds + 1))
    assert ledger.latency() == pytest.approx([50, 95, 99])
    assert ledger.latency(since=100) == pytest.approx([100, 100, 100])
    assert ledger.slowest(1) == 100_000_000
    assert ledger.slowest(1000) == 100_000_000
