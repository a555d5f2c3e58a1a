"""Real brokers that find each other by a scripted Kubernetes API, and by nothing else."""

import os
from contextlib import ExitStack
from urllib.request import urlopen

import pytest
from live import PATIENCE, Lone, agree, ask, linked, reachable, until
from scripted_kubernetes import ScriptedKubernetes, pod

QUICK = ("--heart-beat", "0.2")


@pytest.fixture
def api(tmp_path):
    with ScriptedKubernetes(tmp_path) as scripted:
        yield scripted


class InPod(Lone):
    """A broker as its pod, which the API tells of before the broker runs; its id is worked out, here and there."""

    def __init__(self, api, folder, name, id, *flags, namespace="a", number=0, role="broker"):
        environment = {
            "KUBECONFIG": str(api.kubeconfig),
            "POD_NAME": name,
            "POD_NAMESPACE": namespace,
            "POD_IP": "127.0.0.1",
        }
        log = folder / f"{namespace}-{name}-{len(list(folder.iterdir()))}.log"
        flags = ("--membership", "kubernetes", "--cluster", namespace, "--cluster-number", number, *QUICK, *flags)
        super().__init__(log, id, *flags, env=os.environ | environment)
        self.flags = self.flags[2:]
        port = int(self.peer.partition(":")[2])
        self.pod = pod(name, "127.0.0.1", namespace=namespace, number=number, role=role, port=port)
        api.put(self.pod)


@pytest.fixture
def run(api, tmp_path):
    with ExitStack() as stack:

        def start(*who, **how):
            return stack.enter_context(InPod(api, tmp_path, *who, **how))

        yield start


def is_alive(broker):
    with urlopen(f"http://{broker.admin}/livez", timeout=PATIENCE) as answer:
        return answer.status == 200


def ready(*brokers):
    for one in brokers:
        until(one.is_ready, lambda one=one: f"{one.id}: {ask(one, 'readyz')}")


@pytest.mark.slow
def test_brokers_find_each_other_by_the_api(api, run):
    """And stay together when the API is away, when it forgets one of them, and when a pod is replaced."""
    first, second = (run(f"try-broker-{at}", at) for at in range(2))
    agree([first, second])
    third = run("try-broker-2", 2)
    agree([first, second, third])
    ready(first, second, third)
    assert ask(third, "overlay")["broker"]["id"] == 2

    api.go()
    first.says("the Kubernetes API is of no use now")
    assert all(one.is_ready() and is_alive(one) for one in (first, second, third))
    api.come()
    first.says("the Kubernetes API answers again")
    api.delete("try-broker-1")

    third.__exit__()
    api.delete("try-broker-2")
    third = run("try-broker-2", 2)
    agree([first, second, third])  # with the one that the API does not know
    ready(third)
    members = {one["id"]: one["peer_address"] for one in ask(first, "overlay")["members"]}
    assert members == {1: second.peer, 2: third.peer}


def test_edges_find_those_of_other_namespaces(api, run):
    merc = ("--strategy", "merc", "--joins", "backbone=1000")
    one = run("try-edge-0", 99, *merc, "--backbone-namespaces", "b", role="edge")
    other = run("try-edge-0", 199, *merc, "--backbone-namespaces", "a", namespace="b", number=1, role="edge")

    def backbone(broker):
        return {tuple(link["between"]) for link in ask(broker, "overlay")["others"][0]["overlay"]["links"]}

    until(lambda: backbone(one) == backbone(other) == {(99, 199)}, lambda: (one.told(), other.told()))
    ready(one, other)
    assert reachable(one) == {99}
    assert linked(one) == set()


def test_a_broker_whose_id_another_pod_has_is_not_ready(api, run):
    api.put(pod("old-broker-0", "127.0.0.1", port=1))
    broker = run("try-broker-0", 0)
    clash = "broker 0 is pod old-broker-0 in namespace a and pod try-broker-0 in namespace a"
    broker.says("pods that do not go together", clash)
    assert clash in ask(broker, "readyz")["reason"]
    assert is_alive(broker)
    api.delete("old-broker-0")
    ready(broker)


def test_a_broker_is_ready_alone_though_nobody_answers(api, run):
    """Neither the API nor its seed: they may wait for each other."""
    api.forbidden.add("pods")
    broker = run("try-broker-0", 0, "--seeds", "127.0.0.1:1")
    until(lambda: "forbidden" in ask(broker, "readyz").get("reason", "") or broker.is_ready(), broker.told)
    ready(broker)
    broker.says("the Kubernetes API is of no use now", "pods is forbidden")
