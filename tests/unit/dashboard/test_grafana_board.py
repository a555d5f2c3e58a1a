"""The Grafana board: what it asks for, brokers export, with the labels that it parts them by."""

import json
import re
from itertools import combinations
from pathlib import Path

from observed import Link, Pair, StandIn
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from mercast.broker.config import BrokerConfig
from mercast.broker.lag import LagProbe
from mercast.broker.metrics import registry

BOARD = json.loads((Path(__file__).parents[3] / "charts/mercast/files/grafana.json").read_text())


class Shipper:
    shipped = lost = bytes = most_bytes = 1


class Taps:
    shipper = Shipper()


def exported():
    """Names of samples; and labels that any of them has."""
    pair = Pair()
    pair.measure(rtt=0.001, clock_offset=0.0)
    broker = StandIn(BrokerConfig(id=1), pair.cores[1], links={2: Link("h:1")}, taps=Taps())
    broker.counters.dropped["no route"] = broker.counters.denied["full"] = broker.counters.too_fast["client"] = 1
    broker.security.expiry["tls_cert"] = 1e12
    families = text_string_to_metric_families(generate_latest(registry(broker, LagProbe())).decode())
    samples = [sample for family in families for sample in family.samples]
    return {
        sample.name: {label for other in samples if other.name == sample.name for label in other.labels}
        for sample in samples
    }


def expressions():
    return [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", [])]


def test_every_metric_that_the_board_names_is_exported_by_a_broker():
    there = exported()
    named = {name for text in expressions() for name in re.findall(r"\b(?:mercast|process)_\w+", text)}
    assert len(named) > 20
    assert named <= there.keys()


def test_every_label_that_it_parts_by_is_there():
    there = exported()
    known = {"instance", *(label for labels in there.values() for label in labels)}
    for text in expressions():
        for some in re.findall(r"by \(([^)]*)\)", text):
            assert set(re.split(r",\s*", some)) <= known, text
        assert text.count("(") == text.count(")")
        assert text.count("{") == text.count("}")


def test_no_two_panels_lie_on_each_other():
    boxes = [panel["gridPos"] for panel in BOARD["panels"]]
    for one, other in combinations(boxes, 2):
        apart_across = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_down = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_across or apart_down, (one, other)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(boxes)
