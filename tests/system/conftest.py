"""Tests that share their brokers (the fixture `mesh` of a file) run in one process, with `pytest -n 2 --dist loadgroup`."""

import pytest


def pytest_itemcollected(item):
    if "mesh" in item.fixturenames and item.config.pluginmanager.hasplugin("xdist"):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))
