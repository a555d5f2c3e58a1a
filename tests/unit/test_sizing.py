"""docs/sizing.md is made of what the benches say, by the names that they have for it."""

import types
from dataclasses import asdict, fields, is_dataclass
from typing import get_args, get_origin, get_type_hints

import pytest

from mercast_loadtest.bench import audit, chain, crowd, forward, hop, idle, line, matching, metrics, sizing, taps

RESULTS = {one.__name__.rpartition(".")[2]: one.Result for one in (audit, chain, crowd, forward, hop, idle)}
RESULTS |= {one.__name__.rpartition(".")[2]: one.Result for one in (line, metrics, taps)}


def filled(kind):
    """A result of this kind, all numbers 10."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name]) for field in fields(kind)})
    if isinstance(kind, types.UnionType):
        return filled(get_args(kind)[0])
    if get_origin(kind) is list:
        return [filled(get_args(kind)[0])]
    if get_origin(kind) is dict:
        return {"one": filled(get_args(kind)[1])}
    return {str: "any", bool: True}.get(kind, 10)


@pytest.fixture
def measured():
    indexes = [asdict(filled(matching.Result)) | {"name": f"stock, {count:,} filters"} for count in (10_000, 100_000)]
    return {name: asdict(filled(kind)) for name, kind in RESULTS.items()} | {"all": indexes}


def test_it_has_a_figure_for_every_bench_that_it_names(measured):
    assert measured.keys() == set(sizing.BENCHES)
    told = sizing.document(measured)
    assert "{" not in told
    assert "| stock, 100,000 | 10 |" in told


def test_its_example_is_worked_out_from_the_figures(measured):
    """To publish takes 80 µs with the match, each copy 60; a fifth of 10,000 events is wanted at each other broker."""
    measured["hop"]["cpu_us_per_event"], measured["forward"]["varied"]["cpu_us_per_event"] = 50, 10
    measured["all"][1]["us_per_event"]["mean"] = 30
    measured["idle"]["before_bytes"] = measured["all"][1]["memory_bytes"] = 100 * 1024 * 1024
    measured["idle"]["tls_bytes_per_connection"] = 1024
    measured["crowd"]["bytes_per_subscriber"], measured["crowd"]["bytes_per_connection"] = 3 * 1024, 1024
    told = sizing.document(measured)
    # 10,000 x (80 / n + 0.2 x (1 - 1 / n) x 60) µs: 0.46 s of each second for two, 0.8 for one
    assert "2 brokers then work 46% of the time each; 1 would 80%." in told
    # 10,000 connections of 1 KiB, 50,000 subscriptions of 2 KiB
    assert "Each takes 308 MiB, of which 10 are for 10,000 connections by TLS: " in told
    assert "`brokers.resources.limits.memory=640Mi`" in told


def test_it_says_when_no_number_of_brokers_is_enough(measured):
    measured["hop"]["cpu_us_per_event"] = 300
    told = sizing.document(measured)
    assert "No number of brokers is enough: each wants its share of all events, and 1,000 would still work 6" in told


def test_without_a_bench_it_says_which_is_missing(tmp_path):
    (tmp_path / "hop.json").write_text("{}")
    with pytest.raises(SystemExit, match="no figures of all, chain"):
        sizing.main(tmp_path, tmp_path / "sizing.md")
    assert not (tmp_path / "sizing.md").exists()
