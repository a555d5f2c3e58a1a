"""The configuration of a broker in a pod: what follows from the pod, and what is said of mistakes."""

import os

import pytest

from mercast.broker.config import ConfigError, load
from mercast.broker.config_kubernetes import me
from mercast.membership.kubernetes import Me

POD = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "POD_NAME": "mercast-broker-3",
    "POD_NAMESPACE": "trading",
    "POD_IP": "10.1.2.3",
}
GIVEN = {"membership": "kubernetes", "cluster": "a", "cluster_number": 2, "insecure": True}


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in os.environ:
        if name.startswith(("MERCAST_", "KUBE", "POD_")):
            monkeypatch.delenv(name)
    for name, value in POD.items():
        monkeypatch.setenv(name, value)


def mistakes(**flags):
    with pytest.raises(ConfigError) as raised:
        load(None, GIVEN | flags)
    return [line.strip() for line in str(raised.value).splitlines()[1:]]


def test_who_and_where_a_broker_is_follows_from_its_pod():
    config = load(None, GIVEN | {"listen": "0.0.0.0:7470", "peer_listen": "0.0.0.0:9000"})
    assert (config.id, config.advertise, config.peer_advertise) == (203, "10.1.2.3:7470", "10.1.2.3:9000")
    assert me(config) == Me(203, "trading", "mercast-broker-3", 2, False, 100, 9000)


def test_an_edge_counts_from_the_top(monkeypatch):
    monkeypatch.setenv("POD_NAME", "mercast-edge-1")
    monkeypatch.setenv("POD_IP", "fd00::7")
    more = {"strategy": "merc", "joins": "backbone=1000", "backbone_namespaces": "b,c", "ids_per_cluster": 10}
    config = load(None, GIVEN | more | {"kubernetes_labels": "app=x,y=z"})
    assert (config.id, config.peer_advertise) == (28, "[fd00::7]:7471")
    assert me(config) == Me(28, "trading", "mercast-edge-1", 2, True, 10, 7471, "app=x,y=z", ("b", "c"))


def test_what_is_given_wins(monkeypatch):
    monkeypatch.setenv("MERCAST_ADVERTISE", "example.org:7470")
    config = load(None, GIVEN | {"kubernetes_pod": "m-broker-9", "kubernetes_namespace": "n", "id": 209})
    assert (config.id, config.advertise, config.peer_advertise) == (209, "example.org:7470", "10.1.2.3:7471")
    assert (config.kubernetes_pod, config.kubernetes_namespace) == ("m-broker-9", "n")


def test_outside_of_kubernetes(monkeypatch):
    for name in POD:
        monkeypatch.delenv(name)
    assert mistakes() == [
        "membership (--membership): this is no pod of Kubernetes: neither KUBERNETES_SERVICE_HOST nor KUBECONFIG is "
        "set: brokers elsewhere are found by members or seeds",
        "kubernetes_pod (by default): it is not given, nor is POD_NAME in the environment (by the downward API)",
        "kubernetes_namespace (by default): it is not given, nor is POD_NAMESPACE in the environment "
        "(by the downward API)",
    ]


@pytest.mark.parametrize(
    ("flags", "mistake"),
    [
        (
            {"cluster_number": 400},
            "cluster_number (--cluster-number): cluster number 400 is too large: with 100 ids per cluster "
            "(ids_per_cluster) the largest is 326",
        ),
        (
            {"ids_per_cluster": 3},
            "kubernetes_pod (by the pod): pod 'mercast-broker-3' is one too many: a cluster has 3 ids "
            "(ids_per_cluster), so the last pod may end in 2",
        ),
        (
            {"kubernetes_pod": "mercast"},
            "kubernetes_pod (--kubernetes-pod): pod 'mercast' has no number at its end: brokers are pods of a "
            "StatefulSet",
        ),
        (
            {"id": 7},
            "id (--id): pod mercast-broker-3 is broker 203: leave it out, others work it out from the pod",
        ),
        (
            {"backbone_namespaces": "b"},
            "backbone_namespaces (--backbone-namespaces): only an edge broker looks for other clusters: say which it "
            "joins, too",
        ),
        (
            {"membership": "static", "id": 1, "backbone_namespaces": "b"},
            "backbone_namespaces (--backbone-namespaces): only the Kubernetes API can tell: say membership = "
            "'kubernetes', too",
        ),
        (
            {"membership": "magic", "id": 1},
            "membership = 'magic' (--membership): expected 'static' or 'kubernetes'",
        ),
        (
            {"listen": "7470"},
            "listen = '7470' (--listen): '7470' is not an address: '7470' is no host; write host:port, such as "
            "127.0.0.1:7470",
        ),
    ],
    ids=lambda one: ",".join(one) if isinstance(one, dict) else "",
)
def test_mistakes_are_told(flags, mistake):
    assert mistakes(**flags) == [mistake]


def test_an_id_is_needed_elsewhere():
    assert mistakes(membership="static") == ["id is not given: use --id, MERCAST_ID or id in the file"]


def test_without_the_library(monkeypatch):
    monkeypatch.setattr("mercast.broker.config_kubernetes.find_spec", lambda _: None)
    assert mistakes() == [
        "membership (--membership): the library of the Kubernetes API is not installed: "
        "pip install 'mercast[kubernetes]'"
    ]
