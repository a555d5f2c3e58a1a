"""The runner itself: it notices what has changed, and says where a scenario is wrong."""

from pathlib import Path

import pytest
from scenarios.script import ScenarioError, difference, played
from scenarios.stage import COMMANDS, Stage
from scenarios.test_scenarios import compare

SCENARIO = """\
# Two brokers.
strategy D-DBR
links A-B
clients pub@A sub@B

sub subscribes s1: quote WHERE price > 10
  s1 settled
pub advertises a1: quote
  a1 settled

# The end.
pub publishes e1: quote {price: 20}
  acknowledged, destinations: 1
  e1 A -> B for B, hop 1
  sub at B gets e1 by s1
"""


@pytest.fixture
def scenario(tmp_path):
    folder = tmp_path / "stories"
    folder.mkdir()
    path = folder / "two.txt"
    path.write_text(SCENARIO)
    return path


def test_what_comes_out_as_it_is_written_passes(scenario):
    compare(scenario, rewrite=False)
    assert scenario.read_text() == SCENARIO


def test_a_changed_expectation_fails_with_the_lines_that_differ(scenario):
    scenario.write_text(SCENARIO.replace("for B, hop 1", "for B, hop 2").replace("  a1 settled\n", ""))
    with pytest.raises(pytest.fail.Exception) as failed:
        compare(scenario, rewrite=False)
    assert failed.value.msg.splitlines() == [
        "--- stories/two.txt as it is written",
        "+++ as it was played",
        "@@ -5,10 +5,11 @@",
        " ",
        " sub subscribes s1: quote WHERE price > 10",
        "   s1 settled",
        " pub advertises a1: quote",
        "+  a1 settled",
        " ",
        " # The end.",
        " pub publishes e1: quote {price: 20}",
        "   acknowledged, destinations: 1",
        "-  e1 A -> B for B, hop 2",
        "+  e1 A -> B for B, hop 1",
        "   sub at B gets e1 by s1",
    ]


def test_output_that_did_not_come_fails(scenario):
    scenario.write_text(SCENARIO + "  sub at B gets e1 by s1\n")
    with pytest.raises(pytest.fail.Exception, match=r"\n-  sub at B gets e1 by s1"):
        compare(scenario, rewrite=False)


def test_rewriting_writes_what_came_out_and_keeps_the_rest(scenario):
    scenario.write_text(SCENARIO.replace("  s1 settled\n", "").replace("gets e1", "gets nothing"))
    compare(scenario, rewrite=True)
    assert scenario.read_text() == SCENARIO


BEGUN = "strategy D-DBR\nlinks A-B B-C\nclients pub@A sub@B\n"

MISTAKES = {
    "nonsense": "this cannot be understood; what can be said is",
    "strategy gossip": "no strategy 'gossip': there are D-DBR, D-DBR covering, FBR,",
    "strategy FBR": "a scenario has one strategy",
    "links A-A": "'A-A' is no link: A-B, or A-B:3 for one that costs 3 (1 to 255)",
    "links A-B:256": "'A-B:256' is no link",
    "links A-B A:C": "'A:C' is no link",
    "clients pub@B": "pub is at A already",
    "clients new@D": "no broker 'D': `links` names A, B, C",
    "nobody subscribes s1: quote": "no client 'nobody': `clients` names pub, sub",
    "sub subscribes s1: quote WHERE price >": "line 1, column 8: found the end of the filter, expected a value",
    "sub subscribes s1": "this cannot be understood",
    "sub unsubscribes s1": "sub has nothing that is called 's1'",
    "pub publishes e1: quote price=5": "this cannot be understood",
    "pub publishes e1: quote {price: }}": "attributes are written as {price: 5, symbol: IBM}",
    "wait long": "this cannot be understood",
    "cut A-C": "there is no link A-C",
    "mend A-B B~C": "'B~C' is no way to cut or mend: A-B for both ways, A>B for one",
    "restart A": "broker A is alive",
    "after 1 settle": "only faults can be put off",
    "owner quote": "only StaticHash has this",
    "duplicates": "only FBR has this",
}


@pytest.mark.parametrize(("line", "reason"), MISTAKES.items())
def test_a_mistake_is_told_with_file_and_line(line, reason):
    with pytest.raises(ScenarioError) as told:
        played("story.txt", BEGUN + line, Stage().do)
    assert str(told.value).startswith(f"story.txt:4: {reason}")
    assert str(told.value).endswith(f"\n  {line}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("links A-B", "story.txt:1: a scenario begins with `strategy NAME`"),
        ("\n  settled", "story.txt:2: output stands directly below its command; this has none"),
        ("strategy D-DBR\n# why\n  settled", "story.txt:3: output stands directly below its command; this has none"),
        (BEGUN + "crash A\npub leaves", "story.txt:5: no client 'pub'"),
        (BEGUN + "crash A\ncrash A", "story.txt:5: broker A is down"),
        (BEGUN + "pub advertises x: quote\nsub subscribes x: quote", "story.txt:5: 'x' has been used before"),
    ],
)
def test_order_matters(text, reason):
    with pytest.raises(ScenarioError) as told:
        played("story.txt", text, Stage().do)
    assert str(told.value).startswith(reason)


def test_the_same_story_is_told_twice_the_same_way():
    text = (Path(__file__).parent / "crash_and_restart.txt").read_text()
    first, second = (played("story.txt", text, Stage().do) for _ in range(2))
    assert difference("story.txt", first, second) == ""


def test_the_manual_names_every_command():
    manual = (Path(__file__).parent / "README.md").read_text()
    assert [one.usage for one in COMMANDS if one.usage not in manual] == []
