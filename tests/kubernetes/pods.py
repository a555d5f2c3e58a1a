"""Pods of the run's own, beside those of the chart: they use mercast's images, and are as restricted as the chart's."""

import time
from collections.abc import Callable
from typing import Any

from cluster import Cluster, Failed

CLIENT = {"mercast/client": "true"}
CA = {"name": "MERCAST_CA", "value": "/etc/mercast/tls/ca.crt"}
TOKEN = {"name": "MERCAST_TOKEN", "valueFrom": {"secretKeyRef": {"name": "mercast-tokens", "key": "token"}}}
_POLL = 0.5


def pod(
    namespace: str,
    name: str,
    image: str,
    *,
    args: list[str] | None = None,
    command: list[str] | None = None,
    env: list[dict[str, Any]] | None = None,
    labels: dict[str, str] | None = None,
    ca: str = "",
    files: str = "",
    node: str = "",
) -> dict[str, Any]:
    """With the CA of the Secret `ca` and the files of the ConfigMap `files`, if they are named; it ends once."""
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]
    if ca:
        volumes.append({"name": "tls", "secret": {"secretName": ca, "items": [{"key": "ca.crt", "path": "ca.crt"}]}})
        mounts.append({"name": "tls", "mountPath": "/etc/mercast/tls"})
    if files:
        volumes.append({"name": "files", "configMap": {"name": files}})
        mounts.append({"name": "files", "mountPath": "/etc/mercast/files"})
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "workingDir": "/tmp",
        "env": [{"name": "HOME", "value": "/tmp"}, *(env or [])],
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    container |= {"args": args} if args else {}
    container |= {"command": command} if command else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"mercast/of-the-tests": "true"} | (labels or {})},
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
            "containers": [container],
            "volumes": volumes,
        },
    }


def run(cluster: Cluster, made: dict[str, Any]) -> None:
    """Another one of that name, from an earlier test, goes first."""
    namespace, name = made["metadata"]["namespace"], made["metadata"]["name"]
    cluster.kubectl("delete", "pod", "-n", namespace, name, "--ignore-not-found", "--wait=true")
    cluster.apply(made)


def ended(cluster: Cluster, namespace: str, name: str, within: float) -> tuple[int, str]:
    """Its exit status and all that it said. The API server may be away meanwhile."""
    until = time.monotonic() + within
    while True:
        try:
            found = cluster.get("pod", "-n", namespace, name)["status"]
        except Failed:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL)
            continue
        states = [one["state"] for one in found.get("containerStatuses", [])]
        if found.get("phase") in ("Succeeded", "Failed") and states and "terminated" in states[0]:
            return states[0]["terminated"]["exitCode"], cluster.kubectl("logs", "-n", namespace, name)
        assert time.monotonic() < until, f"{namespace}/{name} has not ended within {within:.0f} s: {found}"
        time.sleep(_POLL)


def aimed_at(cluster: Cluster, namespace: str, name: str) -> Callable[[], object]:
    """Kills the first process of a pod's container, by SIGKILL: it cannot say goodbye. Where the cluster is not ours
    that cannot be done from outside of pods: what is there is then left to be deleted."""
    if cluster.own is None:
        return lambda: None
    found = cluster.get("pod", "-n", namespace, name)
    container = found["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    (node,) = (one for one in cluster.own.nodes if one.name == found["spec"]["nodeName"])
    return lambda: node.ctr("tasks", "kill", "--signal", "SIGKILL", container)
