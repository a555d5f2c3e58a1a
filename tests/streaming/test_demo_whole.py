"""`make demo`, with all that belongs to it: Kafka, Spark, Locust, the audit and the report."""

import json
import re

import pytest
from demonstrated import last_lines, running


@pytest.mark.timeout(900)  # beside another Spark, on two processors
def test_make_demo(tmp_path):
    with running(tmp_path, 20, "--rate", "100", make=True) as demo:
        assert demo.ended(850) == 0, demo.said
        said, survivors = demo.said, demo.survivors()
    assert survivors == []
    told = (
        "the page is up",
        "Kafka is up",
        "Spark is starting",
        "brokers are up",
        "is killed",
        "Spark audits",
        "\nas promised",
    )
    places = [said.index(text) for text in told]
    assert places == sorted(places)
    assert "the page shows it dead" in said
    report = tmp_path / "report"
    assert said.endswith((report / "report.txt").read_text())
    audit = json.loads((report / "audit.json").read_text())
    load = json.loads((report / "load.json").read_text())
    counts = {name: int(count.replace(",", "")) for name, count in last_lines(said).items()}
    assert counts == {"delivered": audit["right"], "doubled": 0, "missing": 0}
    # The two do not know of each other: one reads taps, the other what its subscribers got.
    assert audit["right"] == load["delivered"] + load["uncounted"] > 0
    assert re.search(r"^memory: +at most [0-3]\.\d+ GB", said, re.MULTILINE)
    page = (report / "report.html").read_text()
    assert "Latency by Spark, 95th percentile" in page
    assert "as promised" in page
