"""Seeds by name: all that a name stands for is called, but for this broker itself."""

import asyncio

import pytest

from mercast.broker import seeking
from mercast.broker.seeking import Seeking
from mercast.broker.seeking import _addresses as addresses_of
from mercast.membership.members import Member, Members

NAMES = {"peers.svc": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "me.svc": ["10.0.0.2"], "lost.svc": []}


@pytest.fixture(autouse=True)
def _names(monkeypatch):
    async def addresses(where):
        host, _, port = where.rpartition(":")
        return {f"{one}:{port}" for one in NAMES.get(host, [host])}

    monkeypatch.setattr(seeking, "_addresses", addresses)


class Called:
    """Addresses that were, each with what it answers."""

    def __init__(self, seeds, answers=None, own="10.0.0.2:7", **how):
        self.addresses, self._answers = [], answers or {}
        self.members = Members(0)
        self.seeking = Seeking(self.members, seeds, self._call, lambda: 0.0, own, **how)

    async def _call(self, address, _whom):
        self.addresses.append(address)
        return self._answers.get(address, "")

    async def round(self):
        """Once all that there is to call has been."""
        tasks = self.seeking.begin()
        for _ in range(20):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        return sorted(self.addresses), self.seeking.lacks()


def play(*how, **more):
    async def played():
        return await Called(*how, **more).round()

    return asyncio.run(played())


def test_a_name_is_all_its_addresses_but_ones_own():
    assert play(["peers.svc:7"]) == (["10.0.0.1:7", "10.0.0.3:7"], "")
    assert play(["peers.svc:7"], own="me.svc:7") == (["10.0.0.1:7", "10.0.0.3:7"], "")


def test_whoever_finds_only_itself_is_the_first():
    assert play(["me.svc:7"]) == ([], "")


def test_a_name_that_nobody_has():
    assert play(["lost.svc:7"]) == ([], "no seed has answered yet")
    assert play(["lost.svc:7", "me.svc:7"]) == ([], "no seed has answered yet")
    assert play(["lost.svc:7"], seeds_needed=False) == ([], "")


def test_one_of_many_is_enough():
    assert play(["peers.svc:7"], {"10.0.0.1:7": None})[1] == ""
    nobody = {"10.0.0.1:7": None, "10.0.0.3:7": None}
    assert play(["peers.svc:7"], nobody)[1] == "no seed has answered yet"
    assert play(["peers.svc:7"], nobody, seeds_needed=False)[1] == ""


def test_whoever_has_moved_away_refuses_nobody():
    async def played():
        called = Called([], {"old:1": "refuses: strategy"})
        called.members.fix([Member(1, "old:1")])
        assert await called.round() == (["old:1"], "the broker at old:1 refuses: strategy")
        called.members.hinted = {1: "new:1"}
        called.seeking.heard_of_more(called.members.take_hints(()))
        assert called.seeking.lacks() == "broker 1 has not been called yet"
        return await called.round()

    assert asyncio.run(played()) == (["new:1", "old:1"], "")


def test_what_can_be_no_name():
    assert asyncio.run(addresses_of("a..b:7")) == set()
