"""Faulty runs, from seeds. A failing one is played again with `pytest tests/sim/test_faults.py -k "[SEED]"`."""

import pytest
from sim.faults import NO_TYPES, SETTINGS, Story

from mercast.routing.destination.ddbr import DDBR


class DDBRStory(Story):
    def __init__(self, seed):
        super().__init__(seed, lambda broker, incarnation: DDBR(broker, incarnation, SETTINGS))

    def wrong_tables(self):
        found = []
        for broker, core in self.simulator.brokers.items():
            others = [other for other in self.all if other != broker]
            mine = self.at(broker, "advertisements")
            r_srt = {peer: table for peer in others if (table := self.at(peer, "advertisements"))}
            r_prt = {
                (peer, local)
                for peer in others
                for local, one in self.at(peer, "subscriptions").items()
                if any(one.intersects(NO_TYPES, advertisement) for advertisement in mine.values())
            }
            if core.r_srt != r_srt:
                found.append(f"R-SRT of {broker}: {core.r_srt} should be {r_srt}")
            if set(core.r_prt) != r_prt:
                found.append(f"R-PRT of {broker}: {sorted(core.r_prt)} should be {sorted(r_prt)}")
            if core.state.reachable != set(self.all):
                found.append(f"{broker} reaches only {sorted(core.state.reachable)}")
        return found


@pytest.mark.parametrize("seed", range(50))
def test_ddbr(seed):
    story = DDBRStory(seed)
    story.play()
    assert story.problems() == []
