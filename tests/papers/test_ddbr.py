"""D-DBR and MERC: the claims of the first paper, in their quick variants."""

import pytest

from mercast.lab import report, scoreboard
from mercast.lab.experiment import Setting

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


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim):
    result = scoreboard.run(claim, Setting(scale="quick"))
    assert [row for row in result["rows"] if row["verdict"] == "differs"] == []


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
