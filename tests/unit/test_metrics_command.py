"""`mercast metrics` and `taps init`, given what they cannot work with: a sentence says what would be right, at once."""

import pytest

from mercast.cli.metrics import metrics
from mercast.cli.taps import init
from mercast.processes import free_addresses


@pytest.mark.parametrize("address", ["here:there", "kafka://127.0.0.1:9092", "127.0.0.1:1,here:there"])
def test_an_address_that_is_none(address):
    with pytest.raises(SystemExit) as stopped:
        metrics(kafka=address)
    assert stopped.value.code == (f"mercast metrics: --kafka {address}: give it as HOST:PORT, or several with commas")


def test_nobody_at_the_address():
    (address,) = free_addresses(1)
    for name, call in {"metrics": lambda: metrics(kafka=address), "taps": lambda: init(f"kafka://{address}")}.items():
        with pytest.raises(SystemExit) as stopped:
            call()
        assert stopped.value.code == f"mercast {name}: no Kafka at {address}; start one by: mercast kafka"


@pytest.mark.parametrize("wrong", [{"window": 0}, {"watermark": -1}, {"ahead": -1}, {"every": -0.5}])
def test_seconds_that_cannot_be(wrong):
    with pytest.raises(SystemExit, match="--window must be at least 1 s, and --watermark, --ahead and --every not neg"):
        metrics(**wrong)
