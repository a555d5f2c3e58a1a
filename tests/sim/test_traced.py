"""Traced events are reported to their publisher; sampled ones have rows at every broker that saw them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content import Event, EventId, Filter
from mercast.overlay.split import pack
from mercast.protocol.effects import Reported, Send
from mercast.protocol.messages import Forward, Packet, Report
from mercast.protocol.rows import FIRST, Copied, Delivered, Published
from mercast.protocol.stimuli import Publish, Received, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.sampling import Sampler
from mercast.routing.settings import Settings
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
        line.do(1, Publish("p", 10 + number, "quote", {}, 0))
    line.run(12)
    tapped = {at: {row.event for broker, row in line.rows if broker == at} for at in (1, 2, 3)}
    assert tapped[1] == tapped[2] == tapped[3]
    assert 60 < len(tapped[1]) < 140
    assert len(line.deliveries) == 400
    assert not line.reports


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0, 0, 0), (0.1, 850, 1150), (0.5, 4800, 5200), (1, 10000, 10000)]
)
def test_a_share_is_a_share_of_neighbouring_ids(share, least, most):
    samples = Sampler(share)
    assert least <= sum(samples(EventId(7, 1_700_000_000_000, n)) for n in range(10_000)) <= most
    assert least <= sum(samples(EventId(n % 100, 1_700_000_000_000 + n // 100, 1)) for n in range(10_000)) <= most


def test_brokers_of_all_versions_choose_the_same():
    samples = Sampler(0.1)
    assert [n for n in range(100) if samples(EventId(7, 1_700_000_000_000, n))] == [11, 19, 32, 45, 53, 66, 74, 87]


ids = st.builds(EventId, st.integers(1, 2), st.just(1_700_000_000_000), st.integers(0, 2**40))


@given(st.lists(ids, max_size=20), st.integers(0, 2**40), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_many_are_judged_as_one_by_one(events, first, share):
    samples = Sampler(share)
    for some in (events, [EventId(1, 1_700_000_000_000, first + n) for n in range(50)]):
        assert list(samples.among(some)) == [at for at, event in enumerate(some) if samples(event)]
    assert list(samples.in_row(some[0], 50)) == [some[at].sequence for at in samples.among(some)]
