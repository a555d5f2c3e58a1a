"""Who is in a cluster, as a scripted Kubernetes API tells it: lists, watches, and all that may happen to them."""

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress

import pytest
from kubernetes.aio.config import incluster_config
from scripted_kubernetes import TOKEN, ScriptedKubernetes, pod

from mercast.membership import kubernetes
from mercast.membership.kubernetes import Kubernetes, Me, View
from mercast.membership.members import Member, Members
from mercast.membership.pods import MembershipError, broker_id, read_pod
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity

PATIENCE = 30.0
ME = Me(id=0, namespace="a", pod="try-broker-0", number=0, edge=False, ids_per_cluster=100, peer_port=7471)
EDGE = ME._replace(id=99, pod="try-edge-0", edge=True, backbone=("b", "c"))
SELF = pod("try-broker-0", "10.0.0.10")


@pytest.fixture
def api(tmp_path, monkeypatch):
    with ScriptedKubernetes(tmp_path) as scripted:
        monkeypatch.setenv("KUBECONFIG", str(scripted.kubeconfig))
        scripted.put(SELF)
        yield scripted


class Seen:
    """What a broker is told."""

    def __init__(self, me, **how):
        self.views = []
        self.kubernetes = Kubernetes(me, self.views.append, **how)

    @property
    def last(self):
        return self.views[-1] if self.views else None

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def sees(self, home, backbone=()):
        try:
            await self.until(lambda: self.last == View(dict(home), dict(backbone)))
        except TimeoutError:
            pytest.fail(f"{self.last}, expected {home} and {backbone}; lacks {self.kubernetes.lacks()!r}")


def play(story, me=ME, **how):
    """A story while a broker looks on."""

    @asynccontextmanager
    async def looking():
        seen = Seen(me, **how)
        task = asyncio.create_task(seen.kubernetes.run())
        try:
            yield seen
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def played():
        async with looking() as seen:
            await story(seen)

    asyncio.run(played())


# -- who a pod is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number", "edge", "id"),
    [("m-broker-0", 0, False, 0), ("m-broker-7", 3, False, 307), ("m-edge-0", 3, True, 399), ("m-edge-2", 0, True, 97)],
)
def test_an_id_follows_from_ordinal_and_cluster_number(name, number, edge, id):
    assert broker_id(name, number, 100, edge) == id


@pytest.mark.parametrize(
    ("name", "number", "reason"),
    [
        ("m-broker-x", 0, "pod 'm-broker-x' has no number at its end: brokers are pods of a StatefulSet"),
        (
            "m-broker-100",
            0,
            "pod 'm-broker-100' is one too many: a cluster has 100 ids (ids_per_cluster), "
            "so the last pod may end in 99",
        ),
        (
            "m-broker-0",
            327,
            "cluster number 327 is too large: with 100 ids per cluster (ids_per_cluster) the largest is 326",
        ),
    ],
)
def test_a_pod_that_cannot_be_a_broker(name, number, reason):
    with pytest.raises(MembershipError) as raised:
        broker_id(name, number, 100, False)
    assert str(raised.value) == reason


def test_where_a_pod_is_reached():
    assert read_pod(pod("m-broker-1", "10.0.0.1", port=9999), 100, 7471).address == "10.0.0.1:9999"
    assert read_pod(pod("m-broker-1", "fd00::1"), 100, 7471).address == "[fd00::1]:7471"
    assert read_pod(pod("m-broker-1", ""), 100, 7471).address == ""


# -- what is told of them --------------------------------------------------------------------------------------------


