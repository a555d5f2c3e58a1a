"""`mercast audit`, when there can be no verdict: in this process, for Spark is slow to start."""

import pytest

from mercast.cli import app


@pytest.fixture
def mercast_audit(capfd):
    """The exit status, and what it says."""

    def run(*flags):
        with pytest.raises(SystemExit) as ended:
            app(["audit", *map(str, flags)])
        return ended.value.code, capfd.readouterr().err

    return run


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
def test_bad_flags_are_refused_before_anything_is_started(mercast_audit, flags, says):
    status, told = mercast_audit(*flags)
    assert (status, says in told, "starting Spark" in told) == (3, True, False)


def test_what_cannot_be_read_is_a_failure_and_no_verdict(mercast_audit, auditing, monkeypatch, tmp_path):
    monkeypatch.setattr("mercast.cli.audit.started", lambda *_, **__: auditing)
    monkeypatch.setattr(auditing, "stop", lambda: None)  # others have it too
    (tmp_path / "taps.parquet").write_bytes(b"this is no Parquet")
    status, told = mercast_audit("--from", tmp_path / "taps.parquet")
    assert status == 3, told
    assert "is not a Parquet file" in told
    assert "Traceback" not in told
