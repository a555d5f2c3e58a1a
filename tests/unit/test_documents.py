"""The examples in README and docs run, and what the documents say of the tree is true."""

import doctest
import re
from pathlib import Path

import pytest

from mercast.limits import DEFAULTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["README.md", "docs/filters.md"])
def test_examples_run(document):
    failed, tried = doctest.testfile(
        str(ROOT / document), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert tried >= 10
    assert failed == 0


def test_the_error_shown_in_the_readme_is_the_error_given():
    from mercast.content import Filter, FilterError

    with pytest.raises(FilterError) as raised:
        Filter.parse('symbol = "ACME"')
    assert f"FilterError: {raised.value}\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md")), ids=lambda d: d.name
)
def test_paths_and_links_lead_somewhere(document):
    text = document.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    packages = ("services/mercast", "streaming/mercast_streaming", "loadtest/mercast_loadtest")
    rooms = [ROOT, *(ROOT / package for package in packages), document.parent]
    paths = re.findall(r"`([\w./-]+/[\w./-]*\w)`", text)
    missing = [path for path in links + paths if not any((room / path).exists() for room in rooms)]
    assert missing == []


def test_the_limits_told_are_the_limits_kept():
    told = {
        "characters of a filter": DEFAULTS.filter_length,
        "nested parentheses and NOTs": DEFAULTS.filter_depth,
        "values in one filter": DEFAULTS.filter_values,
        "characters of a pattern": DEFAULTS.pattern_length,
        "characters of a name": DEFAULTS.name_length,
        "characters of a string attribute": DEFAULTS.string_length,
        "attributes of an event": DEFAULTS.attributes,
        "subscriptions of a client": DEFAULTS.subscriptions,
        "advertisements of a client": DEFAULTS.advertisements,
        "bytes that both take at a broker, about": DEFAULTS.client_bytes,
    }
    text = (ROOT / "docs/filters.md").read_text()
    for what, limit in told.items():
        assert f"| {what} | {limit:,} |" in text


def test_every_make_target_in_the_documents_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in ROOT.glob("*.md"):
        assert set(re.findall(r"`?make ([a-z-]+)", document.read_text())) <= targets | {"nothing"}