def test_pods_come_move_and_go(api):
    """Those of other clusters, and those that are no brokers, are nobody's business."""
    api.put(pod("try-broker-1", "10.0.0.1"), pod("try-edge-0", "10.0.0.9", role="edge"))
    api.put(pod("other-broker-3", cluster="other"), pod("page-0", role="dashboard"))

    async def story(seen):
        await seen.sees({1: "10.0.0.1:7471", 99: "10.0.0.9:7471"})
        assert seen.kubernetes.lacks() == ""
        api.put(pod("try-broker-2", ""))  # it has no address yet
        api.put(pod("try-broker-2", "10.0.0.2", port=7500))
        await seen.sees({1: "10.0.0.1:7471", 99: "10.0.0.9:7471", 2: "10.0.0.2:7500"})
        api.put(pod("try-broker-1", "10.0.0.1", deletionTimestamp="2026-01-01T00:00:00Z"))
        await seen.sees({99: "10.0.0.9:7471", 2: "10.0.0.2:7500"})
        api.delete("try-broker-1")
        api.put(pod("try-broker-1", "10.0.0.21"))
        await seen.sees({1: "10.0.0.21:7471", 99: "10.0.0.9:7471", 2: "10.0.0.2:7500"})
        api.put(pod("try-broker-1", "10.0.0.21", phase="Failed"))
        api.delete("try-edge-0")
        await seen.sees({2: "10.0.0.2:7500"})
        assert api.asked == ["GET a/pods/try-broker-0", "GET a/pods", "GET a/pods watch"]

    play(story)


def test_an_edge_finds_edges_of_other_namespaces(api):
    api.put(pod("try-edge-0", "10.0.0.9", role="edge"), pod("try-edge-1", "10.0.0.8", role="edge"))
    api.put(pod("try-edge-0", "10.0.1.9", namespace="b", number=1, role="edge"))
    api.put(pod("try-broker-0", "10.0.1.1", namespace="b", number=1))

    async def story(seen):
        home = {0: "10.0.0.10:7471", 98: "10.0.0.8:7471"}
        await seen.sees(home, {98: "10.0.0.8:7471", 199: "10.0.1.9:7471"})
        api.put(pod("try-edge-1", "10.0.2.9", namespace="c", number=2, role="edge"))
        await seen.sees(home, {98: "10.0.0.8:7471", 199: "10.0.1.9:7471", 298: "10.0.2.9:7471"})

    play(story, EDGE)


def test_labels_of_ones_own(api):
    api.put(pod("x-broker-5", "10.0.0.5", cluster="z", labels={"team": "red"}))
    play(lambda seen: seen.sees({5: "10.0.0.5:7471"}), ME._replace(labels="team=red"))


def test_a_pod_asks_by_its_own_credentials(tmp_path, monkeypatch):
    """Those of its service account, by TLS."""
    make_ca(tmp_path)
    make_certificate(tmp_path, "api", Identity("a", "broker"), ["127.0.0.1"])
    (tmp_path / "token").write_text(TOKEN)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "api.pem", tmp_path / "api.key")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.pem"))
    with ScriptedKubernetes(tmp_path, tls) as api:
        host, port = api.address.split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        api.put(SELF, pod("try-broker-1"))
        play(lambda seen: seen.sees({1: "10.0.0.1:7471"}))


# -- what may happen to the API --------------------------------------------------------------------------------------


def test_a_watch_that_expires_begins_anew_with_a_list(api):
    async def story(seen):
        await seen.sees({})
        await seen.until(api.watches)
        api.forget()
        await seen.until(lambda: len(api.lists()) == 2)
        api.put(pod("try-broker-1"))
        await seen.sees({1: "10.0.0.1:7471"})

    play(story)


def test_bookmarks_keep_a_quiet_watch_young(api, monkeypatch):
    """A watch that ends goes on from the last bookmark, and lists nothing anew."""
    watched = []
    changes = kubernetes.Api.changes

    def noted(self, namespace, selector, version, seconds):
        watched.append(version)
        return changes(self, namespace, selector, version, seconds)

    async def ended(self, namespace, selector, version, seconds):
        """After the first word."""
        async for one in noted(self, namespace, selector, version, seconds):
            yield one
            return

    monkeypatch.setattr(kubernetes.Api, "changes", ended)

    async def story(seen):
        await seen.until(lambda: watched)
        api.put(pod("elsewhere-1", namespace="z"), pod("elsewhere-2", namespace="z"))
        api.bookmark()
        await seen.until(lambda: len(watched) > 1)
        assert watched == ["1", "4"]
        assert len(api.lists()) == 1
        api.put(pod("try-broker-1"))
        await seen.sees({1: "10.0.0.1:7471"})

    play(story)


