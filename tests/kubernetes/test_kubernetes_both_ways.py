"""The chart as it is installed, in both ways, and tested by Helm."""

import time

from chart import Release


def _copied(cluster, name, there):
    """A Secret of `orders`, as docs/operations.md copies it."""
    found = cluster.get("secret", "-n", "orders", name)
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": there}, "data": found["data"]}
    )


def _left(cluster, namespace):
    kinds = "all,configmap,secret,pvc,serviceaccount,role,rolebinding,networkpolicy,pdb"
    found = {f"{one['kind']}/{one['metadata']['name']}" for one in cluster.get(kinds, "-n", namespace)["items"]}
    return found - {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}


def test_a_release_per_namespace(cluster, namespaces, values, table):
    """Joined by a seed, with one CA: an event published in one is received in the other; what is left afterwards."""
    began = time.monotonic()
    orders = Release(cluster, "orders", values | {"networkPolicy": {"clientNamespaces": ["billing"]}})
    orders.install()
    for secret in ("mercast-ca", "mercast-tokens"):
        _copied(cluster, secret, "billing")
    joined = {
        "cluster": {"number": 2},
        "backbone": {"seeds": ["mercast-edges.orders.svc:7471"]},
        "test": {"receiveAt": "mercasts://mercast.orders.svc:7470"},
    }
    billing = Release(cluster, "billing", values | joined)
    billing.install()
    installed = time.monotonic() - began
    billing.test()
    tested = time.monotonic() - began - installed
    for release in (billing, orders):
        release.uninstall()
        ours = _left(cluster, release.namespace)
        assert {one.partition("/")[0] for one in ours} == {"Secret"}, ours
    seen = f"installed in {installed:.0f} s; `helm test` from one to the other passed, in {tested:.0f} s"
    seen += "; uninstalled: only the job's Secrets are left"
    table.tell("a release per namespace, joined by a seed", seen)


def test_one_release_with_several_clusters(release, table):
    began = time.monotonic()
    release.test()
    seen = f"`helm test` passed in {time.monotonic() - began:.0f} s: what is published in `a` is received in `b`"
    table.tell("one release with two clusters", seen)
