"""`mercast lab`: run, report and replay, with experiments of the test's own."""

import json
import re
from html.parser import HTMLParser

import pytest

from mercast.cli import app
from mercast.cli.progress import Steps
from mercast.lab import report, scoreboard
from mercast.lab.experiment import EXPERIMENTS, Experiment, Figure, Row, Series
from mercast.lab.page import _file as page_file
from mercast.protocol.stimuli import LinkUp, Publish, Tick
from mercast.routing.recording import entry, header
from mercast.routing.strategies import STRATEGIES

NASTY = "</script><b onload='x'>&amp; a | b\n[red]"
ROWS = [Row("mean", "2", "2.1", "match"), Row(NASTY, "1 < 2", "3 | 4", "holds", NASTY)]
FIGURE = Figure(
    NASTY, "x <", "y &", [Series("a", [(1, 2), (2, float("nan"))]), Series("a", [(1, 3)], paper=True)], True
)
PLAIN = {
    "title": NASTY,
    "x": "x <",
    "y": "y &",
    "log_x": True,
    "log_y": False,
    "series": [
        {"name": "a", "points": [[1.0, 2.0], [2.0, None]], "paper": False},
        {"name": "a", "points": [[1.0, 3.0]], "paper": True},
    ],
}


def good(setting):
    setting.progress("first half")
    yield ROWS[0]
    yield FIGURE
    yield ROWS[1]


def breaks(setting):
    yield Row("before", "1", "1", "match")
    raise ZeroDivisionError("no brokers [at all]")


def differs(setting):
    yield Row("ratio", "8x", "2x", "differs", f"seed {setting.seed}, {setting.size(100, 1)} events")


@pytest.fixture
def claims(monkeypatch):
    """X1 gives all there is, X2 breaks, X10 differs."""
    for claim in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, claim)
    for claim, run in (("X10", differs), ("X2", breaks), ("X1", good)):
        monkeypatch.setitem(EXPERIMENTS, claim, Experiment(claim, f"title of {claim}", run))


