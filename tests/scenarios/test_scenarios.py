"""Every `*.txt` beside this file is played and must come out as it is written.

`REWRITE=1 pytest tests/scenarios` writes what came out instead: read the difference before you commit it.
"""

import os
from pathlib import Path

import pytest
from scenarios.script import difference, played
from scenarios.stage import Stage

HERE = Path(__file__).parent


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_scenario(path):
    compare(path, rewrite=os.environ.get("REWRITE") == "1")


def compare(path, rewrite):
    file = f"{path.parent.name}/{path.name}"
    written = path.read_text()
    now = played(file, written, Stage().do)
    if rewrite:
        path.write_text(now)
    elif now != written:
        pytest.fail(difference(file, written, now), pytrace=False)
