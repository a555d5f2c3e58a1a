"""Faults under load, one test each: what is lost is near the fault, nothing comes twice, all becomes whole again; and
readiness, metrics and dashboard tell the truth meanwhile."""

import time
from collections import Counter

import pytest
from pods import aimed_at
from watching import Member, members

_AWAY = 30.0
"""Seconds that the API server, or a node, is away."""
_FRESH = 40.0
"""Seconds that figures of a job that keeps up are old, at most, on a busy machine."""
_MOSTLY = 0.9
"""Share of looks at the page: a stream may break off, and begins anew."""


def _own(cluster):
    if cluster.own is None:
        pytest.skip("takes a Kubernetes of our own")
    return cluster.own


@pytest.mark.parametrize(
    "member", [Member("a", "edge", 0), Member("b", "broker", 1)], ids=["an edge", "an internal broker"]
)
def test_a_pod_is_killed(cluster, stories, member):
    what = {"edge": "an edge pod killed", "broker": "an internal pod killed"}[member.role]
    with stories(what, may_lose=True) as fault:
        kill = aimed_at(cluster, member.cluster, member.pod)
        fault.begins()
        kill()
        # Else it would be restarted in its place: another one comes, with another address.
        force = ["--grace-period=0", "--force", "--wait=false"]
        cluster.kubectl("delete", "pod", "-n", member.cluster, member.pod, *force)
        fault.note(f"replaced; {fault.was_missed(member)}")


def test_pods_are_evicted(cluster, stories):
    """As a drain of a node does: one of a kind at a time, as the PodDisruptionBudgets say."""
    _own(cluster)
    brokers = "mercast/role in (broker,edge)"
    places = Counter(one["spec"]["nodeName"] for one in cluster.get("pods", "-A", "-l", brokers)["items"])
    ((node, many),) = places.most_common(1)
    with stories("pods evicted by the drain of a node") as fault:
        fault.begins(tell_users=False)
        which = [f"--pod-selector={brokers}", "--ignore-daemonsets", "--delete-emptydir-data"]
        try:
            said = cluster.kubectl("drain", node, *which, "--timeout=400s", within=420, all=True)
            fault.ends()
        finally:
            cluster.kubectl("uncordon", node)
        refused = said.count("would violate the pod's disruption budget")
        fault.note(f"{many} pods evicted, of a kind at most {fault.most_away()} away at a time")
        fault.note(f"{refused} evictions refused by budgets and tried again")
        assert fault.most_away() <= 1


def test_scaled_up_and_down(stories):
    numbers = stories.watch.numbers
    with stories("scaled up to three internal brokers a cluster, and down") as fault:
        began = fault.begins(tell_users=False)
        try:
            stories.release.upgrade({"brokers": {"replicas": 3}})
            fault.ends()
            fault.there_are(members(numbers, 3, 2))
            up = fault.whole()
        finally:
            stories.release.upgrade({"brokers": {"replicas": 2}})
        fault.ends()
        fault.there_are(members(numbers, 2, 2))
        down = fault.whole()
        fault.note(f"ten brokers after {up - began:.0f} s, eight again after {down - began:.0f} s")


def test_upgraded_from_the_commit_before(cluster, stories, older):
    """The image of it is what runs first."""
    now = stories.release.values["image"]
    repository, _, tag = older.rpartition(":")
    stories.release.upgrade({"image": {"repository": repository, "tag": tag}})
    with stories("upgraded from the image of the commit before") as fault:
        fault.begins(tell_users=False)
        stories.release.upgrade({"image": now})
        fault.ends()
        there = cluster.get("pods", "-A", "-l", "mercast/role in (broker,edge)")["items"]
        pods = [one for one in there if one["metadata"]["namespace"] in stories.watch.numbers]
        run = {one["spec"]["containers"][0]["image"] for one in pods}
        assert run == {f"{now['repository']}:{now['tag']}"}
        assert _one_after_the_other(pods)
        fault.note(f"all {len(pods)} replaced, of a kind one after the other, the next when the last was ready")


def _one_after_the_other(pods):
    """As Kubernetes tells it: of each kind, those with lower ordinals were made when the others were ready."""
    times = {}
    for one in pods:
        kind, _, ordinal = one["metadata"]["name"].rpartition("-")
        (ready,) = (each for each in one["status"]["conditions"] if each["type"] == "Ready")
        made = one["metadata"]["creationTimestamp"]
        times.setdefault((one["metadata"]["namespace"], kind), {})[int(ordinal)] = made, ready["lastTransitionTime"]
    return all(found[n][0] >= found[n + 1][1] for found in times.values() for n in range(len(found) - 1))


