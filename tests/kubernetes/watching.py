"""What the watcher (inside/watcher.py) has seen, and whether it was the truth."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cluster import Cluster, Failed
from pods import CA, pod, run

NAMESPACE = "monitoring"
_SCRIPT = Path(__file__).parent / "inside/watcher.py"
_WITHIN, _POLL = 180.0, 1.0
_UP = "up"


class Member(NamedTuple):
    cluster: str
    role: str
    ordinal: int

    @property
    def pod(self) -> str:
        return f"mercast-{self.role}-{self.ordinal}"

    @property
    def name(self) -> str:
        return f"{self.cluster}/{self.pod}"

    def id(self, numbers: dict[str, int]) -> str:
        number = numbers[self.cluster]
        return str(number * 100 + self.ordinal if self.role == "broker" else number * 100 + 99 - self.ordinal)


class Watch:
    def __init__(
        self, cluster: Cluster, image: str, release: str, numbers: dict[str, int], most: int, node: str = ""
    ) -> None:
        """Of the release in this namespace, of clusters by their numbers, with at most so many of a kind in each."""
        self.cluster, self.numbers = cluster, numbers
        self._image, self._release, self._node = image, release, node
        self._possible = [
            Member(name, role, ordinal) for name in numbers for role in ("broker", "edge") for ordinal in range(most)
        ]

    def start(self) -> None:
        """It needs what a monitoring is given: the CA and the token of admin ports."""
        secrets = {name: self.cluster.get("secret", "-n", self._release, name)["data"] for name in
                   ("mercast-tokens", "mercast-broker-tls")}  # fmt: skip
        known = {
            "admin-token": secrets["mercast-tokens"]["admin-token"],
            "ca.crt": secrets["mercast-broker-tls"]["ca.crt"],
        }
        about = {"name": "watcher", "namespace": NAMESPACE}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": known},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"watcher.py": _SCRIPT.read_text()}},
        )
        hosts = [f"{one.name}={one.pod}.mercast-peers.{one.cluster}.svc" for one in self._possible]
        token = {"secretKeyRef": {"name": "watcher", "key": "admin-token"}}
        env = [
            CA,
            {"name": "BROKERS", "value": ",".join(hosts)},
            {"name": "PAGE", "value": f"http://mercast-dashboard.{self._release}.svc:7480"},
            {"name": "TOKEN", "valueFrom": token},
        ]
        command = ["python3", "-u", "/etc/mercast/files/watcher.py"]
        about_it = {"env": env, "ca": "watcher", "files": "watcher", "node": self._node}
        made = pod(NAMESPACE, "watcher", self._image, command=command, **about_it)
        run(self.cluster, made)
        self.cluster.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "pod/watcher", "--timeout=120s")

    def seen(self, since: float) -> list[dict[str, Any]]:
        """Line by line. The log is kept by the node."""
        when = datetime.fromtimestamp(since, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = self.cluster.kubectl("logs", "-n", NAMESPACE, "watcher", f"--since-time={when}")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [line for line in lines if line["at"] >= since]

    def until(self, holds: Callable[[dict[str, Any]], bool], since: float, what: str, within: float = _WITHIN) -> float:
        """When it first was so after `since`."""
        until = time.monotonic() + within
        last: dict[str, Any] = {}
        while True:
            try:
                for line in self.seen(since):
                    if holds(line):
                        return line["at"]
                    last = line
            except Failed:  # the API server may be away
                pass
            assert time.monotonic() < until, f"not within {within:.0f} s: {what}; last seen: {json.dumps(last)}"
            time.sleep(_POLL)

    def whole(self, line: dict[str, Any], members: list[Member]) -> bool:
        """All of these and nobody else are ready, reach each other, and are up on the page."""
        told = {name: said for name, said in line["brokers"].items() if said is not None}
        names = {one.name for one in members}
        page = {id for id, state in line["page"].get("brokers", {}).items() if state == _UP}
        return (
            told.keys() == names
            and all(said["readyz"] and said["ready"] for said in told.values())
            and all(said["reachable"] == self._expected(one, members) for one, said in self._each(told, members))
            and page == {one.id(self.numbers) for one in members}
        )

    def _each(self, told: dict[str, Any], members: list[Member]) -> Iterator[tuple[Member, dict[str, Any]]]:
        return ((one, told[one.name]) for one in members)

    @staticmethod
    def _expected(one: Member, members: list[Member]) -> int:
        """How many a member reaches, in all of its clusters; an edge is in two."""
        own = sum(other.cluster == one.cluster for other in members)
        return own + (sum(other.role == "edge" for other in members) if one.role == "edge" else 0)

    def shown(self, line: dict[str, Any], member: Member) -> str | None:
        """What the page says of a member."""
        state: str | None = line["page"].get("brokers", {}).get(member.id(self.numbers))
        return state


def members(numbers: dict[str, int], brokers: int, edges: int) -> list[Member]:
    return [
        Member(name, role, ordinal)
        for name in numbers
        for role, many in (("broker", brokers), ("edge", edges))
        for ordinal in range(many)
    ]