def test_a_watch_that_breaks_off(api):
    """What has changed in the meantime is not missed."""

    async def story(seen):
        for at in range(1, 4):
            await seen.until(lambda at=at: len(api.watches()) >= at)
            api.hang_up()
            api.put(pod(f"try-broker-{at}", f"10.0.0.{at}"))
            await seen.sees({one: f"10.0.0.{one}:7471" for one in range(1, at + 1)})

    play(story)


def test_the_last_view_stays_while_the_api_is_away(api):
    api.put(pod("try-broker-1"), pod("try-broker-2", "10.0.0.2"))

    async def story(seen):
        await seen.sees({1: "10.0.0.1:7471", 2: "10.0.0.2:7471"})
        await asyncio.to_thread(api.go)
        await seen.until(lambda: seen.kubernetes._away)
        assert seen.last == View({1: "10.0.0.1:7471", 2: "10.0.0.2:7471"}, {})
        assert seen.kubernetes.lacks() == ""
        await asyncio.to_thread(api.come)
        api.delete("try-broker-1")
        await seen.sees({2: "10.0.0.2:7471"})
        assert not seen.kubernetes._away

    play(story)


def test_an_api_that_is_away_is_not_waited_for_for_ever(api, monkeypatch):
    api.go()

    async def story(seen):
        assert seen.kubernetes.lacks() == "the Kubernetes API has not said yet who is there"
        await seen.until(lambda: seen.kubernetes._away)
        reason = seen.kubernetes.lacks()
        assert reason.startswith(
            "the Kubernetes API has not said yet who is there: the Kubernetes API does not answer: "
        )
        monkeypatch.setattr(kubernetes, "_WAIT", 0.0)
        assert seen.kubernetes.lacks() == ""
        await asyncio.to_thread(api.come)
        api.put(pod("try-broker-1"))
        await seen.sees({1: "10.0.0.1:7471"})

    play(story)


def test_what_was_missed_is_found_by_the_next_list(api, monkeypatch):
    """Whatever the watches say: here, nothing."""

    async def silent(*_):
        await asyncio.sleep(0)
        return
        yield

    monkeypatch.setattr(kubernetes.Api, "changes", silent)

    async def story(seen):
        await seen.sees({})
        api.put(pod("try-broker-1"))
        await seen.sees({1: "10.0.0.1:7471"})

    play(story, resync=0.01)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda api: api.forbidden.add("pods"),
            'refuses (403): pods is forbidden: User "x" cannot get resource "pods"',
        ),
        (lambda api: api.delete("try-broker-0"), "kubernetes_pod (POD_NAME) and kubernetes_namespace (POD_NAMESPACE)"),
    ],
    ids=["forbidden", "no such pod"],
)
def test_what_the_api_refuses_is_told(api, spoil, reason):
    spoil(api)

    async def story(seen):
        await seen.until(lambda: reason in seen.kubernetes.lacks())
        api.forbidden.clear()
        api.put(SELF)
        await seen.sees({})

    play(story)


def test_a_namespace_that_may_not_be_read_keeps_nobody_from_the_others(api, monkeypatch):
    api.put(pod("try-edge-0", "10.0.0.9", role="edge"), pod("try-edge-1", "10.0.0.8", role="edge"))
    api.put(pod("try-edge-0", "10.0.1.9", namespace="b", number=1, role="edge"))
    api.forbidden.add("c/pods")

    async def story(seen):
        await seen.sees({0: "10.0.0.10:7471", 98: "10.0.0.8:7471"}, {98: "10.0.0.8:7471", 199: "10.0.1.9:7471"})
        await seen.until(lambda: seen.kubernetes._away)
        assert list(seen.kubernetes._away) == ["edges in c"]
        monkeypatch.setattr(kubernetes, "_WAIT", 0.0)
        assert seen.kubernetes.lacks() == ""

    play(story, EDGE)


