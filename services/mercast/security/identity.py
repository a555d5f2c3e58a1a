"""Who a certificate says its holder is: a URI among its names, mercast://cluster/<cluster>/<role>."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import quote, unquote

Role: TypeAlias = Literal["broker", "edge", "client"]
ROLES: tuple[Role, ...] = get_args(Role)
PEERS = ("broker", "edge")
"""Roles that speak with brokers as one of them."""

_PREFIX = "mercast://cluster/"


class Identity(NamedTuple):
    cluster: str
    role: str

    def __str__(self) -> str:
        return f"{_PREFIX}{quote(self.cluster, safe='')}/{self.role}"


def identities(certificate: Mapping[str, Any] | None) -> list[Identity]:
    """Of a certificate as Python's ssl tells it."""
    names = (certificate or {}).get("subjectAltName", ())
    return from_uris(name for kind, name in names if kind == "URI")


def from_uris(uris: Any) -> list[Identity]:
    found = []
    for uri in uris:
        cluster, _, role = uri.removeprefix(_PREFIX).partition("/")
        if uri.startswith(_PREFIX) and cluster and role in ROLES:
            found.append(Identity(unquote(cluster), role))
    return found


def against_peer(found: list[Identity], cluster: str) -> str:
    """Why not to take the holder of a certificate for a broker of this cluster; empty if it proves to be one."""
    if any(one.cluster == cluster and one.role in PEERS for one in found):
        return ""
    right = " or ".join(str(Identity(cluster, role)) for role in PEERS)
    told = ", ".join(map(str, found)) or "none of the kind"
    return f"the certificate names {told}, expected {right} among its URIs"