def test_certificates_are_rotated(stories):
    """By the job of an upgrade; brokers read them without a restart."""
    days = 500
    with stories("certificates rotated") as fault:
        fault.begins(tell_users=False)
        stories.release.upgrade({"security": {"tls": {"days": days, "extraHosts": ["mercast.example"]}}})

        def renewed(line):
            told = [said for said in line["brokers"].values() if said]
            return all(said["expiry"] > (days - 1) * 86400 for said in told)

        last = fault.until(renewed, "all brokers have the new certificates")
        fault.ends()
        fault.note(f"all brokers have the new ones after {last:.0f} s, without a restart")
        assert fault.most_away() == 0


def test_the_api_server_is_killed(cluster, stories):
    """Brokers keep their last view."""
    own = _own(cluster)
    with stories(f"the API server killed, back after {_AWAY:.0f} s") as fault:
        fault.begins(tell_users=False)
        own.control.api_killed()
        try:
            time.sleep(_AWAY)
            assert "refused" in cluster.refuses("get", "--raw", "/readyz")
        finally:
            own.control.api_begins()
            own.control.api_answers()
        fault.ends()
        assert fault.most_away() == 0
        up = fault.up_on_page()
        assert up > _MOSTLY
        fault.note(f"it was away; all brokers ready all the time, and up on the dashboard in {up:.0%} of looks")


def test_kafka_is_killed(cluster, stories):
    """Taps wait in the brokers meanwhile."""
    _own(cluster)
    with stories("Kafka killed and back") as fault:
        shipped = fault.sum("rows_shipped")
        kill = aimed_at(cluster, "a", "mercast-kafka-0")
        fault.begins(tell_users=False)
        kill()
        away = fault.until(lambda line: line["page"].get("taps") == "away", "the page says that it is away")
        again = fault.until(
            lambda line: line["page"].get("taps") == "there" and fault.sum("rows_shipped", line) > shipped + 100,
            "taps are shipped again",
            since=fault.began + away,
        )
        fault.ends()
        assert fault.most_away() == 0
        lost = fault.sum("rows_lost")
        fault.note(f"away on the dashboard after {away:.1f} s, there again after {again:.1f} s")
        fault.note(f"{lost:.0f} rows of taps lost; brokers ready all the time")


def _age(line):
    """Seconds, of the newest figures on the dashboard."""
    age = line["page"].get("figures")
    return float("inf") if age is None else age


def _restarts(cluster):
    """Of the job's container, by pod."""
    pods = cluster.get("pods", "-n", "a", "-l", "mercast/role=metrics")["items"]
    return {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods}


def test_the_metrics_job_is_killed(cluster, stories):
    """Its container begins again; that it goes on from its checkpoint, tests/streaming show."""
    _own(cluster)
    stories.release.upgrade({"metrics": {"enabled": True, "checkpoint": "/tmp/checkpoint"}})
    try:
        with stories("the metrics job killed and back") as fault:
            fault.until(lambda line: _age(line) < _FRESH, "figures come", since=time.time(), within=400)
            before = _restarts(cluster)
            (pod,) = before
            kill = aimed_at(cluster, "a", pod)
            fault.begins(tell_users=False)
            kill()
            while _restarts(cluster) == before:
                assert time.time() < fault.began + 300, "the container has not been started again"
                time.sleep(1)
            again = time.time()
            # Of windows that end later, only the job of now can tell.
            back = fault.until(lambda line: line["at"] - _age(line) > again, "figures come again", again, within=400)
            fault.ends()
            assert fault.most_away() == 0
            fault.note(f"started again after {again - fault.began:.0f} s, figures of later after {back:.0f} s")
            fault.note("brokers ready all the time")
    finally:
        stories.release.upgrade({"metrics": {"enabled": False}})


def test_the_link_of_a_node_is_cut(cluster, stories):
    """Brokers on either side go on among themselves."""
    own = _own(cluster)
    node = own.nodes[-1]
    there = cluster.get("pods", "-A", "-l", "mercast/role in (broker,edge)")["items"]
    cut_off = {(m["namespace"], m["name"]) for one in there for m in (one["metadata"],) if _is_on(one, node)}
    beyond = [one for one in stories.members if (one.cluster, one.pod) in cut_off]
    assert beyond, "no broker is on the node"
    with stories(f"the link of the second node cut, healed after {_AWAY:.0f} s", may_lose=True) as fault:
        fault.begins()
        node.cut()
        try:
            time.sleep(_AWAY)
        finally:
            node.heal()
        fault.ends()
        gone = fault.none_answers(beyond)
        fault.note(f"{len(beyond)} of {len(there)} brokers beyond it, all out of sight and dead on the dashboard")
        fault.note(f"so after {gone:.1f} s")


def _is_on(pod, node):
    return pod["spec"]["nodeName"] == node.name
