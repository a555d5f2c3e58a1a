"""How many clients a broker takes where there are few file descriptors."""

import resource

import pytest

from mercast.broker import main


@pytest.mark.parametrize(("most", "clients"), [(1024, 768), (100, 1), (resource.RLIM_INFINITY, float("inf"))])
def test_all_file_descriptors_that_may_be_had_are_taken(monkeypatch, most, clients):
    taken = []
    monkeypatch.setattr(main.resource, "getrlimit", lambda _: (64, most))
    monkeypatch.setattr(main.resource, "setrlimit", lambda _, limits: taken.append(limits))
    assert main.room_for_clients() == clients
    assert taken == [(most, most)]
