"""`mercast audit`, as it is called."""

import json
import subprocess
import sys

from mercast_streaming.audit import invented


def test_what_is_wrong_is_said_and_written(tmp_path):
    taps = invented.make(invented.Setting(events=200, faults={"drop": 1, "double": 1}))
    taps.write(tmp_path / "taps")
    files = ["--json", tmp_path / "audit.json", "--html", tmp_path / "audit.html"]
    command = [sys.executable, "-m", "mercast", "audit", "--from", tmp_path / "taps", "--memory", "1g", *files]
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, check=False)
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
