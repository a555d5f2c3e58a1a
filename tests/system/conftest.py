"""One Kafka for all tests of a run, whichever worker they run in."""

import json
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from time import monotonic, sleep

import pytest

from mercast.kafka import Kafka

_PATIENCE = 600.0
"""Seconds that the worker which has started Kafka waits for the others at its end."""


@pytest.fixture(scope="session")
def kafka(tmp_path_factory, worker_id):
    """Its address. Tests keep apart by names of topics; those that stop Kafka have one of their own."""
    place = tmp_path_factory.getbasetemp()
    state = (place if worker_id == "master" else place.parent) / "kafka.json"
    with _locked(state) as said:
        mine = None
        if not said.get("users"):
            mine = Kafka()
            mine.__enter__()
            said["address"] = mine.address
        said["users"] = said.get("users", 0) + 1
        address = said["address"]
    yield address
    with _locked(state) as said:
        said["users"] -= 1
    if mine is not None:
        until = monotonic() + _PATIENCE
        while _users(state) and monotonic() < until:
            sleep(0.1)
        mine.__exit__()


@pytest.fixture(scope="session")
def worker_id(request):
    return getattr(request.config, "workerinput", {}).get("workerid", "master")


@contextmanager
def _locked(state):
    with state.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        said = json.loads(state.read_text()) if state.exists() else {}
        yield said
        state.write_text(json.dumps(said))


def _users(state):
    with _locked(state) as said:
        return said["users"]
