"""How much may be published in a second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.broker.rates import BURST, LONGEST, MOMENT, PATIENCE, Rates, paces

sizes = st.lists(st.integers(1, 5_000), min_size=1, max_size=60)
NEVER = 10**9


def limited(events=0, bytes=0):
    return Rates(paces("this client", events, bytes))


class Sender:
    """Wants all this published, and is read as sessions are: what does not fit waits, and nothing is read meanwhile."""

    def __init__(self, rates, now=0.0):
        self.rates, self.now = rates, now
        self.accepted, self.refused = [], []

    def send(self, sizes):
        while sizes:
            verdict = self.rates.judge(self.now, sizes)
            self.accepted += [(self.now, size) for size in sizes[: verdict.room]]
            sizes = sizes[verdict.room :]
            if verdict.against is not None:
                self.refused += [(self.now, size) for size in sizes]
                sizes = []
            assert verdict.wait or not sizes, "what waits is looked at again"
            assert verdict.wait <= LONGEST
            self.now += verdict.wait


@given(st.integers(1, 1_000), st.integers(100, 100_000), st.lists(st.tuples(st.floats(0, 3), sizes), max_size=30))
def test_never_more_than_the_rate_and_a_burst(events, bytes, sent):
    sender = Sender(limited(events, bytes))
    for pause, some in sent:
        sender.now += pause
        sender.send(some)
    taken = sender.accepted
    for begin in range(len(taken)):
        count = total = 0
        for now, size in taken[begin:]:
            seconds = now - taken[begin][0] + BURST
            assert count <= events * seconds + 1e-3, "an event goes on only if those before it were within the rate"
            assert total <= bytes * seconds + 1e-3
            count, total = count + 1, total + size


@given(st.integers(1, 1_000), st.lists(sizes, max_size=20))
def test_whoever_stays_below_is_not_noticed(events, sent):
    rates, now = limited(events, NEVER), 0.0
    for some in sent:
        now += len(some) / events
        while some:
            at_once, some = some[:events], some[events:]
            verdict = rates.judge(now, at_once)
            assert (verdict.room, verdict.against) == (len(at_once), None)
            now += len(some) / events


@given(st.integers(1, 1_000))
def test_one_at_a_time_is_slowed_to_the_rate_and_never_refused(events):
    """A publisher that waits for its receipts."""
    sender = Sender(limited(events))
    count = min(2_000, events * 30)
    for _ in range(count):
        sender.send([100])
    assert not sender.refused
    assert sender.now >= (count - 1) / events - BURST
    assert sender.now <= count / events + LONGEST + MOMENT


def test_a_flood_is_slowed_first_and_refused_later_until_it_ends():
    sender = Sender(limited(10))
    while sender.now <= PATIENCE:
        assert not sender.refused
        sender.send([100] * 15)
    while sender.now <= 4 * PATIENCE:
        sender.send([100] * 15)
    assert sender.refused
    assert all(now > PATIENCE for now, _ in sender.refused)
    in_the_end = [now for now, _ in sender.accepted if now > 2 * PATIENCE]
    assert len(in_the_end) == pytest.approx(10 * 2 * PATIENCE, abs=11), "what is within the rate still goes on"
    sender.now += 2 * BURST + LONGEST
    verdict = sender.rates.judge(sender.now, [100] * 15)
    assert (verdict.room, verdict.against) == (11, None), "slowed anew"


def test_the_reason_names_the_limit():
    for rates, whose in ((limited(10), "this client"), (Rates(paces("token 'feed'", 10, 0)), "token 'feed'")):
        [pace] = rates.paces
        assert pace.reason == (
            f"{whose} publishes more than 10 events a second (publish_events_per_second); refused until it is slower"
        )
        assert pace.name == f"{whose.split()[whose.startswith('this')]} publish_events_per_second"
    [pace] = paces("this client", 0, 2_000)
    assert "more than 2000 bytes a second (publish_bytes_per_second)" in pace.reason


def test_one_event_of_many_seconds_is_taken_and_then_it_is_heard_every_second():
    rates = limited(bytes=1_000)
    assert rates.judge(0.0, [60_000]) == (1, LONGEST, None)
    now = LONGEST
    while (verdict := rates.judge(now, [1, 1])).against is None:
        assert verdict == (0, LONGEST, None)
        now += verdict.wait
    assert PATIENCE < now <= PATIENCE + 3 * LONGEST


@given(st.integers(100, 100_000), st.lists(st.integers(1, 1_000_000), min_size=1, max_size=10))
def test_large_events_one_at_a_time_are_slowed_and_never_refused(bytes, sent):
    sender = Sender(limited(bytes=bytes))
    for size in sent:
        sender.send([size])
    assert not sender.refused
    assert len(sender.accepted) == len(sent)


def test_who_waits_for_each_receipt_is_not_refused_for_what_others_of_its_token_do():
    shared = paces("token 'feed'", 10, 0)
    polite, flood = Rates(shared), Rates(shared)
    now, refused = 0.0, False
    while now < 4 * PATIENCE:
        refused |= flood.judge(now, [1] * 50).against is not None
        assert polite.judge(now, [1]).against is None
        now += MOMENT
    assert refused


def test_who_has_just_come_has_no_burst():
    rates = Rates(paces("this client", 10, 0, since=100.0))
    assert rates.judge(100.0, [1] * 20).room == 1
    assert rates.judge(100.0 + BURST + 0.1, [1] * 20).room == 11


def test_clients_of_one_token_share_its_rate():
    shared = paces("token 'feed'", 8, 0)
    one, other = Rates(shared), Rates(shared)
    assert one.judge(0.0, [1] * 6).room == 6
    assert other.judge(0.0, [1] * 8).room == 3
    assert one.judge(0.0, [1]).room == 0


def test_no_limit_is_no_pace():
    assert paces("this client", 0, 0) == ()
