"""What brokers did in the tests of tests/system, while clients came and went, and in faults: audited afterwards."""

import json
import os

import pytest
from audited import FOLDER, left, put_together

from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files
from mercast_streaming.audit.report import CLEAN, headline, steps

GRACE = 1.0
"""Seconds: these tests are short."""
LEFT = left()


@pytest.mark.skipif(FOLDER not in os.environ, reason="make test names the folder of what tests left")
@pytest.mark.parametrize("setting", sorted(LEFT))
def test_all_that_was_due_was_delivered_and_nothing_else(auditing, tmp_path, setting):
    begins = put_together(LEFT[setting], tmp_path)
    report = audit(auditing, from_files(auditing, str(tmp_path)), Setting(grace=GRACE, **json.loads(setting)))
    print(f"\n{setting}: {report.right} right, grey {report.grey}, unknown {report.unknown}, skew {report.skew_us} us")
    assert not report.named, "\n".join(line for one in report.named for line in (of(one, begins), *steps(one)))
    assert report.exit_code(0.5) == CLEAN
    assert report.lost_rows == 0


def of(named, begins):
    """What went wrong, and in which test."""
    return f"{begins[max(start for start in begins if start <= named.event[1] // 1000)]}: {headline(named)}"


@pytest.mark.skipif(FOLDER not in os.environ, reason="as above")
@pytest.mark.parametrize("about", ["strategies", "faults", "partitions", "rolling", "merc"])
def test_there_is_something_to_audit(about):
    assert [folder for some in LEFT.values() for folder in some if f"test_live_{about}" in folder.name]
