"""`mercast audit`, as it is called."""

import json
import subprocess
import sys

import pytest

from mercast_streaming.audit import invented


def mercast_audit(*flags):
    command = [sys.executable, "-m", "mercast", "audit", *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def test_what_is_wrong_is_said_and_written(tmp_path):
    taps = invented.make(invented.Setting(events=200, faults={"drop": 1, "double": 1}))
    taps.write(tmp_path / "taps")
    files = ["--json", tmp_path / "audit.json", "--html", tmp_path / "audit.html"]
    found = mercast_audit("--from", tmp_path / "taps", "--memory", "1g", *files)
    assert found.returncode == 1, found.stderr
    report = json.loads((tmp_path / "audit.json").read_text())
    assert {(one["what"], tuple(one["event"]), one["broker"], one["client"]) for one in report["named"]} == taps.wrong
    page = (tmp_path / "audit.html").read_text()
    for what, event, broker, client in taps.wrong:
        name = f"event {':'.join(map(str, event))}, broker {broker}, client {client}"
        assert what in found.stdout
        assert name in " ".join(found.stdout.split())
        assert name in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--from", "/no/such/folder"], "there is no such folder"),
        (["--since", "yesterday"], "2026-03-01T12:00:00"),
        (["--most-unknown", "2"], "--most-unknown from 0 to 1"),
        (["--conf", "x"], "KEY=VALUE"),
        (["--json", "/no/such/folder/audit.json"], "give a file in a folder that is there"),
        (["--html", "/"], "give a file in a folder that is there"),
        (["--grace", "nan"], "--grace and --around-faults are not negative"),
        (["--since", "2026-03-02", "--until", "2026-03-01"], "--since 2026-03-02 is not before --until 2026-03-01"),
    ],
)
def test_bad_flags_are_refused_before_anything_is_started(flags, says):
    found = mercast_audit(*flags)
    assert (found.returncode, says in found.stderr, "starting Spark" in found.stderr) == (3, True, False)


def test_what_cannot_be_read_is_a_failure_and_no_verdict(tmp_path):
    (tmp_path / "taps.parquet").write_bytes(b"this is no Parquet")
    found = mercast_audit("--from", tmp_path / "taps.parquet", "--memory", "1g")
    assert found.returncode == 3, found.stderr
    assert "is not a Parquet file" in found.stderr
    assert "Traceback" not in found.stderr
