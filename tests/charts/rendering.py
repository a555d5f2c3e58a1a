"""The chart as Helm renders it."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from charts.tools import HELM, find

CHART = Path(__file__).parents[2] / "charts/mercast"
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
VERSIONS = ("1.31", "1.34")
"""Of Kubernetes: the oldest that is still in use here and there, and a recent one."""

WITHOUT_SCHEMA = {"PodMonitor", "ServiceMonitor", "PrometheusRule", "Certificate"}
"""Kinds that are not of Kubernetes itself."""


def helm(*arguments: str, given: str | None = None, **environment: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find(HELM), *arguments], input=given, capture_output=True, text=True, check=False, **environment
    )


@cache
def rendered(values: Path, version: str = VERSIONS[-1]) -> str:
    """All that would be installed, tests and hooks too, into namespace `a`."""
    done = helm("template", "mercast", str(CHART), "-n", "a", "--kube-version", version, "-f", str(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def objects(values: Path, version: str = VERSIONS[-1]) -> list[dict[str, Any]]:
    return [one for one in yaml.load_all(rendered(values, version), yaml.CSafeLoader) if one]


def refused(text: str) -> str:
    """What Helm says to values that are not right."""
    done = helm("template", "mercast", str(CHART), "-n", "a", "--kube-version", VERSIONS[-1], "-f", "-", given=text)
    assert done.returncode != 0, "not refused"
    return done.stderr


def pods(values: Path) -> list[tuple[str, dict[str, Any]]]:
    """Specifications of all pods, by what they are of."""
    found = []
    for one in objects(values):
        name = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Pod":
            found.append((name, one["spec"]))
        elif "template" in one.get("spec", {}):
            found.append((name, one["spec"]["template"]["spec"]))
        elif name.endswith("-executors") and "pod.yaml" in one.get("data", {}):
            found.append((name, yaml.safe_load(one["data"]["pod.yaml"])["spec"]))
    return found
