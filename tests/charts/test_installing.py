"""What the chart looks for in the cluster that it is installed into, and what it says at the end."""

import os

import pytest
from charts.pretended_api import pretended
from charts.rendering import CHART, helm

CLUSTERS = "clusters: [{name: a, number: 1}, {name: b, number: 2}]"


def install(values, there, home, *flags):
    environment = os.environ | {"KUBECONFIG": str(home / "none"), "HELM_CACHE_HOME": str(home)}
    with pretended(there) as address:
        return helm(
            "install", "mercast", str(CHART), "-n", "a", "--dry-run=server", "--disable-openapi-validation",
            "--kube-apiserver", address, "-f", "-", *flags, given=values, env=environment,
        )  # fmt: skip


def running(strategy):
    """Brokers in namespace a, as the chart made them."""
    labels = {"mercast/strategy": strategy}
    found = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "mercast-broker", "labels": labels}}
    return {"/apis/apps/v1/namespaces/a/statefulsets/mercast-broker": found}


def namespaces(*names):
    items = [{"metadata": {"name": name}} for name in names]
    return {"/api/v1/namespaces": {"kind": "NamespaceList", "apiVersion": "v1", "items": items}}


def test_a_change_of_strategy_is_refused(tmp_path):
    done = install("{strategy: flooding, edges: {replicas: 0}}", running("merc"), tmp_path)
    assert done.returncode != 0
    told = (
        "strategy: brokers in namespace a run merc, and those with another refuse each other:"
        " it cannot become flooding in place; docs/operations.md#strategy-change says how to move to a second release"
    )
    assert told in done.stderr


@pytest.mark.parametrize("there", [{}, running("merc")], ids=["new", "upgraded"])
def test_the_same_strategy_is_not(there, tmp_path):
    assert "it cannot become" not in install("{}", there, tmp_path).stderr


def test_a_namespace_that_is_not_there_is_told(tmp_path):
    done = install(CLUSTERS, namespaces("kube-system", "a"), tmp_path)
    assert done.returncode != 0
    assert "clusters: there is no namespace b; make it first: kubectl create namespace b" in done.stderr


def test_it_says_at_the_end_what_to_do(tmp_path):
    done = install(CLUSTERS, namespaces("a", "b"), tmp_path)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert "cluster b (number 2) in namespace b: 3 brokers, 2 edges; clients at mercasts://mercast.b.svc:7470" in notes
    assert "helm test mercast --namespace a" in notes
    assert "port-forward deployment/mercast-dashboard 7480" in notes
    assert "WARNING" not in notes


def test_it_warns_of_what_is_open_to_all(tmp_path):
    done = install("security: {tls: {mode: 'off'}}", {}, tmp_path)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert "WARNING: without TLS and tokens, whoever reaches the brokers may do everything." in notes
    assert "backbone.seeds={mercast-edges.a.svc:7471}" in notes
