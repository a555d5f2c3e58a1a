"""Either client, and a broker of few words on a real socket."""

import logging

import pytest
from both_clients import Loop, connect
from scripted_broker import Broker


@pytest.fixture(scope="module", params=["asyncio", "uvloop", "blocking"])
def open_client(request):
    loop = Loop(request.param)
    yield lambda *args, **named: connect(request.param, loop, *args, **named)
    loop.stop()


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def no_trouble_unseen(caplog):
    """asyncio tells of exceptions that nobody took by its log."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
