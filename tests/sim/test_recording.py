"""A recorded broker does the same again: same stimuli, same effects, to the byte."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim.test_faults import STORIES

from mercast.content.rules import Rules
from mercast.overlay.channel import Patience
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.plain import from_plain, to_plain
from mercast.protocol.stimuli import LinkDown, LinkUp, Publish, Tick
from mercast.routing.recording import Difference, RecordingError, Replayed, entry, header, replay
from mercast.routing.settings import Settings
from mercast.routing.strategies import STRATEGIES, name_of
from mercast.sim.converged import converge
from mercast.sim.simulator import Simulator


@cache
def recorded(story, seed=4):
    """The lines of every broker of a faulty run; this seed has restarts in it."""
    lines = {broker: [] for broker in range(8)}
    told = story(seed, {broker: lines[broker].append for broker in lines})
    told.play()
    return [lines[broker] for broker in told.all]


@pytest.mark.parametrize("story", STORIES)
def test_a_faulty_run_replays_the_same(story):
    restarts = 0
    for lines in recorded(story):
        headers = sum("version" in json.loads(line) for line in lines)
        assert replay(lines) == Replayed(len(lines) - headers)
        restarts += headers - 1
    assert restarts > 0


@pytest.mark.parametrize("story", STORIES)
def test_another_process_with_other_hashes_does_the_same(story, tmp_path):
    files = []
    for broker, lines in enumerate(recorded(story)):
        files.append(tmp_path / f"{broker}.jsonl")
        files[-1].write_text("\n".join(lines))
    code = "import sys; from mercast.routing.recording import replay\nfor f in sys.argv[1:]: print(replay(open(f))[1])"
    environment = os.environ | {"PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, files)], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "None\n" * len(files)


@pytest.fixture(scope="module")
def lines():
    """A run of D-DBR."""
    return recorded(STORIES[0])[2]


def test_a_changed_line_is_found(lines):
    place = next(number for number, line in enumerate(lines) if '"is":"Deliver"' in line)
    content = json.loads(lines[place])
    now, stimulus = content["now"], from_plain(content["stimulus"])
    effects = content["effects"]
    before = tuple(repr(from_plain(effect)) for effect in effects)
    gone = effects.pop(next(number for number, effect in enumerate(effects) if effect["is"] == "Deliver"))
    changed = [*lines[:place], json.dumps(content), *lines[place + 1 :]]
    found = replay(changed)
    headers = sum("version" in json.loads(line) for line in lines[:place])
    after = tuple(effect for effect in before if effect != repr(from_plain(gone)))
    assert found == Replayed(place + 1 - headers, Difference(place + 1, now, stimulus, after, before))


def test_what_differs_only_in_kind_is_found():
    """To Python 1 equals TRUE equals 1.0; to a recording they are three things."""
    core = STRATEGIES["flooding"](1, 1)
    stimulus = Publish("c", 1, "t", {"x": 1}, 0)
    lines = [header(core), entry(0.0, stimulus, core.handle(0.0, stimulus))]
    assert replay(lines) == Replayed(1)
    for other in ("1.0", "true"):
        head, effects = lines[1].split('"effects"')
        forged = head + '"effects"' + effects.replace('[["x",1]]', f'[["x",{other}]]')
        assert forged != lines[1]
        assert replay([lines[0], forged]).difference is not None


def test_a_core_that_breaks_is_a_difference():
    core = STRATEGIES["ddbr"](1, 1)
    broken = LinkUp([2], 1)
    replayed = replay([header(core), entry(0.0, Tick(), core.handle(0.0, Tick())), entry(1.0, broken, [])])
    assert replayed.stimuli == 2
    assert replayed.difference[:4] == (3, 1.0, broken, ())
    assert replayed.difference.found == ("raised TypeError: unsupported operand type(s) for >>: 'list' and 'int'",)


TICK = '{"now": 0, "stimulus": {"is": "Tick"}, "effects": []}'

DAMAGE = [
    ([], "it is empty"),
    (["{"], "line 1: not JSON, or cut off"),
    (["[]"], "line 1: not an object"),
    (['{"claim": "A9"}'], "line 1: not the header of a recording"),
    ([{"version": 2}], "line 1: version 2 of recordings"),
    ([{"strategy": "magic"}], "line 1: ValueError: there is no strategy 'magic'; there are ddbr,"),
    ([{"broker": "one"}], "line 1: broker should not be 'one'"),
    ([{"broker": True}], "line 1: broker should not be True"),
    ([{"settings": {"pace": 1}}], "line 1: settings should be an object with timing, rule"),
    ([{"settings": {"rule": "mine"}}], "line 1: rule should not be 'mine'"),
    ([{"settings": {"timing": {"misses": 1.5}}}], "line 1: misses should not be 1.5"),
    ([{}, '{"now": 0}'], "line 2: not the line of a stimulus"),
    ([{}, '{"now": 0, "stimulus": {"is": "Tick"}, "effects": 1}'], "line 2: effects should not be 1"),
    ([{}, '{"now": "0", "stimulus": {"is": "Tick"}, "effects": []}'], "line 2: now should not be '0'"),
    ([{}, '{"now": 0, "stimulus": {"is": "Tack"}, "effects": []}'], "line 2: ValueError: the protocol has no 'Tack'"),
    ([{}, '{"now": 0, "stimulus": {"is": "Complete"}, "effects": []}'], "line 2: no stimulus is written there"),
    ([{}, '{"now": 0, "stimulus": {"is": "Leave"}, "effects": []}'], "line 2: TypeError"),
    ([{}, '{"now": 0, "stimulus": {"is": "Tick"}, "effects": [NaN]}'], "line 2: ValueError"),
    ([{}, "[" * 100_000], "line 2: "),
    (
        [{}, TICK, "{", TICK],
        "line 3: not JSON, or cut off; line 4: not the header of a recording (version, strategy, broker, incarnation, "
        "settings) (the 1 stimuli",
    ),
    (["{", "{"], "line 1: not JSON, or cut off"),
]


@pytest.mark.parametrize(("parts", "says"), DAMAGE, ids=[says for _, says in DAMAGE])
def test_damage_is_named(parts, says):
    good = json.loads(header(STRATEGIES["ddbr"](1, 1)))
    with pytest.raises(RecordingError) as raised:
        replay([part if isinstance(part, str) else json.dumps(good | part) for part in parts])
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)


def test_what_a_crash_cut_off_hides_nothing_else():
    """In the midst of a stimulus, and in the midst of a header."""
    core = STRATEGIES["ddbr"](1, 1)
    run = [header(core) + "\n", entry(0.0, Tick(), core.handle(0.0, Tick())) + "\n"]
    assert replay([*run, run[1][:30]]) == Replayed(1, cut=(3,))
    assert replay([*run, run[1][:30] + "\n", "\n", *run, "\n", run[0][:9]]) == Replayed(2, cut=(3, 8))
    assert replay([run[0][:9] + "\n", "\n", *run]) == Replayed(1, cut=(1,))
    other = run[1].replace('"effects":[', '"effects":[1', 1)
    assert replay([*run, run[1][:30], run[0], other]).difference.line == 5


def test_settings_come_back():
    """Each different from its default, infinity among them."""
    settings = Settings(
        Timing(0.1, 9),
        "covering",
        False,
        True,
        "scan",
        Patience(2.5, 9.5),
        float("inf"),
        1,
        7.5,
        0.5,
        8,
        9,
        10,
        11,
        3,
        (4,),
        Rules(("a",)),
        Rules(("*",), ("b",)),
        "carried",
        5.0,
        4,
        True,
    )
    assert all(getattr(settings, field.name) != getattr(Settings(), field.name) for field in fields(Settings))
    core = STRATEGIES["fbr"](5, 6, settings)
    stimuli = [LinkUp(2, 1), Tick(), LinkDown(2)]
    lines = [header(core), *(entry(now, one, core.handle(now, one)) for now, one in enumerate(stimuli))]
    assert replay(lines) == Replayed(3)
    assert json.loads(lines[0], parse_constant=pytest.fail)["settings"]["settle_within"] == {
        "is": "float",
        "text": "inf",
    }
    slower = lines[0].replace('"heart_beat":0.1', '"heart_beat":50')
    assert replay([slower, *lines[1:]]).difference is not None


def test_strategies_go_by_their_own_names_only():
    assert [name_of(strategy(1, 1)) for strategy in STRATEGIES.values()] == list(STRATEGIES)

    class Other(STRATEGIES["ddbr"]):
        pass

    with pytest.raises(ValueError, match="Other is not among the strategies: ddbr, merc, fbr"):
        header(Other(1, 1))


def test_a_recorded_broker_cannot_be_set_up_behind_its_back():
    simulator = Simulator(STRATEGIES["ddbr"], record={1: [].append})
    with pytest.raises(ValueError, match="broker 1 is being recorded"):
        converge(simulator, [(1, 2)])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text(),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.tuples(st.integers()), inner)
    ),
)


@given(values)
def test_plain_data_is_exact_and_proper_json(value):
    text = json.dumps(to_plain(value), allow_nan=False)
    assert repr(from_plain(json.loads(text))) == repr(value)
