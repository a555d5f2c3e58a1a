"""`mercast compare`, cut small: Spark's figures of each strategy are what the load counted itself."""

import json

import pytest
from system.live import mercast

STRATEGIES = ("ddbr", "flooding")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    done = mercast(
        "compare", "--quick", "--strategies", ",".join(STRATEGIES), "--brokers", 3,
        "--publishers", 2, "--subscribers", 4, "--rate", 200, "--seconds", 3, "--ramp-from", 200, "--ramp-seconds", 4,
        "--json", folder / "c.json", "--html", folder / "c.html", timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "c.json").read_text())["strategies"], (folder / "c.html").read_text(), done.stdout


def test_figures_are_what_the_load_counted(compared):
    entries = compared[0]
    assert tuple(entries) == STRATEGIES
    for name, one in entries.items():
        load, counted, steady = one["load"], one["counted"], one["counted_steady"]
        assert (counted["published"], counted["deliveries"]) == (load["published"], load["copies"]), name
        assert (steady["published"], steady["deliveries"]) == (load["steady"]["published"], load["steady"]["copies"])
        wrong = ("doubled_deliveries", "tap_lost", "late", "ahead", "malformed")
        assert {count: counted[count] for count in wrong} == dict.fromkeys(wrong, 0)
        assert load["missing"] == load["wrong"] == 0
        assert load["steady"]["seed"] == load["ramp"]["seed"] == 1
        assert 0 < one["steady"]["latency_p50_ms"] <= one["steady"]["latency_p99_ms"]
        assert one["steady"]["cpu_per_broker"] > 0


def test_flooding_goes_where_nobody_wants_it(compared):
    ddbr, flooding = (compared[0][name]["steady"] for name in STRATEGIES)
    assert ddbr["accuracy"] == 1.0
    assert flooding["accuracy"] < 1.0
    assert flooding["messages_per_delivery"] > ddbr["messages_per_delivery"]


def test_table_and_page_tell_of_all(compared):
    _, page, said = compared
    for text in (*STRATEGIES, "latency p99", "routing accuracy", "bytes per delivery", "processor per broker"):
        assert text in page
        assert text in said
    figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    assert [[series["name"] for series in figure["series"]] for figure in figures] == [list(STRATEGIES)] * 4
    assert sum(len(series["points"]) for figure in figures for series in figure["series"]) > 0
