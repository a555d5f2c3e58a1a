"""Parts of the demo that need no brokers: what a machine can have of it, what was counted, the report."""

import json
import re
import signal
import socket
from io import BytesIO
from types import SimpleNamespace

import pytest

from mercast.cli.demo import command, ending, possible, stage
from mercast.cli.demo.figures import Figures
from mercast.cli.demo.outcome import Tally, of_audit, of_load
from mercast.cli.demo.page import Page
from mercast.cli.demo.parts import PartError
from mercast.cli.demo.possible import Possible
from mercast.cli.demo.report import Report
from mercast.cli.demo.story import Killed, Sample, Story
from mercast.dashboard.figures import KEPT
from mercast.kafka import KafkaError

GB = 1_000_000_000

# -- what a machine can have -------------------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch):
    """Gives a function that says what there is, and answers what can be had."""

    def having(memory=8 * GB, java=None, jars=None):
        def found(*_):
            if java:
                raise KafkaError(java)

        def fetched(*_):
            if jars:
                raise KafkaError(jars)

        monkeypatch.setattr(possible, "free_memory", lambda: memory)
        monkeypatch.setattr(possible, "find_java", found)
        monkeypatch.setattr(possible, "find_jars", fetched)
        return possible.find(lambda _: None)

    return having


def test_everything_is_there(machine):
    assert machine() == machine(memory=None) == Possible(live=True, audit=True, missing=[])


def test_what_is_missing_is_told_and_the_rest_goes_on(machine):
    assert machine(java="Java 17 or newer is needed; install it by: x") == Possible(
        False, False, ["no Kafka, no Spark and no audit: Java 17 or newer is needed; install it by: x"]
    )
    assert machine(jars="Jars of Kafka could not be fetched") == Possible(
        False, True, ["no Kafka and no live figures: Jars of Kafka could not be fetched"]
    )


def test_little_memory(machine):
    assert machine(memory=2 * GB) == Possible(
        False, True, ["2.0 GB of memory are free: no Kafka and Spark's live figures (that takes 3.0 GB)"]
    )
    assert machine(memory=GB, java="none") == Possible(
        False, False, ["1.0 GB of memory are free: no Kafka, Spark and the audit (that takes 1.8 GB)"]
    )


def test_of_this_machine_something_is_known():
    assert possible.free_memory() > 0