@pytest.fixture
def mercast(capsys, monkeypatch):
    """Run a command in this process: exit status, output, errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        with pytest.raises(SystemExit) as done:
            app([str(argument) for argument in arguments])
        return done.value.code or 0, *capsys.readouterr()

    return run


def result(claim, rows, **more):
    """As a result file has it, but for the seconds."""
    return {
        "claim": claim,
        "title": f"title of {claim}",
        "rows": [row._asdict() for row in rows],
        "seed": 1,
        "scale": "quick",
        "command": f"mercast lab run {claim} --quick --seed 1",
    } | more


def without_seconds(result):
    return {name: value for name, value in result.items() if name != "seconds"}


# -- run and report --------------------------------------------------------------------------------------------------


def test_a_result_has_rows_and_figures(claims, mercast, tmp_path):
    status, out, _ = mercast("lab", "run", "x1", "--quick", "--json", tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert status == 0
    assert without_seconds(found) == result("X1", ROWS, figures=[PLAIN])
    assert found["seconds"] >= 0
    assert "[red]" in out


def test_that_something_differs_is_a_result(claims, mercast):
    status, out, _ = mercast("lab", "run", "X10", "--seed", "5")
    assert (status, "seed 5, 100 events" in out) == (0, True)


def test_a_claim_that_breaks_loses_no_other(claims, mercast, tmp_path):
    status, out, err = mercast("lab", "report", "--quick", "--json", tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    error = found[1].pop("error")
    reason = "the experiment broke: ZeroDivisionError: no brokers [at all]"
    assert status == 1
    assert [without_seconds(one) for one in found] == [
        result("X1", ROWS, figures=[PLAIN]),
        result("X2", [Row("before", "1", "1", "match"), Row("error", "", "", "differs", reason)]),
        result("X10", [Row("ratio", "8x", "2x", "differs", "seed 1, 1 events")]),
    ]
    assert error.startswith("Traceback")
    assert reason in out
    assert error in err


def test_what_was_run_before_an_interruption_is_written(claims, mercast, tmp_path, monkeypatch):
    def interrupted(setting):
        raise KeyboardInterrupt
        yield

    monkeypatch.setitem(EXPERIMENTS, "X2", Experiment("X2", "", interrupted))
    monkeypatch.setattr("sys.argv", ["mercast"])
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        app(["lab", "report", "--json", str(tmp_path / "r.json"), "--markdown", str(tmp_path / "r.md")])
    assert [one["claim"] for one in json.loads((tmp_path / "r.json").read_text())] == ["X1"]
    assert "| X1 | mean | 2 | 2.1 | match |  |" in (tmp_path / "r.md").read_text()


def test_a_report_that_is_not_kept_says_how(claims, mercast):
    assert "--html FILE" in mercast("lab", "report", "--quick")[1]


@pytest.mark.parametrize("option", ["--json", "--markdown", "--html"])
@pytest.mark.parametrize(
    ("place", "says"),
    [("none/file", "there is no folder {}/none to write to"), ("", "{} is a folder: name a file in it")],
)
def test_a_bad_place_is_named_before_any_work(claims, mercast, tmp_path, monkeypatch, option, place, says):
    monkeypatch.setattr(scoreboard, "run", lambda *_: pytest.fail("work was done"))
    status, out, err = mercast("lab", "report", option, tmp_path / place)
    assert (status, out, err) == (1, "", f"mercast lab: {says.format(tmp_path)}\n")


def test_a_claim_that_there_is_not(claims, mercast):
    assert mercast("lab", "run", "Z9") == (1, "", "mercast lab: there is no claim Z9; there are X1, X2, X10\n")


def test_list(claims, mercast):
    assert mercast("lab", "list") == (0, "X1   title of X1\nX2   title of X2\nX10  title of X10\n", "")


def test_progress_says_which_of_how_many_and_what_it_does(capsys):
    times = iter([0.0, 1.0, 2.0, 12.0, 12.0, 13.0, 14.0, 20.0])
    with Steps(["A1", "A[2]"], lambda: next(times)) as steps:
        for name in steps:
            if name == "A1":
                steps.doing("soon")
                steps.doing("[later]")
                continue
            steps.done("2 match")
    assert capsys.readouterr().err == "  1/2    12.0 s  A1: [later]\n  2/2    14.0 s  A[2]: 2 match\n"


# -- documents -------------------------------------------------------------------------------------------------------


@pytest.fixture
def results():
    broke = result("X2", [Row("error", "", "", "differs", "broke")], error="Traceback <x>", seconds=1.5)
    return [result("X1", ROWS, figures=[PLAIN], seconds=1234.5, title=NASTY), broke]


def test_markdown_is_this(results):
    flat = "</script><b onload='x'>&amp; a \\| b [red]"
    assert report.markdown(results) == "\n".join(
        [
            *("# Scoreboard", "", "Quick variants: 1 match, 1 holds, 1 differs.", ""),
            "- **match**: within the tolerance of the claim",
            "- **holds**: the ordering and at least the stated factor hold",
            "- **differs**: neither; the last column says why",
            *("", "| claim | | paper | ours | verdict | why |", "|---|---|---|---|---|---|"),
            "| X1 | mean | 2 | 2.1 | match |  |",
            f"| X1 | {flat} | 1 < 2 | 3 \\| 4 | holds | {flat} |",
            "| X2 | error |  |  | differs | broke |",
            *("", "| claim | setting | run again | seconds |", "|---|---|---|---|"),
            f"| X1 | {flat} | `mercast lab run X1 --quick --seed 1` | 1234.5 |",
            "| X2 | title of X2 | `mercast lab run X2 --quick --seed 1` | 1.5 |",
            "",
        ]
    )


class Page(HTMLParser):
    """What a browser would see: texts outside scripts, scripts, places that plots are drawn at, addresses."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.scripts, self.plots, self.links, self.opened, self.classes = [], [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.opened.append(tag)
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        self.classes.append(attributes.get("class"))
        if attributes.get("class") == "plot":
            self.plots.append((attributes["id"], attributes["aria-label"]))

    def handle_data(self, data):
        (self.scripts if self.opened[-1:] == ["script"] and self.cdata_elem else self.texts).append(data)


