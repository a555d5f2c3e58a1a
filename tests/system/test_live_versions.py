"""Brokers and clients of several builds in one mesh, and those that have no version in common."""

import subprocess

import builds
import pytest
from live import PATIENCE, Apart, Lone, ask, end, linked, mercast, popen_python

from mercast import Refused, blocking
from mercast.wire.hello import VERSIONS

RING = [(1, 2), (2, 3), (3, 4), (4, 1)]
EVENTS = 300

CLIENT = """
import sys
from mercast import __version__, blocking

url, by, events, clients = sys.argv[1], *map(int, sys.argv[2:])


def read(stream, last):
    left = clients
    while left:
        event = stream.get(60)
        print(event.attributes["by"], event.attributes["n"], len(event.payload))
        left -= event.attributes["n"] == last


with blocking.connect(url) as client:
    stream = client.subscribe("tick", "n >= 0")
    client.advertise("tick")
    print(__version__, flush=True)
    sys.stdin.readline()
    for outcome in client.publish_many([("tick", {"by": by, "n": n}, bytes(n)) for n in range(events)]):
        assert outcome.destinations == clients, outcome
    read(stream, events - 1)
    print("all", flush=True)
    sys.stdin.readline()
    client.publish("tick", {"by": by, "n": events})  # behind which nothing can still be on its way
    read(stream, events)
    print("all", flush=True)
"""
"""Subscribes, says so, waits for the others, publishes, and prints what it gets until it has all; then once more."""


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    build = builds.older(tmp_path_factory.mktemp("older"))
    if build is None:
        pytest.skip(f"commit {builds.OLDER[:7]} is not there: this is no clone with the whole history")
    return build


@pytest.fixture(scope="module")
def following(tmp_path_factory):
    return builds.following(tmp_path_factory.mktemp("next"))


@pytest.fixture(scope="module")
def too_new(tmp_path_factory):
    return builds.following(tmp_path_factory.mktemp("too new"), (VERSIONS[1] + 1, VERSIONS[1] + 2))


class Mixed(Apart):
    """A broker of each of these builds."""

    def __init__(self, builds_, links):
        super().__init__(len(builds_), links)
        self._builds = dict(enumerate(builds_, 1))

    def environment(self, id):
        return builds.environment(self._builds[id])


class Client:
    def __init__(self, build, broker, by, clients):
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": builds.environment(build)}
        self.process = popen_python("-c", CLIENT, broker.client, by, EVENTS, clients, **how)

    def goes_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def gets(self):
        """What it got until it had all."""
        lines = []
        while (line := self.process.stdout.readline()) != "all\n":
            assert line, "it has ended"
            lines.append(tuple(map(int, line.split())))
        return lines


def exchanged(of_brokers):
    """Every client gets each event once. The versions that links speak, by their ends."""
    clients = []
    with Mixed(of_brokers, RING) as mesh:
        try:
            # Clients are at brokers of other builds than their own.
            for id, build in zip(mesh.brokers, of_brokers[2:] + of_brokers[:2], strict=True):
                clients.append(Client(build, mesh[id], id, len(mesh.brokers)))
            ran = [client.process.stdout.readline().strip() for client in clients]
            got = [[] for _ in clients]
            for _ in range(2):
                for client in clients:
                    client.goes_on()
                for lines, client in zip(got, clients, strict=True):
                    lines += client.gets()
            assert [client.process.wait(PATIENCE) for client in clients] == [0] * len(clients)
        finally:
            for client in clients:
                end(client.process)
                client.process.stdin.close()
                client.process.stdout.close()
        seen = {id: ask(broker, "overlay") for id, broker in mesh.brokers.items()}
    due = sorted((by, n, n % EVENTS) for by in seen for n in range(EVENTS + 1))
    for lines in got:
        assert sorted(lines) == due
    versions = [seen[id]["broker"]["version"] for id in seen]
    assert ran == versions[2:] + versions[:2]
    wire = {(id, link["neighbour"]): link.get("wire_version") for id in seen for link in seen[id]["links"]}
    return versions, wire


@pytest.mark.slow
def test_this_build_and_the_next_in_one_mesh(following):
    versions, wire = exchanged([None, None, following, following])
    assert versions[2:] == ["next", "next"]
    assert wire == dict.fromkeys(wire, 1) | {(3, 4): 2, (4, 3): 2}
    assert len(wire) == 2 * len(RING)


@pytest.mark.slow
def test_an_older_build_this_one_and_the_next_in_one_mesh(older, following):
    versions, wire = exchanged([older, None, following, following])
    assert (versions[0], versions[2:]) == ("older", ["next", "next"])
    assert {ends: version for ends, version in wire.items() if ends[0] != 1} == {
        (2, 1): 1,
        (2, 3): 1,
        (3, 2): 1,
        (3, 4): 2,
        (4, 3): 2,
        (4, 1): 1,
    }


def refusal(who_refuses, who_is_refused):
    """What both sides say of it."""
    (a, b), (c, d) = who_refuses, who_is_refused
    return f"no common version: who refuses speaks {a} to {b} of the wire, who is refused {c} to {d}; upgrade the older"


NEWER = (VERSIONS[1] + 1, VERSIONS[1] + 2)


@pytest.mark.slow
@pytest.mark.parametrize("calls", ["this build", "the newer"])
def test_brokers_without_a_common_version_refuse_each_other(tmp_path, too_new, calls):
    new, this = ({"env": builds.environment(too_new)}, NEWER), ({}, VERSIONS)
    (called_how, called_speaks), (how, speaks) = (new, this) if calls == "this build" else (this, new)
    reason = refusal(called_speaks, speaks)
    with (
        Lone(tmp_path / "1.log", 1, **called_how) as called,
        Lone(tmp_path / "2.log", 2, "--seeds", called.peer, **how) as caller,
    ):
        called.says("peer cut off", '"code": "version"', reason)
        caller.says('"refused"', f"version: {reason}")
        assert ask(caller, "readyz")["reason"] == f"the broker at {called.peer} refuses: version: {reason}"
        assert linked(called) == linked(caller) == set()
        assert "Traceback" not in called.told() + caller.told()


@pytest.mark.slow
def test_clients_without_a_common_version_are_refused(tmp_path, too_new):
    with Lone(tmp_path / "1.log", 1) as broker:
        url = f"mercast://{broker.client}"
        done = mercast("pub", "tick", "n=1", "--url", url, env=builds.environment(too_new))
        reason = refusal(VERSIONS, NEWER)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"mercast pub: the broker at {broker.client} refuses: {reason}\n"
        broker.says("client cut off", '"code": "version"', reason)
    with Lone(tmp_path / "2.log", 2, env=builds.environment(too_new)) as broker:
        reason = refusal(NEWER, VERSIONS)
        with pytest.raises(Refused) as raised:
            blocking.connect(broker.client)
        assert (raised.value.code, str(raised.value)) == ("version", f"the broker at {broker.client} refuses: {reason}")
        broker.says("client cut off", '"code": "version"', reason)
        url = f"mercast://{broker.client}"
        done = mercast("pub", "tick", "n=1", "--url", url, env=builds.environment(too_new))
        assert (done.returncode, done.stderr) == (0, "")
