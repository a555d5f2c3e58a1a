"""Faulty runs, from seeds. A failing one is played again with `pytest tests/sim/test_faults.py -k "[SEED]"`."""

import pytest
from sim.faults import NO_TYPES, Story

from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash


class DDBRStory(Story):
    strategy = DDBR

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
            found += differs(f"R-SRT of {broker}", core.r_srt, r_srt) + differs(
                f"R-PRT of {broker}", set(core.r_prt), r_prt
            )
        return found


class UnicastStory(DDBRStory):
    strategy = Unicast


class FloodingStory(Story):
    strategy = Flooding


class StaticHashStory(Story):
    strategy = StaticHash

    def wrong_tables(self):
        found = []
        for broker, core in self.simulator.brokers.items():
            kept = {
                (peer, local)
                for peer in self.all
                for local, one in self.at(peer, "subscriptions").items()
                if peer != broker and (one.type is None or core.owner(one.type) == broker)
            }
            found += differs(f"kept by {broker}", set(core.kept), kept)
        return found


class FBRStory(Story):
    strategy = FBR

    def wrong_tables(self):
        """Trees follow shortest paths; subscriptions lie on the path from their broker to the advertiser's."""
        found = []
        trees = {
            (broker, local): one for broker in self.all for local, one in self.at(broker, "advertisements").items()
        }
        prt = {broker: set() for broker in self.all}
        for (root, name), advertisement in trees.items():
            for broker in self.all:
                for local, one in self.at(broker, "subscriptions").items():
                    if one.intersects(NO_TYPES, advertisement):
                        at = broker
                        while at != root:
                            up = self.simulator.brokers[at].state.routes.next_hop(root)
                            prt[up].add((at, (root, name), (broker, local)))
                            at = up
        for broker, core in self.simulator.brokers.items():
            srt = {
                (root, name): (one, broker if root == broker else core.state.routes.next_hop(root))
                for (root, name), one in trees.items()
            }
            found += differs(f"SRT of {broker}", core.srt, srt) + differs(
                f"PRT of {broker}", set(core.prt), prt[broker]
            )
        return found


def differs(what, is_, should):
    return [] if is_ == should else [f"{what} is {is_}, should be {should}"]


STORIES = [DDBRStory, UnicastStory, FloodingStory, StaticHashStory, FBRStory]
SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 100))]
"""A hundred for each of the five strategies; five of each in `make test-quick`."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("story", STORIES)
def test_nothing_wrong_during_faults_and_nothing_missing_after(story, seed):
    told = story(seed)
    told.simulator.validate = seed % 10 == 0
    told.play()
    assert told.problems() == []
