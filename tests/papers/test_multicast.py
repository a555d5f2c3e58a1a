"""Exploiting IP Multicast in Content-Based Publish-Subscribe Systems."""

import random

import pytest

from mercast.matching import Index
from mercast.workloads import Zipf


@pytest.mark.parametrize(("decrease", "share"), [(0.78, 0.0224), (0.88, 0.0021)])
def test_section_4_share_of_subscriptions_that_an_event_matches(decrease, share):
    """Claim B3: 10,000 subscriptions; 2.24% at a decrease of 78%, 0.21% at 88%; within 15%."""
    workload, rng = Zipf(decrease=decrease), random.Random(1)
    index = Index()
    for number in range(10_000):
        index.add(number, workload.filter(rng))
    matched = index.match_many([workload.event(rng) for _ in range(1_000)])
    assert sum(map(len, matched)) / len(matched) / 10_000 == pytest.approx(share, rel=0.15)
