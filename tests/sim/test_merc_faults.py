"""What a fault at a border costs while events flow (sim/border.py). `pytest -s` shows how long each cost anything."""

import pytest
from sim.border import FAULTS, Border

SEEDS = [0, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_events_are_lost_only_until_routes_change(fault, seed):
    border = Border(seed, fault)
    border.play()
    assert border.problems() == []
    print(f"{fault}: {len(border.lost)} lost, the last {border.window:.2f} s after the fault")


FOUND = [
    ("an edge stands still and goes on", 3),  # its peers had purged it, and repeated less than it knew of them
    ("an edge stands still and goes on", 21),
]
"""Seeds in which something was wrong once."""


@pytest.mark.parametrize(("fault", "seed"), FOUND)
def test_what_went_wrong_once_does_not_again(fault, seed):
    test_events_are_lost_only_until_routes_change(fault, seed)
