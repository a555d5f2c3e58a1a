"""A Kubernetes to test on: one of our own, brought up for the run and taken away after it, or that of KUBECONFIG.

with of_our_own(pause) as cluster:
    cluster.kubectl("get", "nodes")
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from build import CannotBe, programs, system
from charts.tools import HELM, find
from control import Control
from machine import Machine
from node import Node

from mercast.kafka.jars import cache

HERE = Path(__file__).parent
_WITHIN = 180.0
_NODES = 2


class Failed(AssertionError):  # noqa: N818 - says what has happened
    """A command, and what it said."""


class Cluster:
    def __init__(self, kubectl: Sequence[str], helm: Sequence[str], environment: dict[str, str]) -> None:
        self._kubectl, self._helm, self._environment = kubectl, helm, environment
        self.own: Own | None = None

    def kubectl(self, *words: str | Path, given: Any = None, within: float = _WITHIN, all: bool = False) -> str:
        """What it says, or `all` of it. `given` goes to its input, as JSON if it is no text."""
        return self._run([*self._kubectl, *map(str, words)], given, within, all)

    def server(self) -> str:
        """The address of the API server."""
        return self.kubectl("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")

    def helm(self, *words: str | Path, given: Any = None, within: float = 600) -> str:
        return self._run([*self._helm, *map(str, words)], given, within)

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": objects})

    def refuses(self, *words: str) -> str:
        """What kubectl says when it is not let."""
        try:
            said = self.kubectl(*words)
        except Failed as error:
            return str(error)
        raise AssertionError(f"kubectl {' '.join(words)} was let: {said}")

    def _run(self, command: list[str], given: Any, within: float, all: bool = False) -> str:
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        done = subprocess.run(
            command, env=self._environment, input=text, capture_output=True, text=True, timeout=within, check=False,
            stdin=None if text is not None else subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            shown = " ".join(word for word in command if not word.startswith("--kubeconfig"))
            raise Failed(f"{shown[-400:]}: {done.stderr[-3000:]}{done.stdout[-2000:]}")
        return done.stdout + (done.stderr if all else "")


class Own:
    """What can be done to a Kubernetes of our own only."""

    def __init__(self, machine: Machine, control: Control, nodes: list[Node]) -> None:
        self.machine, self.control, self.nodes = machine, control, nodes

    def bring(self, archive: Path, nodes: Sequence[Node] | None = None) -> None:
        """An image to nodes; to all of them, if none are named."""
        for node in nodes or self.nodes:
            node.ctr("images", "import", archive)


@contextmanager
def given() -> Iterator[Cluster]:
    """That of KUBECONFIG."""
    kubectl = shutil.which("kubectl") or str(programs() / "kubectl")
    yield Cluster([kubectl], [find(HELM)], dict(os.environ))


@contextmanager
def of_our_own(pause: Callable[[Path], Path]) -> Iterator[Cluster]:
    """`pause` makes the archive of the image that holds a pod's namespaces, of the program."""
    if os.geteuid():
        raise CannotBe("a Kubernetes of our own needs root: name a cluster by KUBECONFIG, or be root")
    system()
    built = programs()
    machine = Machine(cache() / "kubernetes-now", built)
    began = time.monotonic()
    machine.start()
    try:
        control = Control(machine)
        control.start()
        nodes = [Node(machine, control, number + 1) for number in range(_NODES)]
        cluster = _reached(machine, control, built)
        cluster.own = Own(machine, control, nodes)
        cluster.kubectl("apply", "--server-side", "-f", built / "calico-crds.yaml")
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for file in sorted((HERE / "manifests").glob("*.yaml")):
            cluster.kubectl("apply", "-f", file)
        for node in nodes:
            node.start(built)
        for node in nodes:
            _until(lambda node=node: node.ctr("version"))
        cluster.own.bring(pause(built / "pause"))
        for node in nodes:
            node.join()
        _join(cluster, nodes)
        tell(f"a Kubernetes of {len(nodes)} nodes is up, after {time.monotonic() - began:.0f} s")
        yield cluster
    finally:
        machine.stop()


def _reached(machine: Machine, control: Control, built: Path) -> Cluster:
    environment = dict(os.environ) | {"KUBECONFIG": str(control.admin)}
    return Cluster(machine.inside([built / "kubectl"]), machine.inside([built / "helm"]), environment)


def _join(cluster: Cluster, nodes: list[Node]) -> None:
    """Ready, with a route to their pods."""
    for node in nodes:
        _until(lambda node=node: cluster.get("node", node.name)["spec"]["podCIDR"])
        if node.network:
            node.route(cluster.get("node", node.name)["spec"]["podCIDR"])
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", f"--timeout={_WITHIN:.0f}s")


def _until(answer: Callable[[], Any]) -> None:
    until = time.monotonic() + _WITHIN
    while True:
        try:
            answer()
            return
        except (Failed, CannotBe, KeyError):
            if time.monotonic() > until:
                raise
            time.sleep(0.3)


def tell(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
