"""The last word."""

import time

from test_kubernetes_both_ways import _left


def test_uninstalled(cluster, stories, table):
    """The job's Secrets are left, and nothing else."""
    cluster.kubectl("delete", "pod", "-n", "a", "load", "auditor", "--ignore-not-found")
    cluster.kubectl("delete", "configmap", "-n", "a", "auditor")
    began = time.monotonic()
    stories.release.uninstall()
    left = {name: _left(cluster, name) for name in stories.release.namespaces}
    assert all(one.startswith("Secret/mercast-") for found in left.values() for one in found), left
    kept = ", ".join(sorted({one.partition("/")[2] for found in left.values() for one in found}))
    table.tell("uninstalled", f"after {time.monotonic() - began:.0f} s only Secrets of the job are left: {kept}")