def test_what_nobody_thought_of_ends_nothing(api, monkeypatch):
    listed, failures = kubernetes.Api.pods, [RuntimeError("no token"), RuntimeError("no token")]

    async def pods(*asked):
        if failures:
            raise failures.pop()
        return await listed(*asked)

    monkeypatch.setattr(kubernetes.Api, "pods", pods)
    api.put(pod("try-broker-1"))

    async def story(seen):
        await seen.sees({1: "10.0.0.1:7471"})
        assert not failures

    play(story)


# -- what cannot be together -----------------------------------------------------------------------------------------


def test_two_pods_of_one_id(api):
    """Neither is called; whoever has that id itself is not ready."""
    api.put(pod("try-broker-1"), pod("old-broker-1", "10.0.0.2"), pod("try-broker-2", "10.0.0.3"))
    clash = (
        "broker {} is pod {} in namespace a and pod {} in namespace a: use fewer pods, more ids_per_cluster, or another"
    )

    async def story(seen):
        await seen.sees({2: "10.0.0.3:7471"})
        assert seen.kubernetes.lacks() == ""
        assert [one.rpartition(" cluster")[0] for one in seen.kubernetes._said] == [
            clash.format(1, "old-broker-1", "try-broker-1")
        ]
        api.put(pod("old-broker-0", "10.0.0.4"))
        await seen.until(lambda: seen.kubernetes.lacks())
        assert seen.kubernetes.lacks().startswith(clash.format(0, "old-broker-0", "try-broker-0"))
        api.delete("old-broker-0")
        api.delete("old-broker-1")
        await seen.sees({1: "10.0.0.1:7471", 2: "10.0.0.3:7471"})
        assert seen.kubernetes.lacks() == ""

    play(story)


def test_two_clusters_of_one_number(api):
    api.put(pod("try-edge-0", "10.0.0.9", role="edge"))
    api.put(pod("try-edge-4", "10.0.1.9", namespace="b", number=0, role="edge"))

    async def story(seen):
        await seen.until(lambda: seen.kubernetes.lacks() and not seen.kubernetes._unlisted)
        assert seen.kubernetes.lacks() == (
            "clusters have the same number, 0: 'a' in namespace a and 'b' in namespace b: give each a number of its own"
        )

    play(story, EDGE)


def test_labels_that_say_otherwise_than_the_configuration(api):
    async def story(seen):
        await seen.until(lambda: seen.kubernetes.lacks() and not seen.kubernetes._unlisted)
        assert seen.kubernetes.lacks() == (
            "broker 300 is pod try-broker-0 in namespace a, which by its labels is broker 0 of the cluster with number "
            "0: cluster_number and joins must fit the labels"
        )

    play(story, ME._replace(id=300, number=3))


# -- hints -----------------------------------------------------------------------------------------------------------


def test_hints_lead_to_those_who_are_not_there():
    members = Members(0)
    members.learn([Member(1, "old:1", "c:1", 5), Member(2, "old:2", "c:2", 5)])
    members.hinted = {0: "me:0", 1: "new:1", 2: "new:2", 3: "new:3"}
    assert members.take_hints({2}) == [1, 3]
    assert members == {1: Member(1, "new:1", "c:1", 5), 2: Member(2, "old:2", "c:2", 5), 3: Member(3, "new:3")}
    assert members.take_hints({2}) == []
    members.forget(3)
    assert 3 in members
    members.hinted = {}
    members.forget(3)
    assert 3 not in members
