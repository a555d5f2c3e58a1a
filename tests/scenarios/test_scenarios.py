"""Every `*.txt` beside this file is played and must come out as it is written.

`REWRITE=1 pytest tests/scenarios` writes what came out instead: read the difference before you commit it.
"""

import os
from pathlib import Path

import pytest
from scenarios.script import difference, played
from scenarios.stage import Stage

HERE = Path(__file__).parent

AHEAD = {
    "settling_in_a_partition": "a request made while a broker is out of reach waits for that broker",
}
"""Scenarios that say what should be and is not yet, with the reason; they are not rewritten."""


def scenario(path):
    ahead = pytest.mark.xfail(raises=pytest.fail.Exception, reason=AHEAD.get(path.stem, ""))
    return pytest.param(path, id=path.stem, marks=[ahead] if path.stem in AHEAD else [])


@pytest.mark.parametrize("path", [scenario(path) for path in sorted(HERE.glob("*.txt"))])
def test_scenario(path):
    compare(path, rewrite=os.environ.get("REWRITE") == "1" and path.stem not in AHEAD)


def compare(path, rewrite):
    file = f"{path.parent.name}/{path.name}"
    written = path.read_text()
    now = played(file, written, Stage().do)
    if rewrite:
        path.write_text(now)
    elif now != written:
        pytest.fail(difference(file, written, now), pytrace=False)
