"""What brokers did in the tests of tests/system, while clients came and went, and in faults: audited afterwards."""

import os

import pytest
from audited import FOLDER, left

from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files
from mercast_streaming.audit.report import CLEAN, headline, steps

GRACE = 1.0
"""Seconds: these tests are short."""
LEFT = left()


@pytest.mark.skipif(FOLDER not in os.environ, reason="make test names the folder of what tests left")
@pytest.mark.parametrize("name", sorted(LEFT))
def test_all_that_was_due_was_delivered_and_nothing_else(auditing, name):
    folder, setting = LEFT[name]
    report = audit(auditing, from_files(auditing, str(folder)), Setting(grace=GRACE, **setting))
    print(f"\n{name}: {report.right} right, grey {report.grey}, unknown {report.unknown}, skew {report.skew_us} us")
    assert not report.named, "\n".join(line for one in report.named for line in (headline(one), *steps(one)))
    assert report.exit_code(0.5) == CLEAN


@pytest.mark.skipif(FOLDER not in os.environ, reason="as above")
@pytest.mark.parametrize("about", ["strategies", "faults", "partitions", "rolling", "merc"])
def test_there_is_something_to_audit(about):
    assert [name for name in LEFT if f"test_live_{about}" in name]
