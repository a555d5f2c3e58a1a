"""Spark on Kubernetes: the metrics job with executors as pods of their own."""

import time

import pytest
from load import Load

_CLAIM = "checkpoint"
_WITHIN = 600


def _shared_volume(cluster, folder):
    """That driver and executors reach; all nodes have the same disk here."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": ""}
    claim = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": _CLAIM}
    about = {"name": _CLAIM}
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": about,
         "spec": spec | {"hostPath": {"path": str(folder)}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about | {"namespace": "a"},
         "spec": claim | {"resources": {"requests": {"storage": "1Gi"}}}},
    )  # fmt: skip


def _executors(cluster):
    found = cluster.get("pods", "-n", "a", "-l", "mercast/role=executor")["items"]
    return [one["metadata"]["name"] for one in found if one["status"]["phase"] == "Running"]


def test_executors_are_pods(cluster, stories, images, table):
    """They make the figures of live metrics, and go with the job."""
    if cluster.own is None:
        pytest.skip("takes a Kubernetes of our own, for the volume")
    _shared_volume(cluster, cluster.own.machine.folder / _CLAIM)
    began = time.time()
    load = Load(stories.release, images.mercast, 1800, stories.node)
    load.start()
    stories.release.upgrade(
        {
            "metrics": {
                "enabled": True,
                "checkpoint": "/checkpoint/metrics",
                "persistence": {"existingClaim": _CLAIM},
                "executors": {"enabled": True, "instances": 2},
                "conf": {"spark.kubernetes.executor.request.cores": "200m"},
            }
        }
    )
    until = time.monotonic() + _WITHIN
    while len(there := _executors(cluster)) < 2:
        assert time.monotonic() < until, "no executors"
        time.sleep(1)
    ran = time.time()

    def made_by_them(line):
        age = line["page"].get("figures")
        return age is not None and line["at"] - age > ran

    fresh = stories.watch.until(made_by_them, ran, "figures of later are on the dashboard", _WITHIN)
    load.stop()
    load.result()
    stories.release.upgrade({"metrics": {"enabled": False, "executors": {"enabled": False}}})
    until = time.monotonic() + 120
    while _executors(cluster):
        assert time.monotonic() < until, "executors outlive their job"
        time.sleep(1)
    cluster.kubectl("delete", "pvc", "-n", "a", _CLAIM)
    cluster.kubectl("delete", "pv", _CLAIM)
    seen = f"{len(there)} executor pods made figures, on the dashboard {fresh - began:.0f} s after `helm upgrade` began"
    seen += "; they went with the job"
    table.tell("the metrics job with executors as pods", seen)
