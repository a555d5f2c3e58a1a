"""What tests of live brokers leave for the audit: the taps of a mesh, and what a fault may have cost.

Spark is slow to start and to plan, so these audits come after all the tests, in the process that has it
(tests/streaming/test_audit_of_tests.py), and many tests are one audit: their taps are written anew as if one test had
come long after the other, to brokers that were restarted in between. `make test` names the folder that both know;
without it no taps are written.
"""

import json
import os
import re
from pathlib import Path

import orjson

from mercast.protocol.repeated import OF, RUNS

FOLDER = "MERCAST_TEST_TAPS"
_SETTING = "audit.json"
_TAPS = "*.jsonl*"
_APART = 10_000
"""Seconds from one test to the next: further than clocks, faults and grace reach."""
_MILLISECONDS, _MICROSECONDS = 1_000, 1_000_000
_TIMES = {"at": _MICROSECONDS, "time": _MICROSECONDS, "settled_at": _MICROSECONDS, "event_incarnation": _MILLISECONDS}
"""Columns that tell of a time, and what a second is there."""


def folder_of_this_test():
    """Where the brokers of the test that runs write their taps; None if nobody wants them."""
    name = os.environ.get(FOLDER)
    if not name:
        return None
    test = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)").partition("tests/")[2]
    return Path(name) / re.sub(r"[^\w.]+", "-", test).strip("-")


def leave(folder, setting):
    """The test went well, and this is how its audit is to be done (keywords of the audit's Setting)."""
    (folder / _SETTING).write_text(json.dumps(setting))


def left():
    """The folders of tests that are audited alike, by that setting, as JSON."""
    name = os.environ.get(FOLDER)
    found = {}
    for file in sorted(Path(name).glob(f"*/{_SETTING}")) if name else []:
        found.setdefault(file.read_text(), []).append(file.parent)
    return found


def put_together(folders, into):
    """The taps of these tests in one folder, one after the other; by the second that each begins at, its name.

    Brokers are numbered from 1, and tests with fewer come first: so every broker of a test is there in the next one,
    and the audit knows that it was restarted.
    """
    begins = {}
    for folder in sorted(folders, key=lambda folder: (len(list(folder.glob(_TAPS))), folder.name)):
        said = {file.name: list(map(orjson.loads, file.read_bytes().splitlines())) for file in folder.glob(_TAPS)}
        began = min(one["incarnation"] for messages in said.values() for one in messages) // _MILLISECONDS
        start = max(begins) + _APART if begins else began
        begins[start] = folder.name
        (into / folder.name).mkdir()
        for name, messages in said.items():
            lines = (orjson.dumps(_later(one, start - began)) for one in messages)
            (into / folder.name / name).write_bytes(b"".join(line + b"\n" for line in lines))
    return begins


def _later(message, seconds):
    """The same, so many seconds later."""
    message["incarnation"] += seconds * _MILLISECONDS
    for rows in message.values():
        if isinstance(rows, dict):
            runs = rows.get(RUNS, {})
            for name in _TIMES.keys() & runs.keys():
                runs[name][OF] = [time if time is None else time + seconds * _TIMES[name] for time in runs[name][OF]]
            for name in _TIMES.keys() & rows.keys():
                rows[name] = [time if time is None else time + seconds * _TIMES[name] for time in rows[name]]
    return message
