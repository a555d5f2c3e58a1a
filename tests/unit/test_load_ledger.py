"""What is due: by filters, by what stood when, and around faults; what came twice, late or to the wrong one."""

import random

import numpy as np
import pytest

from mercast_loadtest.load.facts import STAMP, Facts
from mercast_loadtest.load.latency import Latency
from mercast_loadtest.load.ledger import Ledger, Tally, key, unpack
from mercast_loadtest.load.plan import Plan
from mercast_loadtest.load.standing import Faults, Standing

S = 1_000_000_000
START = 1_700_000_000 * S
RUN = 7
PATIENCE = 5 * S


# -- the plan ----------------------------------------------------------------------------------------------------------


def plan(**how):
    return Plan("quotes", 1, **{"publishers": 3, "filters": 4} | how)


def test_the_same_seed_gives_the_same_filters_and_events():
    one, same, other = plan(), plan(), Plan("quotes", 2, publishers=3, filters=4)
    assert one.pool == same.pool != other.pool
    assert one.filters_of(5) == same.filters_of(5) != other.filters_of(5)
    assert one.filters_of(5) != one.filters_of(6)


@pytest.mark.parametrize("workload", ["quotes", "zipf"])
def test_who_wants_an_event_is_what_its_filters_say(workload):
    made = Plan(workload, 1, publishers=3, filters=4)
    made.learn(2)
    places = np.array([5, 0, 700, 5])
    for known in (2, 70):  # more than it has learned: it learns
        wanted, events = made.wanted(places, known * 4 - 1)
        for number, place in enumerate(places):
            matching = [
                made.subscription(subscriber, at)
                for subscriber in range(known)
                for at, filter in enumerate(made.filters_of(subscriber))
                if filter.matches(made.pool[place])
            ]
            found = [one for one in wanted[events == number].tolist() if one < known * 4]
            assert found == matching


def test_publishers_go_through_the_pool_together():
    made = plan()
    assert [int(made.place(publisher, number)) for number in range(3) for publisher in range(3)] == list(range(9))
    assert made.place(2, 2_000) == 2


def test_real_quotes_are_published_in_their_order(tmp_path):
    file = tmp_path / "quotes.csv"
    file.write_text("symbol,price,volume\nACME,10,100\nBETA,20,200\n")
    made = plan(quotes=str(file))
    assert [quote["symbol"] for quote in made.pool] == ["ACME", "BETA"]
    assert all("ACME" in str(filter) or "BETA" in str(filter) for filter in made.filters_of(0))


# -- when things stood, and when they broke ----------------------------------------------------------------------------