def test_ports_that_are_taken():
    """All brokers are then somewhere else: ports that follow from each other are easier to find again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = stage._addresses(port - 30)  # that of the second broker's clients
    ports = [int(address.rpartition(":")[2]) for three in found for address in three]
    assert len(set(ports)) == 3 * stage.CLUSTERS * stage.BROKERS
    assert port not in ports
    assert port - 30 not in ports


# -- what was heard ----------------------------------------------------------------------------------------------------


def test_the_page_is_heard_as_a_browser_does():
    page = Page("http://127.0.0.1:1/")
    overlay = {"fields": ["state", "silent", "published", "delivered"]}
    pulse = {"brokers": {"1": ["up", None, 10.5, 20], "2": ["dead", 4.0, 0, 0], "3": ["up", None, None, 1]}}
    said = f"event: overlay\ndata: {json.dumps(overlay)}\n\nevent: pulse\ndata: {json.dumps(pulse)}\n\n"
    page._hear(BytesIO(said.encode()))
    assert (page.up, page.dead) == ({1, 3}, {2})
    assert (page.rate("published", page.up), page.rate("delivered", [1, 2, 9])) == (10.5, 20)


def window(second, cluster="cluster-1", broker=None, **more):
    row = {"window_start": f"2026-01-01T00:00:{second:02}Z", "window_end": f"2026-01-01T00:00:{second + 5:02}Z"}
    figures = dict.fromkeys(KEPT) | {
        "accuracy": 0.5,
        "receipts": 10,
        "latency_p50_us": 1000.0,
        "latency_p95_us": 9000.0,
    }
    return row | {"strategy": "merc", "cluster": cluster, "broker": broker} | figures | more


START = 1_767_225_600


def test_figures_are_read_as_they_come(tmp_path):
    file = tmp_path / "metrics.out"
    lines = [json.dumps(window(at, accuracy=at / 10)) for at in (1, 6)]
    file.write_text(lines[0] + "\n" + json.dumps(window(1, broker=3, accuracy=0.9)) + "\n" + lines[1][:20])
    figures = Figures(file)
    assert figures.newest() is None
    figures.look()
    assert figures.points("accuracy", "cluster-1") == [(START + 3.5, 0.1)]
    other = [json.dumps(window(6, cluster=None)), json.dumps(window(6, "cluster-2", accuracy=0.2, receipts=30))]
    with file.open("a") as more:
        more.write("\n".join([lines[1][20:], *other, ""]))
    figures.look()
    figures.look()
    assert figures.clusters == ["cluster-1", "cluster-2"]
    assert figures.points("accuracy", "cluster-1") == [(START + 3.5, 0.1), (START + 8.5, 0.6)]
    assert figures.points("accuracy") == [(START + 3.5, 0.1), (START + 8.5, 0.3)]
    assert (figures.newest()["receipts"], figures.newest("cluster-2")["receipts"]) == (40, 30)
    assert figures.newest("cluster-3") is None


# -- what was counted --------------------------------------------------------------------------------------------------

KILLED = Killed(5, "cluster-2", 30.0, 1_000_000.4, 4.2)
LOAD = {"published": 900, "due": 1010, "delivered": 1000, "missing": 0, "doubled": 0, "undue": 0}
LOAD |= {"latency_ms": {"p50": 1.25, "p95": 8.0, "p99": 20.0}, "missing_around_faults": 10}
AUDIT = {"right": 1000, "missing": 0, "doubled": 0, "undue": 0, "grey": {"near a fault": 10}, "unknown": {}}


def test_what_the_fault_explains_is_not_missing():
    assert of_load(LOAD) == Tally("the subscribers", 1000, 0, 0, 10, 0)
    assert of_load(LOAD).as_promised
    assert not of_load(LOAD | {"missing": 1}).as_promised


@pytest.mark.parametrize(
    ("more", "status", "promised"),
    [({}, 0, True), ({"missing": 1}, 1, False), ({"doubled": 1}, 1, False), ({"undue": 1}, 1, False), ({}, 2, False)],
)
def test_the_audit_decides(tmp_path, more, status, promised):
    (tmp_path / "audit.json").write_text(json.dumps(AUDIT | more))
    assert of_audit(tmp_path / "audit.json", status).as_promised == promised


def test_an_audit_that_failed_has_no_result(tmp_path):
    assert of_audit(tmp_path / "audit.json", 3) is None


def test_a_load_without_a_result_is_none_of_nothing_missing(tmp_path):
    """It has written one, in which nobody was set up: nothing published, nothing missing."""
    (tmp_path / "load.json").write_text(json.dumps(LOAD | {"published": 0}))
    load = SimpleNamespace(status=2, tail=lambda: "only 3 of 18 users were set up")
    setting = stage.Setting(60, 300, 6, 12, 10, 1, 0, tmp_path)
    on = SimpleNamespace(begin=lambda: load)
    with pytest.raises(PartError, match="status 2 and no result; its log:\nonly 3 of 18 users were set up"):
        command._play(setting, on, None, SimpleNamespace(story=Story()), None, None)


def test_only_what_a_run_has_written_is_removed(tmp_path):
    others = ["report.md", "load.py", "load_tests.csv", "audit.log", "logs/mine.log", "logs/old/metrics.log"]
    for name in (*others, *stage.WRITTEN):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    command._make_room(tmp_path)
    command._make_room(tmp_path)
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()} == {*others}


# -- the report --------------------------------------------------------------------------------------------------------


class Audit:
    def __init__(self, status):
        self.status = status

    def tail(self):
        return "<it broke>"


@pytest.fixture
def story(tmp_path):
    story = Story(started=1_767_225_600.0)
    story.news = [(1.0, "the page is up: http://127.0.0.1:7480/"), (30.0, "<b>broker 5 is killed</b>")]
    story.samples = [Sample(float(at), 300.0, 400.0, 12 if at < 30 else 11) for at in range(60)]
    story.page_after, story.load_after, story.figures_after, story.took = 1.0, 9.5, 28.0, 99.0
    story.killed, story.memory = KILLED, {"Spark": 900_000_000, "brokers": 400_000_000}
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    return story


@pytest.fixture
def written(tmp_path, story):
    """Gives a function that writes the report, and answers what came of it, with text and page."""
    lines = [json.dumps(window(at, f"cluster-{one}")) for at in range(0, 50, 5) for one in (1, 2, 3)]
    (tmp_path / "metrics.out").write_text("\n".join([*lines, ""]))
    figures = Figures(tmp_path / "metrics.out")
    figures.look()
    setting = stage.Setting(60, 300, 6, 12, 10, 1, 0, tmp_path)

    def write(audit=None, **found):
        if audit is not None:
            (tmp_path / "audit.json").write_text(json.dumps(AUDIT | found))
        outcome = Report(setting, Possible(missing=["no <thing>"]), story, figures, audit).write()
        return outcome, (tmp_path / "report.txt").read_text(), (tmp_path / "report.html").read_text()

    return write


def test_the_report_ends_with_what_it_comes_down_to(written, tmp_path):
    outcome, text, page = written(Audit(0))
    assert outcome.as_promised
    assert outcome.text + "\n" == text
    assert (
        text
        == f"""
