"""What a broker in a pod of Kubernetes need not be told: who it is and where it is reached follow from the pod.

The pod's name, namespace and address come by the downward API, as variables of the environment.
"""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from mercast.broker.addresses import Address, parse_address
from mercast.membership.kubernetes import Me
from mercast.membership.kubernetes_api import unreachable
from mercast.membership.pods import MembershipError, broker_id, ids_of

STATIC, KUBERNETES = "static", "kubernetes"
"""Kinds of membership."""

POD_NAME, POD_NAMESPACE, POD_IP = "POD_NAME", "POD_NAMESPACE", "POD_IP"
"""Variables of the environment."""

_ADVERTISED = {"advertise": "listen", "peer_advertise": "peer_listen"}


class InPod(Protocol):
    """The keys that matter here."""

    id: int
    membership: Literal["static", "kubernetes"]
    cluster_number: int
    ids_per_cluster: int
    kubernetes_namespace: str
    kubernetes_pod: str
    kubernetes_labels: str
    backbone_namespaces: list[str]
    joins: list[str]
    peer_listen: str


def from_pod(given: Mapping[str, Any], listen: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """What else is known of a broker in a pod, given what it was told; `listen` is where it does by default.

    The id is only a place for one: it is worked out from what has been checked."""
    if given.get("membership") != KUBERNETES:
        return {}
    found: dict[str, Any] = {"id": 0, "kubernetes_pod": environment.get(POD_NAME, "")}
    found["kubernetes_namespace"] = environment.get(POD_NAMESPACE, "")
    for key, where in _ADVERTISED.items():
        try:
            port = parse_address(str(given.get(where) or listen[where]), parse_address(listen[where]).port).port
        except ValueError:  # told by those who check it
            continue
        if POD_IP in environment and port:
            found[key] = str(Address(environment[POD_IP], port))
    return {key: value for key, value in found.items() if value != "" and given.get(key) in (None, "")}


def id_in_pod(config: InPod) -> int:
    """MembershipError says what would be right."""
    return broker_id(config.kubernetes_pod, config.cluster_number, config.ids_per_cluster, bool(config.joins))


def me(config: InPod) -> Me:
    """What membership is told of this broker."""
    return Me(
        id=config.id,
        namespace=config.kubernetes_namespace,
        pod=config.kubernetes_pod,
        number=config.cluster_number,
        edge=bool(config.joins),
        ids_per_cluster=config.ids_per_cluster,
        peer_port=parse_address(config.peer_listen).port,
        labels=config.kubernetes_labels,
        backbone=tuple(config.backbone_namespaces),
    )


def unfit_for_kubernetes(config: InPod, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Mistakes: the key, and what is wrong with it. `given` is what it was told, its own id if at all."""
    if config.membership != KUBERNETES:
        for key in ("kubernetes_labels", "backbone_namespaces"):
            if getattr(config, key):
                yield key, "only the Kubernetes API can tell: say membership = 'kubernetes', too"
        return
    if find_spec("kubernetes") is None:
        yield "membership", "the library of the Kubernetes API is not installed: pip install 'mercast[kubernetes]'"
    if why := unreachable(os.environ):
        yield "membership", f"{why}: brokers elsewhere are found by members or seeds"
    if config.backbone_namespaces and not config.joins:
        yield "backbone_namespaces", "only an edge broker looks for other clusters: say which it joins, too"
    for key, variable in (("kubernetes_pod", POD_NAME), ("kubernetes_namespace", POD_NAMESPACE)):
        if not getattr(config, key):
            yield key, f"it is not given, nor is {variable} in the environment (by the downward API)"
    if config.kubernetes_pod:
        yield from _unlike(config, given)


def _unlike(config: InPod, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    key = "cluster_number"
    try:
        ids_of(config.cluster_number, config.ids_per_cluster)
        key = "kubernetes_pod"
        right = id_in_pod(config)
    except MembershipError as error:
        yield key, str(error)
        return
    if given.get("id") is not None and config.id != right:
        yield "id", f"pod {config.kubernetes_pod} is broker {right}: leave it out, others work it out from the pod"
