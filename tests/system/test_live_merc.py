"""Clusters joined by redundant edges: edges die, stand still and come back under load; what crosses, and what not."""

import asyncio
import os
import re
import signal

import pytest
from live import PATIENCE, Mesh, ask, mercast, metrics, until
from under_load import AROUND, OPTIONS, Load

import mercast as client
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity

EACH, CLUSTERS, EDGES = 3, 2, 2
"""Brokers 1 to 3 and 4 to 6; in each cluster the first two are edges."""

MERC = {"clusters": CLUSTERS, "edges": EDGES, "strategy": "merc"}
HOMES = [(1, 2), (1, 3), (2, 3), (4, 5), (4, 6), (5, 6)]
BACKBONE = [(1, 2), (1, 4), (1, 5), (2, 4), (2, 5), (4, 5)]
EVERYBODY = {1, 2, 3, 4, 5, 6}


class Between(Load):
    """The same load at every broker of every cluster."""

    def __init__(self, mesh):
        super().__init__(mesh, {*HOMES, *BACKBONE})

    def _until_linked(self, graph):
        """Each broker reaches who is left, in all of its clusters."""

        def right(id):
            seen = ask(self.mesh[id], "overlay")
            reached = [_reached(view) for view in (seen, *seen["others"])]
            clusters = [{1, 2, 3}, {4, 5, 6}, {1, 2, 4, 5}]
            return reached == [cluster & set(graph) for cluster in clusters if id in cluster]

        until(lambda: all(map(right, graph)), lambda: f"all reach {sorted(graph)}")

    def _fate(self, one, other):
        if {one, other} & self._away:
            return "severed"
        return "spared" if self.mesh[one].cluster == self.mesh[other].cluster else "around"

    def _concerns(self, id, row, own):
        """Edges carry what others publish."""
        return self.mesh[id].edge or super()._concerns(id, row, own)

    def _tables(self):
        """Edges are told by others of what they bring themselves."""
        tables = super()._tables()
        for id, table in tables.items():
            table["heard"]["rows"] = [row for row in table["heard"]["rows"] if row["broker"] != id]
        return tables


def _reached(view):
    return {one["id"] for one in view["overlay"]["brokers"] if one["reachable"]}


@pytest.mark.slow
def test_an_edge_is_killed_under_load_and_comes_back():
    with Mesh(EACH, options=OPTIONS, audit=AROUND, **MERC) as mesh, Between(mesh) as load:
        load.fault(brokers=[1])
        mesh.kill(1)
        load.noticed()
        mesh.start(1)
        mesh.wait_ready(1)
        load.judge()


@pytest.mark.slow
def test_an_edge_stands_still_and_goes_on():
    with Mesh(EACH, options=OPTIONS, audit=AROUND, **MERC) as mesh, Between(mesh) as load:
        load.fault(brokers=[5])
        os.kill(mesh[5].pid, signal.SIGSTOP)
        load.noticed()
        os.kill(mesh[5].pid, signal.SIGCONT)
        load.judge()


@pytest.mark.slow
def test_edges_that_are_restarted_one_after_the_other_lose_nothing():
    with Mesh(EACH, options=OPTIONS, audit={}, **MERC) as mesh, Between(mesh) as load:
        for edge in (1, 2):
            mesh.restart(edge)
            load._until_linked(load._graph)
            load.flows()
            load.all_arrives()
        assert all(times == 1 for subscriber in load.subscribers for times in list(subscriber.got.values()))


# -- what crosses ----------------------------------------------------------------------------------------------------


async def received(publisher, subscriber, *types):
    """Which of these types cross from one broker to another; the last one always does."""
    async with client.connect(publisher.client) as here, client.connect(subscriber.client) as there:
        stream = await there.subscribe(None)
        for type in types:
            await here.advertise(type)
        for type in types:
            await here.publish(type)
        got = []
        while not got or got[-1] != types[-1]:
            got.append((await stream.get(PATIENCE)).type)
        return got


