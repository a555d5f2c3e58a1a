"""What pods say of the brokers in them: who they are, where they are reached, and which of them cannot be together.

Pod <set>-<ordinal> of a cluster with number n is broker n * ids_per_cluster + ordinal. Edges have a StatefulSet of
their own and count down from the top of the cluster's ids: so either set may grow.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mercast.overlay.split import BROKER

NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"
CLUSTER, CLUSTER_NUMBER, ROLE = "mercast/cluster", "mercast/cluster-number", "mercast/role"
"""Labels of pods."""

EDGE = "edge"

PEER = ("peer", "peers")
"""Names of the container's port that other brokers connect to."""

_ENDED = ("Succeeded", "Failed")


class MembershipError(ValueError):
    """A pod cannot be the broker that it should be, for the reason given."""


class Pod(NamedTuple):
    """A broker, as its pod says."""

    namespace: str
    name: str
    cluster: str
    number: int
    """Of the cluster."""
    edge: bool
    id: int
    address: str
    """Of its peer port; empty while the pod has none."""

    def __str__(self) -> str:
        return f"pod {self.name} in namespace {self.namespace}"


def ids_of(number: int, ids_per_cluster: int) -> range:
    """The ids of a cluster. MembershipError says what would be right."""
    ids = range(number * ids_per_cluster, (number + 1) * ids_per_cluster)
    if ids[-1] >= BROKER:
        most = BROKER // ids_per_cluster - 1
        raise MembershipError(
            f"cluster number {number} is too large: with {ids_per_cluster} ids per cluster (ids_per_cluster) "
            f"the largest is {most}"
        )
    return ids


def broker_id(pod: str, number: int, ids_per_cluster: int, edge: bool) -> int:
    """MembershipError says what would be right."""
    ids, ordinal = ids_of(number, ids_per_cluster), pod.rpartition("-")[2]
    if not (ordinal.isascii() and ordinal.isdigit()):
        raise MembershipError(f"pod {pod!r} has no number at its end: brokers are pods of a StatefulSet")
    if int(ordinal) >= len(ids):
        raise MembershipError(
            f"pod {pod!r} is one too many: a cluster has {len(ids)} ids (ids_per_cluster), "
            f"so the last pod may end in {len(ids) - 1}"
        )
    return ids[-1 - int(ordinal)] if edge else ids[int(ordinal)]


def is_there(pod: dict[str, Any]) -> bool:
    """Not when it ends: whoever is linked to it knows better, and nobody else should call."""
    ended = pod.get("status", {}).get("phase") in _ENDED
    return not ended and not pod["metadata"].get("deletionTimestamp")


def read_pod(pod: dict[str, Any], ids_per_cluster: int, peer_port: int) -> Pod:
    """`peer_port` is for those that name none. MembershipError if it is no broker."""
    about = pod["metadata"]
    name, namespace, labels = about["name"], about["namespace"], about.get("labels") or {}
    number = labels.get(CLUSTER_NUMBER, "")
    if not (number.isascii() and number.isdigit()):
        where = f"pod {name!r} in namespace {namespace!r}"
        raise MembershipError(f"{where}: label {CLUSTER_NUMBER} is {number!r}, expected a number")
    edge = labels.get(ROLE) == EDGE
    id = broker_id(name, int(number), ids_per_cluster, edge)
    return Pod(namespace, name, labels.get(CLUSTER, ""), int(number), edge, id, _address(pod, peer_port))


def _address(pod: dict[str, Any], port: int) -> str:
    ip = pod.get("status", {}).get("podIP", "")
    for container in pod.get("spec", {}).get("containers") or ():
        for one in container.get("ports") or ():
            if one.get("name") in PEER:
                port = one["containerPort"]
    return ip and (f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}")


def same_id(pods: Iterable[Pod]) -> Iterator[tuple[int, str]]:
    """Ids that several pods have, and what is wrong."""
    by_id: dict[int, set[Pod]] = defaultdict(set)
    for pod in pods:
        by_id[pod.id].add(pod)
    for id, several in sorted(by_id.items()):
        if len({one[:2] for one in several}) > 1:
            both = " and ".join(sorted(str(one) for one in several))
            yield id, f"broker {id} is {both}: use fewer pods, more ids_per_cluster, or another cluster number"


def same_number(pods: Iterable[Pod]) -> Iterator[tuple[int, str]]:
    """Numbers that several clusters have, and what is wrong."""
    by_number: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for pod in pods:
        by_number[pod.number].add((pod.namespace, pod.cluster))
    for number, several in sorted(by_number.items()):
        if len(several) > 1:
            both = " and ".join(f"{cluster!r} in namespace {namespace}" for namespace, cluster in sorted(several))
            yield number, f"clusters have the same number, {number}: {both}: give each a number of its own"
