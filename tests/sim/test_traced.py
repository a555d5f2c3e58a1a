"""Traced events are reported to their publisher; sampled ones have rows at every broker that saw them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content import Event, EventId, Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Reported, Send
from mercast.protocol.messages import Forward, Packet, Report
from mercast.protocol.rows import FIRST, Copied, Delivered, Dropped, Published, Run
from mercast.protocol.stimuli import Batch, Publish, Received, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.sampling import Sampler
from mercast.routing.settings import Settings
from mercast.routing.tapped import tapped
from mercast.sim.simulator import Simulator


def line_of(strategy, sampling, type="quote"):
    simulator = Simulator(lambda *who: strategy(*who, Settings(sampling=sampling)), seed=1)
    simulator.build([(1, 2), (2, 3)])
    simulator.run(5)
    simulator.do(1, Publish("p", 1, type, {}, 0))  # advertises
    simulator.do(3, Subscribe("s", 1, type, Filter()))
    simulator.run(9)
    simulator.rows.clear()
    simulator.deliveries.clear()
    return simulator


@pytest.fixture
def line():
    return line_of(DDBR, 0.25)


def test_every_broker_reports_what_it_did_with_a_traced_event(line):
    line.do(1, Publish("p", 2, "quote", {}, 0, traced=True))
    line.run(12)
    assert all(at == 1 and report.client == "p" for at, report in line.reports)
    assert [(report.broker, type(report.row)) for _, report in line.reports] == [
        (1, Published),
        (2, Copied),
        (3, Delivered),
        (3, Copied),
    ]
    assert line.rows == [(report.broker, report.row) for _, report in line.reports]


STRATEGIES = {DDBR: 1, Unicast: 1, StaticHash: 1, FBR: 0, Flooding: 0}
"""With the length of the destination lists that go along a line with one subscriber."""

OWNERS = {"share": 1, "stock": 2, "quote": 3}
"""By static hash."""


@pytest.mark.parametrize("type", OWNERS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_tell_all_of_an_event(strategy, type):
    line, entries, event = line_of(strategy, 0, type), STRATEGIES[strategy], EventId(1, 1, 2)
    assert strategy is not StaticHash or line.brokers[1].owner(type) == OWNERS[type]
    line.do(1, Subscribe("own", 1, type, Filter()))
    line.do(1, Publish("p", 2, type, {"x": 1}, 7, b"12345", traced=True))
    line.do(1, Publish("p", 3, type, {"x": 1}, 8))  # not traced, and nothing is sampled
    line.run(12)
    assert len(line.deliveries) == 4
    owner = OWNERS[type] == 2 and strategy is StaticHash  # the list leads to it, and it makes another
    assert line.rows == [
        (1, Delivered(event, 7, "own", (1,), 0)),
        (1, Published(event, 7, type, {"x": 1}, 1, 5, 1, "p")),
        (2, Copied(event, 7, 1, 1, entries, FIRST, False, owner, int(owner))),
        (3, Delivered(event, 7, "s", (1,), 2)),
        (3, Copied(event, 7, 2, 2, entries, FIRST, True, entries > 0)),
    ]
    assert line.reports == [(1, Reported("p", at, row)) for at, row in line.rows]


def test_a_report_counts_its_hops_and_goes_no_further_than_events_do(line):
    core, event = line.brokers[2], Event(EventId(1, 1, 9), "quote", {}, 0, "p")

    def sent(neighbour, message):
        effects = core.handle(line.now, Received(neighbour, (message,)))
        messages = {effect.neighbour: effect.messages for effect in effects if isinstance(effect, Send)}
        return messages.get(1, ())

    row = Copied(event.id, 0, 1, 1, 1, FIRST, False)
    assert sent(1, Forward(pack([3]), 1, (Packet(event, True),), None, True)) == (Report(1, 1, "p", 2, row),)
    for hops in (1, core.settings.least_hops):
        assert sent(3, Report(1, hops, "p", 3, row)) == (Report(1, hops + 1, "p", 3, row),)
    assert sent(3, Report(1, core.settings.least_hops + 1, "p", 3, row)) == ()


def test_the_same_share_of_events_is_tapped_everywhere(line):
    for number in range(400):
        line.do(1, Publish("p", 10 + number, "quote", {}, number))
    line.run(12)
    told = {at: {row.event for broker, row in line.rows if broker == at} for at in (1, 2, 3)}
    assert told[1] == told[2] == told[3]
    assert 60 < len(told[1]) < 140
    assert len(line.deliveries) == 400
    assert not line.reports


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0, 0, 0), (0.1, 850, 1150), (0.5, 4800, 5200), (1, 10000, 10000)]
)
@pytest.mark.parametrize("apart", [1, 1_000, 1_000_000])
def test_a_share_is_a_share_of_neighbouring_times_and_brokers(share, least, most, apart):
    samples, life, now = Sampler(share), 1_700_000_000_000, 1_700_000_000_000_000_000
    assert least <= sum(samples(7, life, now + n * apart) for n in range(10_000)) <= most
    assert least <= sum(samples(n % 100, life + n // 100 * apart, now) for n in range(10_000)) <= most


def test_brokers_of_all_versions_choose_the_same():
    samples = Sampler(0.1)
    chosen = [n for n in range(100) if samples(7, 1_700_000_000_000, 1_700_000_000_000_000_000 + n)]
    assert chosen == [32, 44, 47, 62, 67, 68, 71, 74, 84, 97]


def test_what_was_read_together_is_told_of_together(line):
    """And in order, whichever events travel together."""
    for read in range(60):
        at = line.now * 1e9 + read // 3
        some = [Publish("p", 10 + 10 * read + n, "quote", {}, int(at)) for n in range(7)]
        line.do(1, Batch(tuple(some)))
    line.run(12)
    told = {at: [row.event.sequence for broker, row in line.rows if broker == at] for at in (1, 2, 3)}
    reads = {row.event.sequence: row.time for _, row in line.rows}
    assert 0 < len({*told[1]}) < 60 * 7
    assert {*told[1]} == {*told[2]} == {*told[3]} == {*reads}
    for time in {*reads.values()}:
        assert len([one for one in reads.values() if one == time]) == 3 * 7


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.sampled_from([0.4, 1.0]), st.sampled_from([1, 3, 99]))
def test_rows_of_deliveries_are_the_deliveries(wanted, share, together):
    """Whether an event is for nobody, for one client or for two, here and at the other end."""
    line = line_of(DDBR, share, "other")
    for at in (1, 3):
        for least in (1, 2):
            line.do(at, Subscribe(f"s{least}", 9 + least, "quote", Filter.parse(f"price >= {least}")))
    line.run(12)
    line.do(1, Publish("p", 9, "quote", {"price": 0}, 0))
    line.run(20)
    line.rows.clear()
    line.deliveries.clear()
    some = [Publish("p", 10 + n, "quote", {"price": price}, n // together) for n, price in enumerate(wanted)]
    line.do(1, Batch(tuple(some)))
    line.run(30)
    told = {row.event for _, row in line.rows if type(row) is Published}
    rows = [(at, row.client, row.event) for at, row in line.rows if type(row) is Delivered]
    assert sorted(rows) == sorted(
        (one.broker, one.client, one.event.id) for one in line.deliveries if one.event.id in told
    )
    assert len(line.deliveries) == 2 * sum(wanted)
    interested = {row.event: row.interested for at, row in line.rows if type(row) is Copied and at == 3}
    assert interested == dict.fromkeys(told & {one.event.id for one in line.deliveries}, True)


@given(
    st.sets(st.tuples(st.integers(1, 2), st.integers(0, 30)), min_size=1),
    st.sampled_from([1, 4, 50]),
    st.sampled_from([0.3, 1.0]),
)
def test_many_are_judged_as_one_by_one(ids, together, share):
    """Those of one broker in order, as they travel."""
    samples = Sampler(share)
    events = [Event(EventId(broker, 5, n), "quote", {}, n // together, "p") for broker, n in sorted(ids)]
    expected = [(event.id, event.time) for event in events if samples(event.id.broker, 5, event.time)]
    found = tapped([Packet(event) for event in events], samples, False)
    runs = [Run(Dropped, len(one.places), *one.columns, "why") for one in found]
    assert [(row.event, row.time) for run in runs for row in run] == expected
