"""Tests that share their brokers (the fixture `mesh` of a file) run in one process, with `pytest -n 2 --dist loadgroup`."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if HERE in item.path.parents and "mesh" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
