"""D-DBR and MERC: the claims of the first paper, in their quick variants."""

import pytest

from mercast.lab import report, scoreboard
from mercast.lab.clusters import BACKBONE, Clusters, Crossing
from mercast.lab.experiment import Setting
from mercast.lab.robustness import reached
from mercast.lab.tables import update
from mercast.lab.worlds import world
from mercast.routing.destination.merc import MERC

CLAIMS = {
    "A1": "Fig. 15",
    "A2": "Fig. 15",
    "A3": "Fig. 11 to 13",
    "A4": "Fig. 14",
    "A5": "Fig. 16",
    "A6": "section V-A",
    "A7": "Fig. 17",
    "A8": "Fig. 18",
    "A9": "Fig. 19",
    "A10": "Fig. 20",
    "A11": "section I",
    "A12": "Fig. 21",
    "A13": "Fig. 22",
    "A14": "Fig. 23 and 24",
    "A15": "section III-D",
    "A16": "section V-B",
}

DIFFER = {
    "A5": [
        "MERC, one link into each cluster, 50% interested",
        "MERC, 10 links in the backbone, 50% interested",
    ],
    "A8": ["MERC, that of edges counted twice"],
}
"""Where the paper does not say which links there are, or what is counted, other readings stand beside the one that
matches."""

WITH_MERC = {"A3", "A4", "A5", "A6", "A8", "A13", "A14", "A16"}


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim):
    result = scoreboard.run(claim, Setting(scale="quick"))
    assert [row["name"] for row in result["rows"] if row["verdict"] == "differs"] == DIFFER.get(claim, [])
    assert any("MERC" in row["name"] for row in result["rows"]) == (claim in WITH_MERC)


# Three clusters of three, each with an edge (0, 1, 2) in the backbone, which is a line.
CLUSTERS = Clusters(
    {edge: (1 + edge, BACKBONE) for edge in range(3)} | {broker: (1 + (broker - 3) // 2,) for broker in range(3, 9)},
    [(0, 1), (1, 2), (0, 3), (0, 4), (3, 4), (1, 5), (1, 6), (5, 6), (2, 7), (2, 8), (7, 8)],
)


def test_section_4_c_no_list_has_addresses_of_other_clusters():
    """ "The size of each message's destination list is thus limited by the number of brokers in a cluster": from the
    first cluster everything goes to its edge, then to the two other edges, then into their clusters."""
    crossing = Crossing(CLUSTERS)
    crossing.send(3, range(9))
    assert crossing.by_broker == {
        3: {1: 1, 2: 1},  # to its neighbour, and to the edge in both of its roles
        0: {2: 2},  # then both other edges
        1: {1: 3, 2: 1},
        2: {1: 3},
        **{broker: {1: 1} for broker in (4, 5, 6, 7, 8)},
    }


def test_section_4_c_changes_in_one_cluster_do_not_affect_others():
    told = {link: update(world(MERC, CLUSTERS.links, [], clusters=CLUSTERS.homes), link) for link in CLUSTERS.links}
    assert {(one.here, one.elsewhere) for link, one in told.items() if link not in ((0, 1), (1, 2))} == {(3, 0)}
    assert {told[link].elsewhere for link in ((0, 1), (1, 2))} == {0}  # these cut the backbone in two


def test_section_5_b_without_its_edge_a_cluster_is_disconnected():
    """The failure of an edge "may cause a whole cluster to become disconnected": what is left of it is a part of its
    own; so is what only this edge joined."""
    assert reached(CLUSTERS, set(), set()) == 1
    assert reached(CLUSTERS, {0}, set()) == (6 * 5 + 2) / 72
    assert reached(CLUSTERS, {1}, set()) == (2 * 3 * 2 + 2) / 72
    assert reached(CLUSTERS, set(), {(0, 1)}) == (6 * 5 + 3 * 2) / 72


def test_a_result_says_all_that_is_needed_to_run_it_again():
    result = scoreboard.run("A15", Setting(seed=3, scale="quick"))
    assert {name: result[name] for name in ("claim", "seed", "scale", "command")} == {
        "claim": "A15",
        "seed": 3,
        "scale": "quick",
        "command": "mercast lab run A15 --quick --seed 3",
    }
    assert set(result["rows"][0]) == {"name", "paper", "ours", "verdict", "why"}
    assert "| A15 | TRT + SPRT | 11 kB |" in report.markdown([result])


def test_every_experiment_is_tried():
    assert set(CLAIMS) <= set(scoreboard.claims())