as promised
run:         2026-01-01 00:00:00 UTC, 99 s in all
brokers:     3 clusters of 4 under MERC, 2 edges each, joined by a backbone
load:        900 quotes of 6 publishers for 12 subscribers with 10 filters each
up:          the page after 1.0 s, the load after 9.5 s, Spark's figures after 28.0 s
latency:     p50, p95, p99 1.2, 8.0, 20.0 ms, from the call of publish to the subscriber
fault:       broker 5, an edge of cluster-2, killed at 30.0 s, shown dead by the page 4.2 s later
memory:      at most 1.30 GB (Spark 0.90, brokers 0.40)
audit:       1,000 delivered, 0 doubled, 0 missing, 0 undue, 10 around the kill
subscribers: 1,000 delivered, 0 doubled, 0 missing, 0 undue, 10 around the kill
without:     no <thing>
report:      {tmp_path}/report.html

delivered:   1,000
doubled:     0
missing:     0 (and 10 around the kill, which that explains)
"""
    )
    last = re.findall(r"<tr><td>(\w+)</td><td>(.*?)</td></tr>", page.rpartition("In the end")[2])
    missing = "0 (and 10 around the kill, which that explains)"
    assert last == [("delivered", "1,000"), ("doubled", "0"), ("missing", missing)]
    assert "<b>" not in page.partition("<script>")[0]
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1])
    assert [one["marks"] for one in figures] == [[[30.0, "edge 5 killed"]]] * len(figures)
    assert [one["title"] for one in figures] == [
        "Events a second, as the page showed them",
        "Brokers up",
        "Latency by Spark, the highest of any cluster",
        "Latency by Spark, 95th percentile",
        "Routing accuracy and completeness by Spark",
        "Routing accuracy by Spark",
    ]
    assert page.count('class="plot"') == len(figures)
    assert 'src="' not in page.partition("<script>")[0]


def test_without_an_audit_the_subscribers_count(written):
    outcome, text, _ = written()
    assert outcome.as_promised
    assert "audit:" not in text
    assert text.endswith("missing:     0 (and 10 around the kill, which that explains)\n")


@pytest.mark.parametrize(("status", "found"), [(1, {"missing": 3}), (3, {}), (2, {})])
def test_an_audit_that_is_not_clean_is_not_as_promised(written, status, found):
    outcome, text, page = written(Audit(status), **found)
    assert not outcome.as_promised
    assert text.startswith("\nNOT AS PROMISED\n")
    assert "NOT AS PROMISED" in page
    assert ("the audit failed; its log:\n<it broke>" in text) == (status == 3)


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_what_fails_since_everything_was_stopped_is_no_error(monkeypatch):
    """A second Ctrl-C kills those who are still being waited for."""
    for name in ("adopt_orphans", "kill_descendants", "strike_descendants"):
        monkeypatch.setattr(ending, name, lambda: None)

    def stopped():
        with ending.Ending():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                raise OSError("the process that starts brokers has ended")

    with pytest.raises(KeyboardInterrupt):
        stopped()