def test_the_page_shows_everything_as_text_and_needs_nothing_else(results):
    page = Page(report.html(results))
    assert page.opened.count("b") == 0
    assert page.opened.count("script") == 3
    assert page.links == ["#X1", "#X2"]
    assert page.plots == [("figure-0", NASTY)]
    assert sum(NASTY in text for text in page.texts) == 5  # title twice, name and reason of a row, title of the figure
    assert json.loads(page.scripts[1]) == [PLAIN]
    assert [one for one in page.classes if one and one.startswith("verdict")] == [
        *("verdict match", "verdict holds", "verdict differs"),  # of the summary
        *("verdict match", "verdict holds", "verdict differs"),  # what they mean
        *("verdict match", "verdict holds", "verdict differs"),  # of the rows
    ]
    assert {"mercast lab run X1 --quick --seed 1", "Traceback <x>", "1,234.5 s"} <= set(page.texts)


def test_a_page_without_figures_carries_no_plotly(results):
    del results[0]["figures"]
    assert Page(report.html(results)).opened.count("script") == 0


def test_the_drawing_uses_colours_that_the_page_has():
    script, style = page_file("report.js"), page_file("report.css")
    named = set(re.findall(r'colour\("([\w-]+)"\)', script)) | {f"series-{number}" for number in range(1, 7)}
    assert len(named) > 6
    assert all(style.count(f"--{name}: #") == 2 for name in named)  # light and dark


def test_report_writes_the_page(claims, mercast, tmp_path):
    mercast("lab", "report", "--quick", "--html", tmp_path / "r.html")
    assert Page((tmp_path / "r.html").read_text()).plots == [("figure-0", NASTY)]


# -- replay ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path):
    core = STRATEGIES["flooding"](1, 1)
    stimuli = [LinkUp(2, 1), Publish("[c]", 1, "quote", {"x": 0.1}, 0), Tick()]
    file = tmp_path / "run.jsonl"
    lines = [header(core), *(entry(now / 4, one, core.handle(now / 4, one)) for now, one in enumerate(stimuli))]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_replay_of_the_same(recording, mercast):
    assert mercast("lab", "replay", recording) == (0, "3 stimuli, same effects\n", "")


def test_replay_shows_the_first_difference(recording, mercast):
    recording.write_text(
        recording.read_text().replace('"is":"Receipts","client":"[c]"', '"is":"Receipts","client":"d"')
    )
    status, out, err = mercast("lab", "replay", recording)
    lines = out.splitlines()
    assert (status, err) == (1, "")
    assert lines[:4] == [
        "1 stimuli, same effects; then, at line 3, time 0.25, other effects after",
        "  Publish(client='[c]', request=1, type='quote', attributes={'x': 0.1}, time=0, payload=b'', "
        "content_type='application/octet-stream', trace=None, traced=False, encoded=b'', plain=False)",
        "--- recorded",
        "+++ found",
    ]
    assert [line for line in lines[4:] if line[0] != " "] == [
        "-Receipts(client='d', first=1, counts=(1,))",
        "+Receipts(client='[c]', first=1, counts=(1,))",
    ]
    assert [line.split("(")[0] for line in lines[4:] if line[0] == " "] == [" Tap", " Send"]


BAD_FILES = [
    (None, "No such file or directory"),
    (b"\xff\xfe\x00", "not a recording: it is not text"),
    (b"", "not a whole recording: it is empty: a recording begins with a header"),
    (b'[{"claim": "A9"}]', "not a whole recording: line 1: not an object of JSON"),
]


@pytest.mark.parametrize(("content", "says"), BAD_FILES)
def test_a_file_that_is_no_recording(mercast, tmp_path, content, says):
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    assert mercast("lab", "replay", file) == (2, "", f"mercast lab: {file}: {says}\n")


def test_a_recording_that_was_cut_off(recording, mercast):
    recording.write_text(recording.read_text()[:-20])
    says = "line 4 is cut off, as when a broker is killed or its disk is full; all before it counts\n"
    assert mercast("lab", "replay", recording) == (0, says + "2 stimuli, same effects\n", "")
