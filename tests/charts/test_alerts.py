"""The alerts: they fire on what they should, on what brokers export, and lead to where it says what to do."""

import re
import shutil
import subprocess
from pathlib import Path

import yaml
from charts.rendering import CHART, VALUES, objects
from charts.tools import PROMTOOL, find
from unit.dashboard.test_grafana_board import exported

from mercast.overlay.seen import Seen

HERE = Path(__file__).parent
NAMED = {file.stem: file for file in VALUES}


def rules(name):
    """Specifications of what is rendered, by namespace."""
    found = {
        one["metadata"]["namespace"]: one["spec"] for one in objects(NAMED[name]) if one["kind"] == "PrometheusRule"
    }
    assert found
    return found


def promtool(*arguments, folder):
    done = subprocess.run([find(PROMTOOL), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_on_what_it_is_for(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules("clusters")["a"]))
    shutil.copy(HERE / "alerts.test.yaml", tmp_path)
    promtool("test", "rules", "alerts.test.yaml", folder=tmp_path)
    tested = yaml.safe_load((HERE / "alerts.test.yaml").read_text())["tests"]
    named = {one["alertname"] for test in tested for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert named == alerts("clusters").keys()


def test_promtool_has_nothing_to_say(tmp_path):
    for name in ("clusters", "production", "tokens_only", "executors"):
        for namespace, one in rules(name).items():
            (tmp_path / f"{name}-{namespace}.yaml").write_text(yaml.safe_dump(one))
    promtool("check", "rules", *sorted(file.name for file in tmp_path.iterdir()), folder=tmp_path)


def alerts(name):
    return {one["alert"]: one for spec in rules(name).values() for group in spec["groups"] for one in group["rules"]}


def test_those_that_can_never_fire_are_left_out():
    every = alerts("clusters").keys()
    assert every - alerts("tokens_only").keys() == {"MercastTapLosses", "MercastMetricsLag"}
    assert every - alerts("production").keys() == {"MercastMetricsLag"}
    assert every - alerts("executors").keys() == set()
    once = [
        namespace
        for namespace, spec in rules("clusters").items()
        if "MercastMetricsLag" in str(spec)
    ]  # fmt: skip
    assert once == ["a"]  # of two clusters: there is one job


def test_each_leads_to_a_section_of_its_own():
    headings = re.findall(r"^### (\w+)$", (CHART.parents[1] / "docs/operations.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(alerts("clusters"))
    for name, one in alerts("clusters").items():
        assert one["annotations"]["runbook_url"] == f"docs/operations.md#{name.lower()}"


def test_each_reason_of_a_drop_has_a_section():
    """Those that the code gives."""
    given = re.compile(r'(?:\bdrop(?:_all)?\(.*, |dropped\[)"([a-z ]+)"[\])]')
    files = (CHART.parents[1] / "services/mercast").rglob("*.py")
    reasons = {reason for file in files for reason in given.findall(file.read_text())}
    reasons |= {Seen.REPEAT.value, Seen.STALE.value}
    headings = re.findall(r"^#### (.+)$", (CHART.parents[1] / "docs/operations.md").read_text(), re.MULTILINE)
    assert set(headings) == reasons
    assert len(headings) == len(reasons)


def test_brokers_export_what_they_look_at():
    there = exported()
    for one in alerts("clusters").values():
        for name in re.findall(r"\bmercast_\w+(?=\{)", one["expr"]):
            assert name in there, one["alert"]
