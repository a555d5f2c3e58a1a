"""Traced events are reported to their publisher; sampled ones have rows at every broker that saw them."""

import pytest

from mercast.content import EventId, Filter
from mercast.protocol.rows import Copied, Delivered, Published
from mercast.protocol.stimuli import Publish, Subscribe
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.sampling import sampler
from mercast.routing.settings import Settings
from mercast.sim.simulator import Simulator


@pytest.fixture
def line():
    simulator = Simulator(lambda *who: DDBR(*who, Settings(sampling=0.25)), seed=1)
    simulator.build([(1, 2), (2, 3)])
    simulator.run(5)
    simulator.do(1, Publish("p", 1, "quote", {}, 0))  # advertises
    simulator.do(3, Subscribe("s", 1, "quote", Filter()))
    simulator.run(9)
    simulator.rows.clear()
    return simulator


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
    samples = sampler(share)
    assert least <= sum(samples(EventId(7, 1_700_000_000_000, n)) for n in range(10_000)) <= most
    assert least <= sum(samples(EventId(n % 100, 1_700_000_000_000 + n // 100, 1)) for n in range(10_000)) <= most
