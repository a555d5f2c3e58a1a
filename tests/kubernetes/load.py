"""Locust in a pod, and the audit of what it caused in another."""

import json
from pathlib import Path
from typing import Any

from chart import Release
from pods import CA, CLIENT, TOKEN, ended, pod, run

RATE, PUBLISHERS, SUBSCRIBERS, FILTERS = 100, 4, 8, 5
_NAME, _AUDITOR, _TLS = "load", "auditor", "mercast-broker-tls"
_SCRIPT = Path(__file__).parent / "inside/auditor.py"
_ASK = """rm -f /tmp/answer; echo "$0" > /tmp/asking; mv /tmp/asking /tmp/asked
until [ -e /tmp/answer ]; do sleep 1; done; cat /tmp/answer"""
_AUDIT_WITHIN = 600.0
_PATIENCE = 5
AROUND_FAULTS = 15
"""Seconds before and after a fault in which events may be lost, as users count."""


class Load:
    """Publishers and subscribers in all clusters of a release, for so many seconds."""

    def __init__(self, release: Release, image: str, seconds: float, node: str = "") -> None:
        self._release, self._cluster, self._seconds = release, release.cluster, seconds
        urls = [f"mercasts://mercast.{name}.svc:7470" for name in release.namespaces]
        args = [
            "load", f"--brokers={','.join(urls)}", f"--rate={RATE}", f"--seconds={seconds:.0f}",
            f"--publishers={PUBLISHERS}", f"--subscribers={SUBSCRIBERS}", f"--filters={FILTERS}",
            f"--patience={_PATIENCE}", f"--around-faults={AROUND_FAULTS}", "--json=/dev/stdout",
        ]  # fmt: skip
        self._pod = pod(
            release.namespace,
            _NAME,
            image,
            args=args,
            env=[CA, TOKEN],
            labels=CLIENT,
            ca=_TLS,
            node=node,
        )

    def start(self) -> None:
        run(self._cluster, self._pod)
        ready = ["--for=condition=Ready", f"pod/{_NAME}", "--timeout=120s"]
        self._cluster.kubectl("wait", "-n", self._release.namespace, *ready)

    def fault(self) -> None:
        """Users may not see it: they are told."""
        self._cluster.kubectl("exec", "-n", self._release.namespace, _NAME, "--", "kill", "-USR1", "1")

    def stop(self) -> None:
        """As Ctrl-C does: what is on its way may arrive."""
        self._cluster.kubectl("exec", "-n", self._release.namespace, _NAME, "--", "kill", "-INT", "1")

    def result(self) -> dict[str, Any]:
        status, said = ended(self._cluster, self._release.namespace, _NAME, self._seconds + 240)
        assert status in (0, 1), said[-3000:]
        return _last_json(said)


class Auditor:
    """Audits what is in the Kafka of a release, in a pod beside it (inside/auditor.py)."""

    def __init__(self, release: Release, image: str, node: str = "") -> None:
        self._cluster, self._namespace = release.cluster, release.namespace
        labels = {"app.kubernetes.io/name": "mercast", "app.kubernetes.io/instance": "mercast", "mercast/role": "audit"}
        command = ["python3", "-u", "/etc/mercast/files/auditor.py"]
        self._pod = pod(self._namespace, _AUDITOR, image, command=command, labels=labels, files=_AUDITOR, node=node)

    def start(self) -> None:
        about = {"name": _AUDITOR, "namespace": self._namespace}
        files = {"auditor.py": _SCRIPT.read_text()}
        self._cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": files})
        run(self._cluster, self._pod)

    def audit(self, since: float, until: float) -> dict[str, Any]:
        """Of what was published then. Nothing is forgiven: missing deliveries are named, with their times."""
        where = f"mercast-kafka.{self._namespace}.svc:9092"
        asked = json.dumps({"kafka": where, "since": int(since * 1e6), "until": int(until * 1e6)})
        ready = ["--for=condition=Ready", f"pod/{_AUDITOR}", "--timeout=300s"]
        self._cluster.kubectl("wait", "-n", self._namespace, *ready, within=310)
        ask = ["exec", "-n", self._namespace, _AUDITOR, "--", "sh", "-c", _ASK, asked]
        found: dict[str, Any] = json.loads(self._cluster.kubectl(*ask, within=_AUDIT_WITHIN))
        return found


def _last_json(said: str) -> dict[str, Any]:
    """Beside what is for people."""
    decoder = json.JSONDecoder()
    lines = said.splitlines(keepends=True)
    for number in [number for number, line in enumerate(lines) if line.startswith("{")]:
        try:
            found, _ = decoder.raw_decode("".join(lines[number:]))
        except json.JSONDecodeError:
            continue
        if isinstance(found, dict):
            return found
    raise AssertionError(f"no JSON in {said[-2000:]}")
