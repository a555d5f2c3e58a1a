"""Logs of a broker: lines for people or for machines, from us and from libraries alike."""

import io
import json
import logging

import pytest
import structlog

from mercast.broker.config import BrokerConfig
from mercast.broker.logs import set_up_logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def logged():
    """What was written by the time it is asked for; the process logs as before afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def set_up(stream, **given):
        set_up_logs(BrokerConfig(id=3, cluster="trading", **given), stream)
        return stream

    yield set_up
    root.handlers, root.level = before
    logging.captureWarnings(False)
    structlog.reset_defaults()


def broken():
    raise ValueError("odd")


def test_lines_of_json(logged):
    stream = logged(io.StringIO())
    structlog.get_logger("mercast.links").info("link up", neighbour=5)
    logging.getLogger("aiohttp.server").warning("bad %s", "request")
    try:
        broken()
    except ValueError:
        structlog.get_logger("mercast.links").exception("failed")
    ours, theirs, failed = map(json.loads, stream.getvalue().splitlines())
    assert ours.pop("timestamp").endswith("Z")
    common = {"broker": 3, "cluster": "trading"}
    assert ours == {**common, "level": "info", "logger": "mercast.links", "message": "link up", "neighbour": 5}
    assert (
        theirs.items() >= {**common, "level": "warning", "logger": "aiohttp.server", "message": "bad request"}.items()
    )
    assert failed["exception"].endswith("ValueError: odd")


def test_lines_for_people_on_a_terminal(logged):
    stream = logged(Terminal())
    structlog.get_logger("mercast.links").info("link up", neighbour=5)
    assert "link up" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_lines_for_people_elsewhere_have_no_colours(logged):
    stream = logged(io.StringIO(), log_format="console")
    structlog.get_logger("mercast.links").info("link up", neighbour=5)
    assert stream.getvalue().rstrip().endswith("[mercast.links] broker=3 cluster=trading neighbour=5")
    assert "\x1b" not in stream.getvalue()


def test_json_on_a_terminal_if_asked_for(logged):
    stream = logged(Terminal(), log_format="json")
    structlog.get_logger("x").info("up")
    assert json.loads(stream.getvalue())["message"] == "up"


def test_what_is_below_the_level_is_not_logged(logged):
    stream = logged(io.StringIO(), log_level="warning")
    structlog.get_logger("x").info("no")
    logging.getLogger("y").info("no")
    structlog.get_logger("x").warning("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]
