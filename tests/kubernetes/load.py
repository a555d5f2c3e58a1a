"""Locust in a pod, and the audit of what it caused in another."""

import json
from datetime import UTC, datetime
from typing import Any

from chart import Release
from pods import CA, CLIENT, TOKEN, ended, pod, run

RATE, PUBLISHERS, SUBSCRIBERS, FILTERS = 100, 4, 8, 5
_NAME, _AUDIT = "load", "audit"
_AUDIT_WITHIN = 600.0
_PATIENCE = 5


class Load:
    """Publishers and subscribers in all clusters of a release, for so many seconds."""

    def __init__(self, release: Release, image: str, seconds: float, node: str = "") -> None:
        self._release, self._cluster, self._seconds = release, release.cluster, seconds
        urls = [f"mercasts://mercast.{name}.svc:7470" for name in release.namespaces]
        args = [
            "load", f"--brokers={','.join(urls)}", f"--rate={RATE}", f"--seconds={seconds:.0f}",
            f"--publishers={PUBLISHERS}", f"--subscribers={SUBSCRIBERS}", f"--filters={FILTERS}",
            f"--patience={_PATIENCE}", "--json=/dev/stdout",
        ]  # fmt: skip
        self._pod = pod(
            release.namespace,
            _NAME,
            image,
            args=args,
            env=[CA, TOKEN],
            labels=CLIENT,
            ca="mercast-broker-tls",
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


def audit(release: Release, image: str, since: float, until: float, node: str = "") -> dict[str, Any]:
    """Of what was published then. Nothing is forgiven: missing deliveries are named, with their times."""
    args = [
        "audit", f"--from=kafka://mercast-kafka.{release.namespace}.svc:9092", f"--since={_moment(since)}",
        f"--until={_moment(until)}", "--named=20000", "--json=/dev/stdout",
    ]  # fmt: skip
    labels = {"app.kubernetes.io/name": "mercast", "app.kubernetes.io/instance": "mercast", "mercast/role": "audit"}
    run(release.cluster, pod(release.namespace, _AUDIT, image, args=args, labels=labels, node=node))
    status, said = ended(release.cluster, release.namespace, _AUDIT, _AUDIT_WITHIN)
    assert status in (0, 1, 2), said[-3000:]
    return _last_json(said)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


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