def test_standing_is_what_intervals_say():
    """Beside a plain list of intervals, drawn by chance."""
    rng, standing, intervals = random.Random(1), Standing(START), []
    for number in rng.sample(range(40), 20):
        at = START
        for _ in range(rng.randrange(1, 4)):
            began = at + rng.randrange(1, 50) * S
            at = began + rng.randrange(1, 50) * S
            standing.begin(number, began)
            standing.end(number, at)
            intervals.append((number, began, at))
        standing.begin(number, at + S)
        intervals.append((number, at + S, START + 10**6 * S))
    numbers = np.array([rng.randrange(40) for _ in range(2_000)])
    times = np.array([START + rng.randrange(200) * S + S // 2 for _ in range(2_000)])
    expected = [
        any(n == number and began <= time < ended for n, began, ended in intervals)
        for number, time in zip(numbers.tolist(), times.tolist(), strict=True)
    ]
    assert standing.at(numbers, times).tolist() == expected
    assert len(standing) == 20
    standing.forget(START + 100 * S)
    later = times >= START + 100 * S
    assert standing.at(numbers[later], times[later]).tolist() == np.array(expected)[later].tolist()


def test_what_ends_before_it_begins_never_stood():
    standing = Standing(START)
    standing.begin(1, START + 10 * S)
    standing.end(1, START + 9 * S)
    assert not standing.at(np.array([1]), np.array([START + 10 * S])).any()


def test_faults_are_windows_around_what_was_lost():
    faults = Faults(2 * S)
    faults.lost(1, 10 * S)
    faults.lost(2, 11 * S)
    faults.lost(2, 12 * S)  # it was lost before
    faults.back(1, 14 * S)
    faults.marked(30 * S)
    faults.back(9, 40 * S)  # it was never lost
    assert faults.windows(50 * S) == [(8 * S, 50 * S)]
    faults.back(2, 15 * S)
    assert faults.windows(50 * S) == [(8 * S, 17 * S), (28 * S, 32 * S)]
    assert faults.around(np.array([7, 9, 16, 20, 31]) * S, 50 * S).tolist() == [False, True, True, False, True]


# -- the ledger --------------------------------------------------------------------------------------------------------


class Story:
    """Everybody stands from second 1 on; publisher 0 sends; what is due comes half a second later, unless told."""

    def __init__(self, subscribers=10):
        self.plan = plan()
        self.plan.learn(subscribers)
        self.facts = Facts()
        self.ledger = Ledger(self.plan, RUN, START, patience=PATIENCE, around=S)
        self.numbers = range(subscribers * 4)
        for number in self.numbers:
            self.facts.change("settled", number, START + S)
        self.sent = 0

    def wanted(self, number):
        return self.plan.wanted(np.array([self.plan.place(0, number)]), self.numbers[-1])[0].tolist()

    def publish(self, count, at, accepted=True):
        numbers = range(self.sent, self.sent + count)
        self.facts.published(0, self.sent, count, START + at * S, S // 100, accepted)
        self.sent += count
        return [(number, wanted) for number in numbers for wanted in self.wanted(number)]

    def deliver(self, deliveries, at, took=S // 2):
        for number, subscription in deliveries:
            self.facts.stamps += STAMP.pack(RUN, 0, number, START + at * S)
            self.facts.subscriptions.append(subscription)
            self.facts.times.append(START + at * S + took)

    def tally(self, until=100):
        self.ledger.take(self.facts.hand_over())
        self.ledger.judge(START + until * S)
        return self.ledger.tally(START + 1000 * S)


NOTHING = dict.fromkeys(Tally._fields, 0)


def holds(tally, **expected):
    assert tally._asdict() == NOTHING | expected


def test_all_that_is_due_comes():
    story = Story()
    due = story.publish(300, at=10)
    story.deliver(due, at=10)
    assert len(due) > 40
    holds(story.tally(), published=300, due=len(due), delivered=len(due))
    assert story.tally().kept


def test_what_does_not_come_is_missing_until_it_does():
    story = Story()
    due = story.publish(300, at=10)
    story.deliver(due[3:], at=10)
    tally = story.tally()
    holds(tally, published=300, due=len(due), delivered=len(due) - 3, missing=3)
    assert not tally.kept
    assert (story.ledger.overdue(START + 14 * S), story.ledger.overdue(START + 16 * S)) == (0, 3)
    assert story.ledger.overdue(START + 17 * S) == 0
    assert story.ledger.missing_times(START + 1000 * S).tolist() == [START + 10 * S] * 3
    story.deliver(due[:2], at=10, took=6 * S)
    holds(story.tally(), published=300, due=len(due), delivered=len(due) - 1, missing=1, late=2)


def test_doubled_undue_and_strange():
    story = Story()
    due = story.publish(300, at=10)
    story.deliver(due + due[:4], at=10)
    wrong = next(one for one in story.numbers if one not in story.wanted(0))
    story.deliver([(0, wrong)], at=10)
    story.facts.strangers += 5
    expected = {"published": 300, "due": len(due), "delivered": len(due), "undue": 1, "strangers": 5}
    holds(story.tally(), doubled=4, **expected)
    story.deliver([due[0], (0, wrong)], at=10)  # again, later
    holds(story.tally(), doubled=6, **expected)


def test_events_of_other_runs_are_strangers():
    story = Story()
    story.facts.stamps += STAMP.pack(RUN + 1, 0, 0, START)
    story.facts.subscriptions.append(0)
    story.facts.times.append(START)
    holds(story.tally(), strangers=1)


def test_what_was_not_accepted_is_due_to_nobody():
    story = Story()
    due = story.publish(300, at=10, accepted=False)
    story.deliver(due[:5], at=10)
    holds(story.tally(), not_accepted=300, uncounted=5)


def test_before_it_is_settled_and_before_it_goes_a_subscription_does_not_count():
    story = Story()
    early = story.publish(100, at=0)
    story.deliver(early[:3], at=0)
    counted = story.publish(100, at=3)
    story.deliver(counted, at=3)
    going = story.publish(100, at=8)
    for number in story.numbers:
        story.facts.change("taken back", number, START + 9 * S)
    holds(story.tally(), published=300, due=len(counted), delivered=len(counted), uncounted=3)
    assert going


def test_missing_around_a_fault_is_told_apart():
    story = Story()
    near, far = story.publish(100, at=10), story.publish(100, at=20)
    story.facts.change("lost", 3, START + 10 * S + S // 2)
    story.facts.change("back", 3, START + 12 * S)
    due = len(near) + len(far)
    holds(story.tally(), published=200, due=due, missing=len(far), missing_around_faults=len(near))
    story.facts.change("marked", 0, START + 20 * S)
    holds(story.tally(), published=200, due=due, missing_around_faults=due)


def test_events_are_judged_when_their_time_is_over():
    story = Story()
    first, second = story.publish(100, at=10), story.publish(100, at=20)
    story.deliver(second, at=20)
    holds(story.tally(until=15), published=200, due=len(first), missing=len(first))
    assert story.ledger.outstanding
    story.deliver(first, at=10)
    holds(story.tally(until=21), published=200, due=len(first + second), delivered=len(first + second), late=0)
    assert not story.ledger.outstanding


def test_who_waits_for_a_broker_is_outstanding():
    story = Story()
    story.facts.open += 1
    story.tally()
    assert story.ledger.outstanding
    story.facts.open -= 1
    story.tally()
    assert not story.ledger.outstanding


def test_keys_hold_what_they_are_made_of():
    parts = np.array([[0, 4_095, 17], [2**30 - 1, 0, 12_345], [2**21 - 1, 5, 0]])
    assert np.stack(unpack(key(*parts))).tolist() == parts.tolist()
    assert (key(*parts) >= 0).all()


def test_latency_is_known_to_a_percent():
    rng, latency = np.random.default_rng(1), Latency()
    took = rng.lognormal(15, 1.5, 20_000).astype(np.int64)
    for some in np.split(took, 10):
        latency.add(some)
    latency.add(took[:0])
    for percent in (50, 95, 99, 100):
        assert latency.percentile(percent) == pytest.approx(np.percentile(took, percent) / 1e6, rel=0.02)
    assert latency.longest == pytest.approx(took.max() / 1e6)
    assert (Latency().percentile(50), Latency().longest) == (None, None)
