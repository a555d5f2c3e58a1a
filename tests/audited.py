"""What tests of live brokers leave for the audit: the taps of a mesh, and what a fault may have cost.

Spark is slow to start, so these audits come after all the tests, in the process that has it
(tests/streaming/test_audit_of_tests.py). `make test` names the folder that both know; without it no taps are written.
"""

import json
import os
import re
from pathlib import Path

FOLDER = "MERCAST_TEST_TAPS"
_SETTING = "audit.json"


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
    """By name: the folder, and the setting."""
    name = os.environ.get(FOLDER)
    files = sorted(Path(name).glob(f"*/{_SETTING}")) if name else []
    return {file.parent.name: (file.parent, json.loads(file.read_text())) for file in files}