RULES = ["--exports", "public.*,end,!public.secret", "--imports", "!foreign.*"]


def test_edges_export_and_import_by_their_rules():
    def each(id):
        return RULES if id <= EDGES else []

    with Mesh(EACH, each=each, **MERC) as mesh:
        out = asyncio.run(received(mesh[3], mesh[6], "public.a", "private.a", "public.secret", "end"))
        assert out == ["public.a", "end"]
        inwards = asyncio.run(received(mesh[6], mesh[3], "foreign.a", "public.secret", "end"))
        assert inwards == ["public.secret", "end"]
        told = mercast("overlay", "--admin", mesh[1].admin).stdout
    assert "edge to backbone (3); exports public.*, end, !public.secret; imports !foreign.*" in told


def test_overlay_shows_clusters_edges_and_what_they_bring():
    async def looked(mesh):
        async with client.connect(mesh[3].client) as one, client.connect(mesh[6].client) as other:
            await one.advertise("tick")
            stream = await other.subscribe("tick", "n > 1")
            await one.publish("tick", {"n": 2})
            assert (await stream.get(PATIENCE)).attributes == {"n": 2}
            told = [mercast("overlay", "--admin", mesh[id].admin).stdout for id in (1, 3, 6)]
            carried = [metrics(mesh[id])["mercast_events_carried_total"] for id in (1, 2)]
            return told, carried

    with Mesh(EACH, **MERC) as mesh:
        (edge, at_publisher, at_subscriber), carried = asyncio.run(looked(mesh))
    assert sorted(carried) == [0, 1]  # by one of the two
    assert "broker 1 of cluster cluster-1: merc" in edge
    assert [line.strip() for line in edge.splitlines() if " of cluster " in line][1:] == [
        "brokers of cluster cluster-1",
        "links of cluster cluster-1",
        "edges of cluster cluster-1",
        "brokers of cluster backbone",
        "links of cluster backbone",
        "edges of cluster backbone",
    ]
    assert _edges(at_publisher) == {1: ("backbone", 0, 1), 2: ("backbone", 0, 1)}
    assert _edges(at_subscriber) == {4: ("backbone", 1, 0), 5: ("backbone", 1, 0)}


def _edges(told):
    """By broker: where else it is, and how much it brings."""
    rows = re.findall(r"^ +(\d+) +([\w-]+) +(\d+) +(\d+) +reachable *$", told.partition("edges")[2], re.MULTILINE)
    return {int(id): (also_in, int(some), int(others)) for id, also_in, some, others in rows}


# -- who may be an edge ----------------------------------------------------------------------------------------------


def test_edges_prove_all_of_their_clusters(tmp_path):
    """An internal broker's certificate does not open the backbone."""
    make_ca(tmp_path)
    here = ["localhost", "127.0.0.1"]
    for cluster in ("cluster-1", "cluster-2"):
        make_certificate(tmp_path, cluster, Identity(cluster, "broker"), here)
        make_certificate(tmp_path, f"{cluster}-edge", Identity(cluster, "edge"), here, joins=["backbone"])

    def each(id):
        name = f"cluster-{1 + id // 4}{'-edge' if id not in (3, 6) else ''}"
        return ["--peer-cert", f"{tmp_path}/{name}.pem", "--peer-key", f"{tmp_path}/{name}.key",
                "--peer-ca", f"{tmp_path}/ca.pem"]  # fmt: skip

    with Mesh(EACH, each=each, **MERC) as mesh:
        assert asyncio.run(received(mesh[3], mesh[6], "tick", "end")) == ["tick", "end"]
        wrong = [*mesh._flags(mesh[1])]
        for flag, end in (("--peer-cert", "pem"), ("--peer-key", "key")):
            wrong[wrong.index(flag) + 1] = f"{tmp_path}/cluster-1.{end}"
        refused = mercast("broker", "--check-config", *wrong)
    assert refused.returncode == 1
    assert "expected mercast://cluster/backbone/broker or mercast://cluster/backbone/edge" in refused.stderr
