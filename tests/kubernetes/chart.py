"""A release of the chart, as an operator handles it: by Helm."""

from pathlib import Path
from typing import Any

from cluster import Cluster

CHART = Path(__file__).parents[2] / "charts/mercast"
_WITHIN = "8m"

Values = dict[str, Any]


class Release:
    def __init__(self, cluster: Cluster, namespace: str, values: Values) -> None:
        """Called mercast, in this namespace."""
        self.cluster, self.namespace, self.values = cluster, namespace, values

    def install(self) -> None:
        words = ["--install", "--wait", f"--timeout={_WITHIN}", "--values=-"]
        self._helm("upgrade", str(CHART), *words, given=self.values)

    def upgrade(self, changed: Values | None = None, wait: bool = True) -> None:
        """To what the values are with these."""
        self.values = _merged(self.values, changed or {})
        waiting = ["--wait", f"--timeout={_WITHIN}"] if wait else []
        self._helm("upgrade", str(CHART), *waiting, "--values=-", given=self.values)
        self.rolled_out()

    def rolled_out(self) -> None:
        """`helm --wait` does not look at all of a StatefulSet."""
        for namespace in self.namespaces:
            for one in self.cluster.get("statefulset", "-n", namespace)["items"]:
                name = one["metadata"]["name"]
                which = [f"statefulset/{name}", "-n", namespace, "--timeout=480s"]
                self.cluster.kubectl("rollout", "status", *which, within=500)

    def test(self) -> None:
        self._helm("test", "--timeout=3m")

    def uninstall(self) -> None:
        """Pods may still be leaving when Helm is done; that of the audits stays."""
        self._helm("uninstall", "--wait", "--ignore-not-found", "--timeout=3m")
        for namespace in self.namespaces:
            ours = ["-l", "app.kubernetes.io/instance=mercast,mercast/role!=audit", "--timeout=120s"]
            self.cluster.kubectl("wait", "--for=delete", "pod", "-n", namespace, *ours)

    def _helm(self, verb: str, *words: str, given: Any = None) -> str:
        return self.cluster.helm(verb, "mercast", *words, "-n", self.namespace, given=given, within=700)

    @property
    def namespaces(self) -> list[str]:
        return [one["name"] for one in self.values.get("clusters", [])] or [self.namespace]


def _merged(old: Values, new: Values) -> Values:
    found = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(key), dict)
        found[key] = _merged(old[key], value) if both else value
    return found
